"""Outputs that a person should look at are named with their words, and ordinary ones are let alone."""

import math

import pytest
import torch

from regard.errors import DecodingError
from regard.explaining.concerns import (
    LONGEST,
    Thresholds,
    check_by,
    check_output,
    plain,
    questions,
    repetition,
    runs,
)
from regard.explaining.sides import given, words_in
from regard.recipe import build as building
from regard.recipe.models import RecurrentOptions
from regard.text.characters import Characters
from regard.text.special import BOS, EOS
from regard.text.symbols import Symbols

USUAL = Thresholds()
WORDS = Symbols(["red", "house", "old", "man", "rotes", "haus", "alter", "mann"])


def side(text):
    """A token for each word, and the end."""
    return given(WORDS, text, after=(EOS,))


def box(table, otherwise):
    """p of each target token by the words that are left out: none of them, all of them, or one of them."""

    def ask(masks):
        rows = []
        for mask in masks.tolist():
            hidden = [place for place, keep in enumerate(mask) if not keep]
            key = "all" if len(hidden) == len(mask) else hidden[0] if hidden else "none"
            rows.append(table.get(key, otherwise))
        return torch.tensor(rows, dtype=torch.float64)

    return ask


GOOD = [0.9, 0.8, 0.95]  # "rotes", "haus" and the end
EMPTY = [0.01, 0.02, 0.1]


def found(table, otherwise=GOOD, source="red house", target="rotes haus"):
    return {one.kind: one for one in check_by(side(source), side(target), box(table, otherwise)).concerns}


# ---------------------------------------------------------------- by probabilities
FINE = {"none": GOOD, "all": EMPTY, 0: [0.1, 0.8, 0.95], 1: [0.9, 0.05, 0.95]}


def test_an_ordinary_translation_is_let_alone():
    assert found(FINE) == {}


def test_what_was_measured_is_told_of_a_good_output_too():
    check = check_by(side("red house"), side("rotes haus"), box(FINE, GOOD))
    assert check.concerns == ()
    assert check.dependence == pytest.approx(1 - math.log(0.9 * 0.8 * 0.95) / math.log(0.01 * 0.02 * 0.1))
    assert check.confidence == pytest.approx((0.9 * 0.8 * 0.95) ** (1 / 3))


def test_questions_keep_all_none_and_all_but_each_word():
    assert questions(side("red old house")).tolist() == [
        [1, 1, 1],
        [0, 0, 0],
        [0, 1, 1],
        [1, 0, 1],
        [1, 1, 0],
    ]
    letters = given(Characters(list("abc ")), "ab c", after=(EOS,))  # the space belongs to the word after it
    assert questions(letters).tolist() == [[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]]


def test_an_output_that_is_as_probable_without_a_source_is_detached():
    none = [0.85, 0.75, 0.95]
    one = found({**FINE, "all": none})["detached"]
    told = 1 - math.log(0.9 * 0.8 * 0.95) / math.log(0.85 * 0.75 * 0.95)
    assert one.value == pytest.approx(told)
    assert f"explains {told:.2f}" in one.message
    assert "detached" not in found(FINE)


def test_an_output_that_is_less_probable_with_its_source_is_detached_and_so_is_a_certain_one():
    assert found({**FINE, "none": EMPTY, "all": GOOD})["detached"].value < 0
    assert found({"none": [1.0] * 3, "all": [1.0] * 3})["detached"].value == 0


def test_of_a_detached_output_no_word_is_called_untranslated():
    kinds = found({"none": GOOD, "all": GOOD}, source="house", target="rotes haus")
    assert set(kinds) == {"detached"}


def test_a_word_without_which_no_token_loses_is_untranslated():
    """Without "house" one token even gains: it had been hindered."""
    table = {"none": GOOD, "all": EMPTY, 0: [0.1, 0.8, 0.95], 1: [0.95, 0.78, 0.95], 2: [0.9, 0.1, 0.95]}
    one = found(table, source="old house man", target="alter mann")["untranslated"]
    assert one.source_words == (1,)
    assert one.value == pytest.approx(0.02)
    assert '"house"' in one.message
    assert "0.02" in one.message


def test_short_words_may_be_translated_by_nothing():
    table = {"none": GOOD, "all": EMPTY, 0: GOOD, 1: [0.9, 0.1, 0.95]}
    assert "untranslated" not in found(table, source="old house")
    table = {"none": GOOD, "all": EMPTY, 0: [0.9, 0.1, 0.95], 1: GOOD}
    assert found(table, source="old house")["untranslated"].source_words == (1,)


