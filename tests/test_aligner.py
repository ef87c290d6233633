"""An aligner: what it links is what a plain loop over the recorded weights links, in any batch."""

from pathlib import Path

import pytest
import torch

from regard.aligner import Aligner
from regard.data.pairs import Pair
from regard.errors import DecodingError, ModelFormatError
from regard.evaluation.alignment import AlignmentScore, Gold, parse_gold, score_links
from regard.explaining.alignment import Look, every_look
from regard.explaining.record import record
from regard.recipe.folder import ModelFolder, fresh_model
from regard.recipe.recipe import parse
from regard.tasks.translate import Vocabularies
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import BOS, EOS

LINES = ["the cat sat on the mat", "die Katze saß auf der Matte", "the mat", "der Hund auf der Katze"] * 3
SUBWORDS = learn(LINES, TextOptions(size=300), seed=1)
LETTERS = Characters(sorted({character for line in LINES for character in line}))
TRANSFORMER = {"width": 8, "heads": 2, "feedforward": 12, "encoder_layers": 1, "decoder_layers": 2}
MODELS = {
    "subwords": (SUBWORDS, TRANSFORMER),
    "characters": (LETTERS, TRANSFORMER),
    "recurrent": (SUBWORDS, {"kind": "recurrent", "embedding": 5, "width": 6}),
    "convs2s": (LETTERS, {"kind": "convs2s", "width": 6, "encoder_layers": 1, "decoder_layers": 2}),
}
PAIRS = [
    Pair("the cat sat on the mat", "die Katze saß auf der Matte"),
    Pair(" the   mat\t", "die Matte"),
    Pair("", "die Matte"),
    Pair("cat", "Katze Katze Katze"),
    Pair("the mat", "  "),
    Pair("on the cat sat the mat", "auf"),
]
GOLD = [parse_gold(line, "here") for line in ("0-0 1-1 2p2 3-3 4p4 5-5", "0-0 1-1", "", "0-0 0p1", "", "0-0 1p0")]


def aligner_of(name, **loss):
    tokeniser, model = MODELS[name]
    corpus = {"source": "a", "target": "b", "alignment": "c"}
    tree = {"data": {"corpora": [corpus]}, "model": model | {"dropout": 0.3}, "loss": loss}
    recipe, words = parse(tree, "test"), Vocabularies(tokeniser, tokeniser)
    network = fresh_model(recipe, words).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return Aligner(ModelFolder(Path("here"), recipe, words, network))


@pytest.fixture(params=MODELS, scope="module")
def aligner(request):
    return aligner_of(request.param)


def by_character(tokeniser, text):
    """For each word, the pieces that hold one of its characters; blanks go to the next word, or to the last."""
    words, owner, inside = [], {}, False
    for place, character in enumerate(text):
        if character.isspace():
            inside = False
            continue
        if not inside:
            words.append([])
            inside = True
        owner[place] = len(words) - 1
    for number, piece in enumerate(tokeniser.pieces(text)):
        own = {owner[place] for place in range(piece.start, piece.end) if place in owner}
        later = [word for place, word in sorted(owner.items()) if place >= piece.start] or list(range(len(words)))[-1:]
        for word in own or later[:1]:
            words[word].append(number)
    return words


def recorded(aligner, pair):
    """(layer, head) → weights, as the recorder gives them for this pair alone."""
    source, target = aligner.vocabularies.source, aligner.vocabularies.target
    ids, inputs = [*source.encode(pair.source), EOS], [BOS, *target.encode(pair.target)]
    maps = [each for each in record(aligner.model, torch.tensor([ids]), torch.tensor([inputs])) if each.kind == "cross"]
    return {
        (layer, head): weights.tolist()
        for layer, one in enumerate(maps, start=1)
        for head, weights in enumerate(one.weights, start=1)
    }


def plain_loop(aligner, pair, look, weights):
    """Word by word, head by head, token by token."""
    places = [(layer, head) for layer, head in weights if look.layer in (None, layer) and look.head in (None, head)]
    later, links = int(look.step == "reading"), set()
    for j, ours in enumerate(by_character(aligner.vocabularies.target, pair.target)):
        given = [
            sum(weights[place][t + later][s] for place in places for t in ours for s in theirs)
            for theirs in by_character(aligner.vocabularies.source, pair.source)
        ]
        if given:
            links.add((given.index(max(given)), j))
    return links


def test_links_are_those_of_a_plain_loop(aligner):
    known = [(pair, recorded(aligner, pair)) for pair in PAIRS]
    for look in every_look(aligner.heads):
        assert aligner.align(PAIRS, look) == [plain_loop(aligner, pair, look, weights) for pair, weights in known]


def test_a_pair_is_aligned_the_same_alone_and_among_others(aligner):
    together = aligner.align(PAIRS * 3)
    assert together == [links for pair in PAIRS * 3 for links in aligner.align([pair])]
    assert aligner.align([]) == []


