"""The tests are sacreBLEU's own, and the sentence says what they found."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from regard.errors import DataError
from regard.evaluation import significance
from regard.evaluation.scores import bleu, chrf, ter
from regard.evaluation.significance import Chance, Difference, Estimate, paired, percent, seed, verdict

PLAIN = {"bleu": (BLEU, bleu), "chrf": (CHRF, chrf), "ter": (TER, ter)}


def corpus(lines: int = 13) -> tuple[list[str], list[str], list[str]]:
    """References, and two systems that lose words at different rates."""
    rng = random.Random(3)
    references = [" ".join(rng.choice("abcdefgh") * 2 for _ in range(rng.randint(5, 9))) for _ in range(lines)]

    def worn(rate: float) -> list[str]:
        return [" ".join(w if rng.random() > rate else "zz" for w in line.split()) for line in references]

    return worn(0.4), worn(0.1), references


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(significance, "RESAMPLES", 60)
    monkeypatch.setattr(significance, "TRIALS", 90)


def test_the_numbers_of_draws_and_the_seed_are_those_of_sacrebleu(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    assert PairedTest._DEFAULT_SAMPLES == {"bs": significance.RESAMPLES, "ar": significance.TRIALS}
    assert seed() == 12345


@pytest.mark.parametrize("metric", PLAIN)
def test_scores_margins_and_chances_agree_with_sacrebleu(metric):
    a, b, references = corpus()
    found = paired(a, b, references, metric)
    kind, score = PLAIN[metric]
    for test, draws, chance in (("bs", 60, found.bootstrap), ("ar", 90, found.randomisation)):
        signatures, results = PairedTest([("x", a), ("y", b)], {"m": kind()}, [references], test, draws)()
        (name,) = signatures
        assert chance == Chance(results[name][1].p_value, str(signatures[name]))
        assert f"{test}:{draws}|seed:12345" in chance.signature
        assert (found.a.score, found.b.score) == (results[name][0].score, results[name][1].score)
        if test == "bs":
            assert (found.a.margin, found.b.margin) == (results[name][0].ci, results[name][1].ci)
    assert found.a.score == score(a, references).score
    assert found.signature == score(b, references).signature


@pytest.mark.parametrize("metric", PLAIN)
def test_the_margin_of_the_difference_is_that_of_resampled_texts(metric):
    a, b, references = corpus()
    kind, _ = PLAIN[metric]
    rng = np.random.default_rng(12345)
    differences = []
    for drawn in rng.choice(len(references), size=(60, len(references))):
        again = [[lines[i] for i in drawn] for lines in (a, b, references)]
        one, other = (kind().corpus_score(outputs, [again[2]]).score for outputs in again[:2])
        differences.append(other - one)
    inner = sorted(differences)[1:-1]  # a fortieth of 60 falls away at either end
    assert paired(a, b, references, metric).margin == pytest.approx((inner[-1] - inner[0]) / 2, rel=1e-5)


@pytest.mark.parametrize("metric", PLAIN)
def test_swapping_the_systems_turns_the_difference_and_keeps_the_chances(metric):
    a, b, references = corpus()
    one, other = paired(a, b, references, metric), paired(b, a, references, metric)
    assert one.difference == -other.difference != 0
    assert one.gain > 0 > other.gain
    assert (one.bootstrap, one.randomisation) == (other.bootstrap, other.randomisation)
    assert one.margin == pytest.approx(other.margin)


@pytest.mark.parametrize("metric", PLAIN)
def test_no_difference_is_no_evidence(metric):
    a, _, references = corpus()
    found = paired(a, a, references, metric)
    assert found.bootstrap.p == found.randomisation.p == 1
    assert found.margin == 0
    assert verdict(found) == f"A and B have the same {found.metric}."


def test_a_system_that_is_right_everywhere_beats_one_that_never_is():
    references = [f"one two three {word} five" for word in ("a", "b", "c", "d", "e", "f", "g", "h")]
    found = paired(["wrong"] * 8, references, references, "chrf")
    assert found.randomisation.p == pytest.approx(1 / 91)  # 2 of 256 shuffles split them so: none here
    assert verdict(found).startswith("B is better by")


@pytest.mark.parametrize("differing", [1, 2, 5])
def test_few_lines_that_differ_prove_little(differing):
    references = [f"one two three {word} five" for word in "abcdefgh"]
    a = ["wrong"] * differing + references[differing:]
    exact = 2 / 2**differing  # of all ways to swap them, the real one and its mirror are the largest
    assert paired(a, references, references, "chrf").randomisation.p == pytest.approx(max(exact, 1 / 91))


def told(metric: str, a: float, b: float, p: float) -> str:
    chance = Chance(p, "")
    return verdict(Difference(metric, Estimate(a, 1.0), Estimate(b, 1.0), 0.7, Chance(0.5, ""), chance, ""))


def test_verdicts_worked_by_hand():
    equally = "were A and B equally good,"
    assert told("BLEU", 30.0, 31.25, 0.003) == (
        f"B is better by 1.25 BLEU: {equally} chance alone would give a difference this large in 0.3 % of cases."
    )
    assert told("BLEU", 31.0, 30.5, 0.42) == (
        f"A is ahead by 0.50 BLEU, which may be chance: {equally} a difference this large would come up in 42 % of "
        "cases."
    )
    assert told("TER", 50.0, 48.0, 0.0001).startswith("B is better by 2.00 TER (less is better)")


@pytest.mark.parametrize(
    ("p", "shown"), [(1.0, "100 %"), (0.996, "100 %"), (0.1, "10 %"), (0.0115, "1.1 %"), (1 / 10_001, "0.01 %")]
)
def test_percents_have_two_digits(p, shown):
    assert percent(p) == shown


def test_another_seed_for_sacrebleu_is_taken_and_stated(monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "77")
    a, b, references = corpus()
    assert "seed:77" in paired(a, b, references, "chrf").bootstrap.signature


@pytest.mark.parametrize("value", ["none", "0", "-1", "x", ""])
def test_a_seed_that_would_give_other_figures_each_time_is_refused(monkeypatch, value):
    monkeypatch.setenv("SACREBLEU_SEED", value)
    with pytest.raises(DataError, match="SACREBLEU_SEED"):
        paired(["a"], ["b"], ["a"], "bleu")


def test_lines_on_which_ter_takes_minutes_are_refused_by_number():
    long = "word " * 151
    assert paired(["a", long], ["b", long], ["a", "short"], "ter").a.score > 0
    with pytest.raises(DataError, match=r"line 2: 151 words against 151.*--metric bleu"):
        paired(["a", "b"], ["a", long], ["a", long], "ter")


def test_unequal_counts_are_refused():
    with pytest.raises(DataError, match="2 hypotheses for 3 references"):
        paired(["a"] * 3, ["a"] * 2, ["a"] * 3, "bleu")
