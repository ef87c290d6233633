"""Whatever is exported says the same as the model it was exported from."""

from itertools import chain

import ctranslate2
import pytest
import torch
from tiny_models import SOURCE, TARGET, VARIANTS, rows, tiny, unsaid

from regard.decoding.bulk import score_pairs, translate
from regard.decoding.options import SearchOptions
from regard.errors import DecodingError
from regard.exporting.ctranslate2 import fill_folder, opened
from regard.exporting.search import NEVER, Searcher
from regard.text.special import EOS

SOURCES = rows((5, 1, 9, 3), len(SOURCE), seed=1)
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


def searcher(folder, path, quantise="float32") -> Searcher:
    path.mkdir(exist_ok=True)
    fill_folder(folder, path, quantise)
    return Searcher(opened(path, folder.recipe, folder.vocabularies, quantise))


def tokens(found) -> list[list[tuple[int, ...]]]:
    return [[one.tokens for one in many] for many in found]


def same(ours, theirs) -> None:
    """The same outputs in the same order, at the same scores."""
    assert tokens(ours) == tokens(theirs)
    for one, other in zip(chain(*ours), chain(*theirs), strict=True):
        assert other.score == pytest.approx(one.score, abs=1e-4)
        assert other.log_probability == pytest.approx(one.log_probability, abs=1e-3)
        assert other.finished == one.finished


@every_variant
def test_given_targets_are_as_probable(variant, tmp_path):
    folder = tiny(tmp_path, **variant)
    sources = rows((100, 3, 1, 5), len(SOURCE), seed=2)  # beyond the distances that a relative bias tells apart
    targets = rows((4, 100, 1, 0), len(TARGET), seed=3)
    theirs = searcher(folder, tmp_path).score(sources, targets)
    ours = score_pairs(folder.model, sources, targets)
    for one, other in zip(ours, theirs, strict=True):
        assert other == pytest.approx(one, abs=1e-4)


@every_variant
def test_greedy_outputs_are_the_same(variant, tmp_path):
    folder = tiny(tmp_path, **variant)
    options = SearchOptions(beam=1, length_penalty=0.7, cap=8)
    same(translate(folder.model, SOURCES, options), searcher(folder, tmp_path).translate(SOURCES, options))


@pytest.mark.parametrize("name", ["as published", "RMS norm", "learned positions", "relative bias", "rotary"])
def test_without_length_penalty_the_widest_search_is_the_same(name, tmp_path):
    folder = tiny(tmp_path, **{**VARIANTS[name], "tie_output": False}, said=unsaid())
    options = SearchOptions(beam=4, length_penalty=0.0, cap=9)
    same(translate(folder.model, SOURCES, options), searcher(folder, tmp_path).translate(SOURCES, options))


def test_one_vocabulary_for_both_sides(tmp_path):
    folder = tiny(tmp_path, shared=True)
    options = SearchOptions(beam=1, cap=12)
    same(translate(folder.model, SOURCES, options), searcher(folder, tmp_path).translate(SOURCES, options))
    assert (tmp_path / "shared_vocabulary.json").exists()


def test_with_length_penalty_our_search_goes_on_longer_and_never_finds_less(tmp_path):
    folder = tiny(tmp_path, tie_output=False, said=unsaid())
    options = SearchOptions(beam=3, length_penalty=1.0, cap=12)
    ours = translate(folder.model, SOURCES, options)
    theirs = searcher(folder, tmp_path).translate(SOURCES, options)
    pairs = list(zip(ours, theirs, strict=True))
    assert all(one[0].score >= other[0].score - 1e-5 for one, other in pairs)
    assert any(one[0].tokens == other[0].tokens for one, other in pairs)


def test_the_n_best_come_in_order_and_are_not_more_than_asked_for(tmp_path):
    folder = tiny(tmp_path, tie_output=False, said=unsaid())
    found = searcher(folder, tmp_path).translate(SOURCES, SearchOptions(beam=4, n_best=3, length_penalty=0.5, cap=12))
    for outputs in found:
        assert [one.score for one in outputs] == sorted((one.score for one in outputs), reverse=True)
        assert len({one.tokens for one in outputs}) == len(outputs) == 3