def test_improbable_tokens_make_an_output_unsure_and_improbable_words_are_named():
    low = [0.2, 0.01, 0.3]
    one = found({"none": low, "all": [0.001] * 3, 0: [0.0, 0.0, 0.0], 1: [0.0, 0.0, 0.0]})["unsure"]
    assert one.value == pytest.approx((0.2 * 0.01 * 0.3) ** (1 / 3))
    assert one.target_words == (1,)
    odd = [0.9, 0.015, 0.99]
    one = found({"none": odd, "all": [1e-4] * 3}, otherwise=[0.0] * 3)["unsure"]
    assert one.value == pytest.approx((0.9 * 0.015 * 0.99) ** (1 / 3))
    high = [0.99, 0.019, 0.99999]
    lenient = check_by(
        side("red house"), side("rotes haus"), box({"none": high, "all": [1e-4] * 3}, [0.0] * 3), Thresholds(sure=0.1)
    ).concerns
    assert [(one.kind, one.value, one.target_words) for one in lenient] == [("unsure", pytest.approx(0.019), (1,))]
    assert '"haus"' in lenient[0].message


def test_a_probability_of_nothing_has_no_infinite_logarithm():
    kinds = found({"none": [0.0, 0.0, 0.0], "all": [0.0, 0.0, 0.0]}, otherwise=[0.0] * 3)
    assert set(kinds) == {"detached", "unsure"}
    assert all(math.isfinite(one.value) for one in kinds.values())


# ---------------------------------------------------------------- by words
def said_again(target, source="something quite different"):
    one = repetition(words_in(source), words_in(target), USUAL)
    return None if one is None else (one.value, one.target_words, one.message)


@pytest.mark.parametrize(
    ("target", "times", "places"),
    [
        ("ein Mann Mann fährt", 2, (1, 2)),
        ("ein ein ein Mann", 3, (0, 1, 2)),
        ("ein Mann, ein Mann, ein Mann geht", 3, (0, 1, 2, 3, 4, 5)),
        ("und so weiter, und so weiter", 2, (0, 1, 2, 3, 4, 5)),
        ("er geht nach Hause . Er geht nach Hause .", 2, (0, 1, 2, 3, 5, 6, 7, 8)),
    ],
)
def test_what_is_said_again_at_once_is_a_repetition(target, times, places):
    assert said_again(target)[:2] == (times, places)
    assert said_again(target)[2].endswith(f"{times} times in a row")


def test_what_is_said_again_and_again_is_a_repetition():
    value, places, message = said_again("der rote Hund und der rote Ball und der rote Hut")
    assert (value, places) == (3, (0, 1, 4, 5, 8, 9))
    assert message == "says 'der rote' 3 times"


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("die Frau, die die Katze sieht", "the woman who sees the cat"),
        ("sehr sehr groß", "very very big"),
        ("ein Mann und ein Hund und ein Ball", "a man and a dog and a ball"),
        ("nein ... ... ...", "no"),
        ("ein Hund", "a dog"),
        ("", "a dog"),
        ("der rote Hund, der rote Ball, der rote Hut", "the red dog, the red ball, the red hat, the red"),
    ],
)
def test_what_people_say_is_none(target, source):
    assert said_again(target, source) is None


def test_a_source_that_repeats_itself_may_be_repeated_as_often_but_not_more():
    assert said_again("tick tick tick", "tock tock tock") is None
    assert said_again("tick tick tick tick", "tock tock tock")[0] == 4


def test_runs_are_phrases_that_follow_themselves():
    assert list(runs(["a", "b", "b", "b", "c"])) == [(1, 1, 3)]
    assert list(runs(["a", "b", "a", "b", "c"])) == [(0, 2, 2)]
    assert list(runs(["a", "b", "c"])) == []


def test_words_are_compared_without_case_and_punctuation():
    assert [plain("Mann,"), plain("«MANN»"), plain("..."), plain("it's")] == ["mann", "mann", "", "its"]


# ---------------------------------------------------------------- a model
def test_a_model_is_asked_for_the_probabilities_and_long_texts_are_refused():
    letters = Characters(list("ab "))
    options = RecurrentOptions(embedding=5, width=6, dropout=0.0, attention="none", input_feeding=False)
    model = building.build(options, len(letters), len(letters), shared=False, seed=1).eval()
    source, target = (given(letters, text, after=(EOS,)) for text in ("ab ba", "aa b"))
    one = {one.kind: one for one in check_output(model, source, target).concerns}
    assert set(one) == {"detached", "unsure"}  # it has learned nothing
    ids = [[token.id for token in side.tokens] for side in (source, target)]
    row = torch.tensor([ids[0]])
    logits = model(row, row >= 0, torch.tensor([[BOS, *ids[1][:-1]]])).detach()
    log_p = logits[0].log_softmax(-1).gather(-1, torch.tensor(ids[1])[:, None])
    assert one["unsure"].value == pytest.approx(float(log_p.mean().exp()), rel=1e-5)
    with pytest.raises(
        DecodingError, match=r"^target 'aaaa.*513 tokens, expected at most 512 in a text that is checked"
    ):
        check_output(model, source, given(letters, "a" * LONGEST, after=(EOS,)))