def test_every_target_word_has_one_link_and_a_blank_side_none(aligner):
    for pair, links in zip(PAIRS, aligner.align(PAIRS), strict=True):
        words = range(len(pair.target.split()) if pair.source.split() else 0)
        assert sorted(target for _, target in links) == list(words)


def test_one_pair_is_linked_by_the_layer_that_aligns_it_best(aligner):
    for pair in PAIRS:
        looks = [Look(layer) for layer in range(1, len(aligner.heads) + 1)]
        agreed = {}
        for _, maps in aligner.word_maps([pair], looks):
            for look, weights in zip(looks, maps, strict=True):
                first = [column.index(max(column)) for column in weights.T.tolist()]  # target word of each source word
                agreed[look] = sum(first[row.index(max(row))] == word for word, row in enumerate(weights.tolist()))
        best = max(agreed, key=lambda look: (agreed[look], look.layer), default=looks[0])
        assert aligner.link(pair) == aligner.align([pair], best)[0]


def test_a_pair_is_linked_by_the_head_that_was_taught():
    taught = aligner_of("subwords", guided=0.05, guided_layer=2, guided_head=2, guided_step="writing")
    assert [taught.link(pair) for pair in PAIRS] == taught.align(PAIRS)


def test_what_is_moved_goes_around_words_side_by_side(aligner):
    for pair in PAIRS:
        found, links = aligner.place(pair), aligner.link(pair)
        assert found <= links
        assert {source for source, _ in found} == {source for source, _ in links}
        for source in {source for source, _ in found}:
            words = sorted(target for one, target in found if one == source)
            assert words == list(range(words[0], words[-1] + 1))


def test_a_threshold_only_takes_links_away(aligner):
    before = aligner.align(PAIRS, threshold=0.0)
    for threshold in (0.2, 0.5, 1.0):
        after = aligner.align(PAIRS, threshold=threshold)
        assert all(fewer <= more for fewer, more in zip(after, before, strict=True))
        before = after
    assert not any(before)  # the end of the source always gets something


def test_the_ranking_holds_every_place_with_the_score_of_its_links(aligner):
    ranking = aligner.rank(PAIRS, GOLD)
    assert {look for look, _ in ranking} == set(every_look(aligner.heads))
    errors = [score.aer for _, score in ranking]
    assert errors == sorted(errors)
    for look, score in ranking:
        scores = (score_links(links, gold) for links, gold in zip(aligner.align(PAIRS, look), GOLD, strict=True))
        expected = sum(scores, AlignmentScore())
        assert (score.aer, score.links, score.sure) == (expected.aer, expected.links, expected.sure)


def test_the_ranking_finds_the_place_whose_links_are_the_gold():
    aligner = aligner_of("subwords")
    for look in (Look(1, 2, "writing"), Look(2, None, "reading")):
        gold = [Gold(links, links) for links in aligner.align(PAIRS, look)]
        best, score = aligner.rank(PAIRS, gold)[0]
        assert score.aer == 0
        assert aligner.align(PAIRS, best) == [one.sure for one in gold]


def test_aligning_changes_nothing_in_the_model():
    aligner = aligner_of("subwords")
    first = aligner.align(PAIRS)
    assert aligner.align(PAIRS) == first  # dropout sleeps
    assert not any(module._forward_hooks for module in aligner.model.modules())
    assert all(parameter.grad is None for parameter in aligner.model.parameters())


def test_it_looks_at_the_head_that_was_taught_else_at_all_where_words_are_written():
    plain = aligner_of("subwords")
    assert plain.look == Look(None, None, "writing")
    assert plain.align(PAIRS) == plain.align(PAIRS, Look(None, None, "writing"))
    assert aligner_of("subwords", guided=0.05).look == Look(1, 1, "reading")
    taught = aligner_of("subwords", guided=0.05, guided_layer=2, guided_head=2, guided_step="writing")
    assert taught.look == Look(2, 2, "writing")
    assert taught.align(PAIRS) == taught.align(PAIRS, Look(2, 2, "writing"))


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (Look(3, 1), "layer 3: here looks at its source with 2 layers of 2 heads; say 1 to 2"),
        (Look(1, 3), "head 3: here looks at its source with 2 layers of 2 heads; say 1 to 2"),
        (Look(0), "layer 0"),
        (Look(None, 1), "head 1: of which layer"),
    ],
)
def test_a_place_that_is_not_there_is_refused(look, words):
    with pytest.raises(DecodingError, match=words):
        aligner_of("subwords").align(PAIRS, look)


def test_a_text_that_is_no_sentence_is_refused():
    with pytest.raises(DecodingError, match=r"'xxx.*'…: \d+ tokens in one sentence, expected at most 1024"):
        aligner_of("characters").align([Pair("x" * 1025, "y")])


def test_a_model_without_attention_is_refused():
    recipe = parse({"data": {"corpora": []}, "model": {"kind": "bytenet", "width": 6}}, "test")
    words = Vocabularies(LETTERS, LETTERS)
    with pytest.raises(ModelFormatError, match="here: a bytenet model without attention"):
        Aligner(ModelFolder(Path("here"), recipe, words, fresh_model(recipe, words)))
