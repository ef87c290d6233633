"""What lifts quality on little text: one lever at a time pulled in the default Transformer, judged by the dev set."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from regard.data.corpus import Loaded
from regard.data.pairs import Pair
from regard.errors import RecipeError
from regard.explaining.bars import Bar
from regard.explaining.study_page import Bars, Contents, Table
from regard.jobs.translate import learn_vocabularies
from regard.recipe.models import TransformerOptions
from regard.recipe.presets import choose
from regard.recipe.recipe import Recipe, Tree, overlay, parse, with_settings
from regard.studies.report import Report, TestSet, by_name, equal, row_figures
from regard.studies.rows import Plan, Result, Row, corpora
from regard.text.characters import count_characters
from regard.text.learn import TRANSLATED, choose_size
from regard.text.options import TextOptions

BASE, VOCABULARY = "base", "vocabulary"
PRESET: Final = "transformer"
NOISE = 1.0  # BLEU by which two runs of one recipe may differ on a thousand sentences
SUBWORDS = ("bpe", "unigram")
DECAYS = (0.01, 0.3, 1.0)  # of weights; that of the base is no row

Settings = tuple[str, ...]

SAID = {  # of a row by its name, which may end in the number that it has instead
    BASE: "what this much text gets by default",
    VOCABULARY: "another number of subwords",
    "sinusoids": "added positions instead of rotary ones",
    "wider": "a third more width",
    "narrower": "two thirds of the width, a third of the feed-forward width, a layer more",
    "subword-sampling": "other subwords in every epoch",
    "dropout": "other dropout",
    "r-drop": "two passes that must agree",
    "word-dropout": "holes in both texts",
    "last-weights": "the last weights, no average",
    "mean-of": "the mean of five checkpoints",
    "cosine": "a cosine instead of a line down to zero",
    "adamw": "AdamW instead of Muon, at half the rate and with its usual decay",
    "rate": "half the learning rate",
    "one-rate": "one rate for matrices and tables of words",
    "decay": "weights that fade more slowly or faster",
    "three-tables": "source, target and output not tied",
    "batch": "other batches",
    "deep-shallow": "twice the layers that read, one that writes",
}


def rows(plan: Plan) -> tuple[Row, ...]:
    """The default for this much text, and its levers; a vocabulary that cannot be learned from it is left out."""
    recipe, loaded = corpora(plan)
    pairs = [pair for corpus in loaded.corpora for pair in corpus.pairs]
    tree = overlay(choose(pairs, PRESET, recipe), {"text": recipe.text.model_dump()})
    found = fitting(with_settings(tree, plan.settings), pairs)
    return tuple(row for row in found if not row.name.startswith(VOCABULARY) or learnable(row, recipe, loaded))


def learnable(row: Row, recipe: Recipe, loaded: Loaded) -> bool:
    """Whether the text is long enough for so many subwords: known now, not when the row's turn comes."""
    tree = with_settings(recipe.model_dump(mode="json"), row.settings)
    try:
        learn_vocabularies(parse(tree, "study"), loaded.corpora)
    except RecipeError:
        return False
    return True


def fitting(tree: Tree, pairs: Sequence[Pair]) -> tuple[Row, ...]:
    """The recipe of the base, and what each lever makes of it; what would change nothing there is left out."""
    base = parse(tree, "study")
    found, known = [Row(BASE, PRESET)], [base]
    for name, settings in {**vocabularies(base.text, pairs), **levers(base)}.items():
        changed = parse(with_settings(tree, settings), "study")
        if changed not in known:
            found.append(Row(name, PRESET, settings))
            known.append(changed)
    return tuple(found)