def test_every_output_keeps_to_the_length_of_its_own_source(tmp_path):
    folder = tiny(tmp_path, tie_output=False, said=unsaid(EOS))  # a model that never ends
    options = SearchOptions(beam=2, max_ratio=1.0, max_extra=2)
    theirs = searcher(folder, tmp_path).translate(SOURCES, options)
    assert [len(found[0].tokens) for found in theirs] == [len(source) + 3 for source in SOURCES]
    same(translate(folder.model, SOURCES, options), theirs)


def test_forbidden_tokens_never_come_out_and_change_no_score(tmp_path):
    folder = tiny(tmp_path, tie_output=False, said=unsaid(weight=3.0))  # a model that would say little else
    options = SearchOptions(beam=1, cap=12)
    theirs = searcher(folder, tmp_path).translate(SOURCES, options)
    assert all(NEVER.isdisjoint(found[0].tokens) for found in theirs)
    same(translate(folder.model, SOURCES, options), theirs)


@pytest.mark.parametrize("beam", [1, 3])
def test_forced_tokens_begin_the_output_and_count_in_its_score(beam, tmp_path):
    folder = tiny(tmp_path, tie_output=False, said=unsaid())
    prefixes = rows((2, 0, 3, 1), len(TARGET), seed=4)
    options = SearchOptions(beam=beam, length_penalty=0.0, cap=9)
    theirs = searcher(folder, tmp_path).translate(SOURCES, options, prefixes)
    assert [list(found[0].tokens[: len(start)]) for found, start in zip(theirs, prefixes, strict=True)] == prefixes
    same(translate(folder.model, SOURCES, options, prefixes=prefixes), theirs)


def test_a_prefix_without_room_behind_it_is_refused(tmp_path):
    one = searcher(tiny(tmp_path), tmp_path)
    with pytest.raises(DecodingError, match="prefix of sentence 1: 3 tokens leave no room"):
        one.translate([[5], [6]], SearchOptions(max_ratio=0.0, max_extra=3), [[], [4, 5, 6]])


def test_texts_beyond_the_last_position_are_refused(tmp_path):
    one = searcher(tiny(tmp_path), tmp_path)
    with pytest.raises(DecodingError, match="a text of 201 tokens, but the exported model has 128"):
        one.translate([[5] * 200], SearchOptions())
    with pytest.raises(DecodingError, match="outputs of up to 140 tokens"):
        one.translate([[5] * 60], SearchOptions(max_extra=18))
    with pytest.raises(DecodingError, match="128 positions"):
        one.score([[5]], [[6] * 128])


def test_rotary_positions_have_no_end(tmp_path):
    folder = tiny(tmp_path, positions="rotary")
    sources = rows((200, 3), len(SOURCE), seed=6)
    options = SearchOptions(beam=1, cap=140)
    same(translate(folder.model, sources, options), searcher(folder, tmp_path).translate(sources, options))


def test_nothing_comes_of_nothing(tmp_path):
    one = searcher(tiny(tmp_path), tmp_path)
    assert one.translate([], SearchOptions()) == []
    assert one.score([], []) == []


# Where a processor adds up pairs of products of eight bits in sixteen, large sums are cut off: 1.35 was seen there.
@pytest.mark.parametrize(("quantise", "error"), [("float16", 0.01), ("int16", 0.05), ("int8", 2.0)])
def test_fewer_bits_say_nearly_the_same_and_leave_the_model_as_it_was(quantise, error, tmp_path):
    if quantise == "int16" and quantise not in ctranslate2.get_supported_compute_types("cpu"):
        pytest.skip("CTranslate2 has no products of sixteen bits for this processor, and takes eight")
    folder = tiny(tmp_path)
    before = {name: tensor.clone() for name, tensor in folder.model.state_dict().items()}
    targets = rows((4, 2, 1, 6), len(TARGET), seed=7)
    theirs = searcher(folder, tmp_path, quantise).score(SOURCES, targets)
    ours = score_pairs(folder.model, SOURCES, targets)
    worst = max(abs(a - b) for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=True))
    assert 1e-6 < worst < error
    assert all(torch.equal(tensor, before[name]) for name, tensor in folder.model.state_dict().items())
