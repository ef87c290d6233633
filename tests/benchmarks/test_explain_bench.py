"""The benchmark of understanding: outputs are spoiled as it says, and gold links go the way of the model."""

import random

import pytest

from benchmarks.explain import asked_for
from benchmarks.explained.aligners import expanded, written_recipe
from benchmarks.explained.flags import cases, cut, of_another, said_again
from benchmarks.explained.links import Known, read_known, scored
from benchmarks.family.bench import recipe_of
from regard.data.pairs import Pair
from regard.evaluation.alignment import Gold
from regard.explaining.concerns import Thresholds, repetition
from regard.explaining.sides import words_in

OUTPUTS = ["ein Mann fährt Rad.", "zwei Frauen lachen", "der rote Hund schläft ."]


def test_each_output_comes_as_it_is_and_spoiled_in_turn():
    sources = ["a man", "two women", "the dog"]
    every = cases(sources, OUTPUTS)
    assert [(one.source, one.output, one.kind) for one in every[:3]] == [
        (source, output, None) for source, output in zip(sources, OUTPUTS, strict=True)
    ]
    assert [(one.source, one.kind) for one in every[3:]] == list(
        zip(sources, ["detached", "untranslated", "repetition"], strict=True)
    )
    assert every[3].output == OUTPUTS[1]


def test_outputs_are_spoiled_by_hand():
    rng = random.Random(1)
    assert of_another(OUTPUTS, 2, rng) == OUTPUTS[0]
    assert [cut(OUTPUTS, place, rng) for place in range(3)] == ["ein Mann.", "zwei", "der rote."]
    for place in range(30):
        words = words_in(said_again(OUTPUTS, place % 3, random.Random(place)))
        found = repetition((), words, Thresholds())
        assert found is not None
        assert found.value == 3


def test_gold_links_go_from_what_the_model_reads(tmp_path):
    folder = tmp_path / "some-de-en-set"
    folder.mkdir()
    for name, text in (("test.de", "ein Hund\n"), ("test.en", "a dog barks\n"), ("gold.talp", "0-0 1p2\n")):
        (folder / name).write_text(text, encoding="utf-8")
    german, english = read_known(folder, "de", "en"), read_known(folder, "en", "de")
    assert (german.pairs[0].source, english.pairs[0].source) == ("ein hund", "a dog barks")
    assert german.gold[0].possible == {(0, 0), (1, 2)}
    assert english.gold[0].possible == {(0, 0), (2, 1)}
    assert english.gold[0].sure == {(0, 0)}


def test_what_is_missing_is_said_before_anything_is_measured(tmp_path, capsys):
    with pytest.raises(SystemExit):
        asked_for(["--model", "m", "--data", str(tmp_path)])
    assert "does not hold multi30k" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        asked_for(["--model", "m", "--data", str(tmp_path), "--only", "image"])
    assert "--images" in capsys.readouterr().err


def test_only_the_second_half_of_a_gold_set_is_scored():
    sure = [frozenset({(0, 0)}), frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})]
    known = Known("some", [Pair("a b", "c d")] * 3, [Gold(links, links) for links in sure])
    found = scored([frozenset({(0, 0)}), frozenset({(0, 0), (1, 0)})], known)
    assert (found.links, found.sure, found.found_sure) == (3, 3, 2)


def test_elisions_are_written_out():
    assert expanded("j' ai vu l' an d' or à l'école") == "je ai vu le an de or à l'école"


def test_the_two_models_differ_in_what_a_head_is_taught(tmp_path):
    plain, guided = (recipe_of(written_recipe(tmp_path, "en", "de", name)) for name in ("plain", "guided"))
    assert (plain.loss.guided, guided.loss.guided) == (0, 0.05)
    assert guided.data.corpora[0].alignment == tmp_path / "train.align"
    assert (plain.model, plain.training, plain.text) == (guided.model, guided.training, guided.text)