def vocabularies(text: TextOptions, pairs: Sequence[Pair]) -> dict[str, Settings]:
    """Twice the vocabulary, and half the pieces of more than one character; nothing for characters and bytes."""
    if text.kind not in SUBWORDS:
        return {}
    counts: Counter[str] = count_characters([side for pair in pairs for side in (pair.source, pair.target)])
    size = text.size or choose_size(counts, text.byte_fallback, TRANSLATED)
    pieces = max(0, size - choose_size(counts, text.byte_fallback, pieces=0))
    sizes = (rounded_off(size - pieces // 2), rounded_off(2 * size))
    return {f"{VOCABULARY}-{size}": (f"text.size={size}",) for size in sizes}


def rounded_off(size: int) -> int:
    """A round number that is near: to the next 1,000, of less than 1,500 to the next 100, of less than 150 to 10."""
    step = next((step for step in (1000, 100, 10) if size >= 1.5 * step), 1)
    return step * round(size / step)


def levers(base: Recipe) -> dict[str, Settings]:
    """What is changed by each, by the name of its row, in numbers that are to those of `base` as its words say."""
    model, rate, batch = base.model, base.training.learning_rate, base.data.batch_tokens
    if model.kind != PRESET:
        raise RecipeError(f"--set model.kind={model.kind}: the levers are those of a transformer; leave it out")
    less, more = max(0.0, model.dropout - 0.1), min(0.9, model.dropout + 0.1)
    words = ("loss.source_word_dropout=0.1", "loss.target_word_dropout=0.1")
    return {
        "sinusoids": ("model.positions=sinusoid",),
        "wider": shape(model, width=4 / 3, feedforward=4 / 3),
        "narrower": (*shape(model, width=2 / 3, feedforward=1 / 3), *deeper(model)),
        "subword-sampling": ("text.dropout=0.1",) if base.text.kind in SUBWORDS else (),
        f"dropout-{less:g}": (f"model.dropout={less:g}",),
        f"dropout-{more:g}": (f"model.dropout={more:g}",),
        "r-drop": ("loss.rdrop=5",),
        "word-dropout": words,
        "last-weights": ("training.ema=0",),
        "mean-of-5": ("training.ema=0", "training.average=5"),
        "cosine": ("training.schedule=cosine",),
        "adamw": ("training.optimiser=adamw", f"training.learning_rate={rate / 2:g}", "training.weight_decay=0.01"),
        f"rate-{rate / 2:g}": (f"training.learning_rate={rate / 2:g}",),
        "one-rate": ("training.rest_rate=1",),
        **{f"decay-{decay:g}": (f"training.weight_decay={decay:g}",) for decay in DECAYS},
        "three-tables": ("model.share_embeddings=false", "model.tie_output=false"),
        f"batch-{batch // 2}": (f"data.batch_tokens={batch // 2}",),
        f"batch-{2 * batch}": (f"data.batch_tokens={2 * batch}",),
        "deep-shallow": (f"model.encoder_layers={2 * model.encoder_layers}", "model.decoder_layers=1"),
    }


def shape(model: TransformerOptions, *, width: float, feedforward: float) -> Settings:
    """So many times as wide, as near as the heads allow: each has an even width, as rotary positions need."""
    unit = 2 * model.heads
    wide = max(unit, unit * round(width * model.width / unit))
    return (f"model.width={wide}", f"model.feedforward={round(feedforward * model.feedforward)}")


def deeper(model: TransformerOptions) -> Settings:
    return (f"model.encoder_layers={model.encoder_layers + 1}", f"model.decoder_layers={model.decoder_layers + 1}")


def said(name: str) -> str:
    """ "dropout-0.1" → "dropout-0.1: other dropout"."""
    return f"{name}: {SAID[name if name in SAID else name.rstrip('-.0123456789')]}"


def report(results: Sequence[Result], _test: TestSet, plan: Plan, _rows: Path) -> Report:
    """Rows by what they add to the default on the dev set. What the test set says of them is left aside."""
    found = by_name(results)
    base = found.get(BASE)
    gains = {name: result.dev_bleu - base.dev_bleu for name, result in found.items()} if base else {}
    contents = Contents(
        "What lifts quality",
        "Each row changes one thing in the recipe that this much text gets by default, and has the same time.",
        findings(gains),
        (pulled(found, gains),),
        (picture(gains),) if len(gains) > 1 else (),
        (
            equal(plan),
            f"The dev set was translated with beam {results[0].beam}. Rows are judged by dev BLEU alone; perplexity "
            "is per token, and compares only rows with one vocabulary. "
            f"Each is one run with one seed: differences below {NOISE:g} may be chance. What is against learning by "
            "heart pays in long runs, and may cost in short ones.",
        ),
    )
    figures = {f"{name}: gain": gain for name, gain in gains.items() if name != BASE}
    unseen = {name: value for name, value in row_figures(results).items() if ": test" not in name}
    return Report(figures | unseen, contents, unsaid=("outputs", "test_bleu", "test_chrf"))


def findings(gains: Mapping[str, float]) -> tuple[str, ...]:
    better = sorted((name for name in gains if gains[name] >= NOISE), key=lambda name: -gains[name])
    if not gains:
        return ()
    if not better:
        return (f"No lever adds {NOISE:g} BLEU or more to the default.",)
    return tuple(f"{name} adds {gains[name]:.2f} BLEU to the default." for name in better)


def picture(gains: Mapping[str, float]) -> Bars:
    """Best first, without the default itself."""
    ordered = sorted((name for name in gains if name != BASE), key=lambda name: -gains[name])
    return Bars("dev BLEU that each adds", tuple(Bar(name, gains[name]) for name in ordered))


def pulled(found: Mapping[str, Result], gains: Mapping[str, float]) -> Table:
    """Best first."""
    ordered = sorted(found.values(), key=lambda result: -result.dev_bleu)
    cells = tuple(
        (
            said(result.name),
            f"{result.dev_bleu:.2f}",
            f"{gains[result.name]:+.2f}" if gains else "",
            f"{result.dev_perplexity:.2f}",
            f"{result.steps:,}",
            f"{result.epochs:.1f}",
            f"{result.train_minutes:.1f}",
        )
        for result in ordered
    )
    heads = ("", "dev BLEU", "gain", "dev PPL", "steps", "epochs", "minutes")
    return Table("The levers, best first", heads, cells)
