"""Explanations made by hand: small, with numbers that are all different, of every kind of model."""

from regard.explaining.explanation import (
    Alternative,
    Block,
    Concern,
    Explanation,
    Faithful,
    Saliency,
    Side,
    Step,
    Token,
    Word,
)

SOURCE = (("A", ("▁A",)), ("man", ("▁man",)), ("sings", ("▁sing", "s")))
TARGET = (("Ein", ("▁Ein",)), ("Mann", ("▁Mann",)), ("singt", ("▁sing", "t")), ("laut", ("▁laut",)))


def side(words, end=True):
    """Words with their pieces; a piece that begins with ▁ has the space before it."""
    text = " ".join(word for word, _ in words)
    found, tokens, place = [], [], 0
    for number, (word, pieces) in enumerate(words):
        start = text.index(word, place)
        found.append(Word(text=word, start=start, end=start + len(word)))
        for piece in pieces:
            stop = min(place + len(piece) - (place == 0 and piece[0] == "▁"), len(text))
            tokens.append(Token(id=10 + len(tokens), text=piece, start=place, end=stop, words=(number,)))
            place = stop
    if end:
        tokens.append(Token(id=3, text="</s>", start=len(text), end=len(text), words=()))
    return Side(text=text, words=tuple(found), tokens=tuple(tokens))


def weights(rows, columns, seed, causal=False):
    """Rows that sum to 1, of numbers that differ; a causal row sees as much as a decoder has read."""
    found = []
    for q in range(rows):
        raw = [((q + 1) * (k + 2) * (seed + 3)) % 23 + 1 if not causal or k <= q else 0 for k in range(columns)]
        found.append(tuple(round(value / sum(raw), 6) for value in raw))
    return tuple(found)


def heads(kind, layers, count, rows, columns):
    return tuple(
        Block(
            kind=kind,
            layer=layer,
            head=head,
            entropy=layer + head / 10,
            roles=("diagonal",) if head == 2 else (),
            weights=weights(rows, columns, 7 * layer + head, kind == "decoder"),
        )
        for layer in range(1, layers + 1)
        for head in range(1, count + 1)
    )


def steps(tokens):
    """The token that was written is the likeliest but at the second place, where it is no alternative at all."""
    found = []
    for place, token in enumerate(tokens):
        p = 0.9 - 0.12 * (place % 6)
        own = Alternative(id=token.id, text=token.text, probability=p)
        other = Alternative(id=99, text="▁other", probability=(1 - p) / 2)
        found.append(Step(probability=p, rank=1, alternatives=(own, other)))
    found[1] = Step(probability=0.05, rank=7, alternatives=(Alternative(id=98, text="▁Herr", probability=0.6),))
    return tuple(found)


def rise(rows, columns):
    """Values of both signs; some within two errors of 0, and one of which nothing is known."""
    values = [[round(0.6 - 0.11 * abs(q - k) - 0.07 * k, 3) for k in range(columns)] for q in range(rows)]
    errors = [[0.02 + 0.01 * k for k in range(columns)] for _ in range(rows)]
    values[0][columns - 1], errors[1][columns - 1] = -0.4, None
    return Saliency(
        method="rise",
        values=tuple(map(tuple, values)),
        errors=tuple(map(tuple, errors)),
        masks=2000,
        faithful=Faithful(deletion=0.2, insertion=0.7),
        chance=Faithful(deletion=0.4, insertion=0.5),
    )


def translated(model="tiny", saliency=True, source=SOURCE, target=TARGET, concerns=True):
    """ "A man sings" → "Ein Mann singt laut", of a Transformer of two layers and two heads."""
    read, said = side(source), side(target)
    s, t = len(read.tokens), len(said.tokens)
    worries = (
        Concern(kind="unsure", message="the least probable word has 0.05", value=0.05, target_words=(1,)),
        Concern(kind="untranslated", message="nothing depends on 1 word", value=0.01, source_words=(0,)),
    )
    maps = (rise(t, s), Saliency(method="attention", values=weights(t, s, 4)))
    return Explanation(
        model=model,
        source=read,
        start=Token(id=2, text="<s>", start=0, end=0, words=()),
        target=said,
        steps=steps(said.tokens),
        log_probability=-4.25,
        score=-0.85,
        attention=(*heads("encoder", 2, 2, s, s), *heads("decoder", 2, 2, t, t), *heads("cross", 2, 2, t, s)),
        saliency=maps if saliency else (),
        concerns=worries if concerns else (),
    )


def of_a_language_model():
    said = side(TARGET, end=False)
    t = len(said.tokens)
    return translated().model_copy(
        update={
            "source": None,
            "target": said,
            "steps": steps(said.tokens),
            "attention": heads("decoder", 1, 2, t, t),
            "saliency": (),
            "concerns": (),
        }
    )


def of_an_encoder():
    read = side(SOURCE)
    s = len(read.tokens)
    return Explanation(
        model="reader",
        source=read,
        start=None,
        target=None,
        steps=(),
        log_probability=None,
        score=None,
        attention=heads("encoder", 1, 2, s, s),
    )


def without_attention():
    return translated("plain", saliency=False).model_copy(update={"attention": ()})
