"""The benchmark of understanding: outputs are spoiled as it says, and gold links go the way of the model."""

import math
import random
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.explain import asked_for
from benchmarks.explained import cost, links
from benchmarks.explained.aligners import Aligners, expanded, written_recipe
from benchmarks.explained.cost import CASTS, ROUNDS, interval, unused
from benchmarks.explained.flags import cases, cut, of_another, said_again, swapped
from benchmarks.explained.links import Known, read_known, scored
from benchmarks.family.bench import recipe_of
from regard.data.pairs import Pair
from regard.evaluation.alignment import AlignmentScore, Gold
from regard.explaining.alignment import Look
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


@dataclass
class Clock:
    """A machine that becomes slower and slower, now and then by much, whoever computes."""

    turns: int = 0

    def slowness(self):
        self.turns += 1
        return (1 + self.turns // 2 / 50) * (4 if self.turns // 2 % 7 == 0 else 1)


@dataclass
class Actor:
    name: str
    clock: Clock
    seconds: float
    asked: list

    def turn(self, asked):
        self.asked.append((self.name, asked["first"], asked["last"]))
        return {"seconds": self.seconds * self.clock.slowness()}


def test_a_machine_that_changes_its_speed_does_not_change_the_ratio(tmp_path, monkeypatch):
    asked, clock = [], Clock(1)
    seconds = {"regard_decoding": 0.98, "regard_explaining": 1.0}

    @contextmanager
    def players(peers, _):
        yield [Actor(peer.name, clock, seconds[peer.name], asked) for peer in peers]

    monkeypatch.setattr(cost, "players", players)
    found = unused(tmp_path, ["a"] * 103, tmp_path)
    assert found == {"recorder_unused_ratio": pytest.approx(0.98), "recorder_unused_spread": pytest.approx(0, abs=1e-9)}
    assert len(asked) == 2 * (ROUNDS + CASTS)
    pairs = list(zip(asked[::2], asked[1::2], strict=True))
    assert all(one[1:] == other[1:] and one[0] != other[0] for one, other in pairs)  # the same texts
    assert {one[0] for one, _ in pairs} == set(seconds)  # either goes first
    decoded = {i for _, first, last in asked for i in range(first, min(last, 103))}
    assert decoded == set(range(103))


def test_the_interval_holds_the_median_as_often_as_it_says():
    """By hand: of 9 draws fewer than 2 lie below the median in (1 + 9) / 512 of all cases, fewer than 3 in 46 / 512."""
    assert interval([9, 1, 8, 2, 7, 3, 6, 4, 5]) == (2, 8)
    assert interval([1, 3, 2, 4, 5]) == (1, 5)
    rng = random.Random(1)
    held = []
    for _ in range(400):
        low, high = interval([rng.expovariate(1.0) for _ in range(60)])
        held.append(low <= math.log(2) <= high)
    assert sum(held) / len(held) >= 0.93


def test_one_word_is_another_outputs():
    for seed in range(9):
        output, where = swapped(OUTPUTS, 2, random.Random(seed))
        before, after = OUTPUTS[2].split(), output.split()
        assert [i for i, (one, other) in enumerate(zip(before, after, strict=True)) if one != other] == [where]
        assert after[where] in OUTPUTS[0].split()
        assert before[where] != "."


class StubAligner:
    """Every look finds the same link in every pair; the mean of a layer has the least error."""

    look = Look(2, 1)

    def __init__(self, links):
        self.links = links

    def rank(self, _pairs, _gold):
        looks = (Look(1), Look(2, 3, "reading"), Look(1, 1))
        return [(look, AlignmentScore()) for look in looks]

    def align(self, pairs, look):
        return [self.links[look]] * len(pairs)


def test_the_best_head_is_a_head_and_nothing_chooses_the_mean(monkeypatch):
    right, wrong = frozenset({(0, 0), (1, 1)}), frozenset({(0, 1), (1, 0)})
    plain = StubAligner({Look(2, 3, "reading"): right, Look(): frozenset({(0, 0), (1, 0)})})
    taught = StubAligner({Look(2, 1): wrong})
    monkeypatch.setattr(links, "load_aligner", {Path("plain"): plain, Path("taught"): taught}.get)
    known = Known("some", [Pair("a b", "c d")] * 4, [Gold(right, right)] * 4)
    found = links.compared(Aligners(Path("plain"), Path("taught"), [wrong] * 2 + [right] * 2), [known])
    assert {name: found[f"aer_{name}"] for name in ("best_head", "average", "guided", "eflomal")} == {
        "best_head": 0,
        "average": 50,
        "guided": 100,
        "eflomal": 0,
    }
    assert found["some: layer of the best head"] == 2
    assert found["some: its number"] == 3
    assert found["some: at reading"] == 1
