"""Is one system better than another, or only lucky? sacreBLEU's paired tests, and what they say in plain words."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from regard.errors import DataError
from regard.evaluation.scores import LONGEST_FOR_TER, check_pairs

Metric = Literal["bleu", "chrf", "ter"]

NAMES: dict[Metric, str] = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
METRICS: tuple[Metric, ...] = tuple(NAMES)
RESAMPLES, TRIALS = 1_000, 10_000  # sacreBLEU's own
SEED = 12345  # sacreBLEU's own
SEED_VARIABLE = "SACREBLEU_SEED"
LUCK = 0.05  # a p-value from here on may well be chance


@dataclass(frozen=True)
class Estimate:
    """A score of the whole corpus; 95 % of the resampled corpora lie within about ± `margin`."""

    score: float
    margin: float


@dataclass(frozen=True)
class Chance:
    """`p`: how often equally good systems would differ at least as much as these do, by one test.

    The signature says by which test, with how many draws and which seed.
    """

    p: float
    signature: str


@dataclass(frozen=True)
class Difference:
    """One metric of two systems on the same sentences. For TER less is better, `gain` knows it.

    `margin`: 95 % of the resampled corpora have a difference within about ± this. It is less than the margins of A
    and B together, as what is hard for one is mostly hard for the other.
    """

    metric: str
    a: Estimate
    b: Estimate
    margin: float
    bootstrap: Chance
    randomisation: Chance
    signature: str

    @property
    def difference(self) -> float:
        return self.b.score - self.a.score

    @property
    def gain(self) -> float:
        """By how much B is better; below 0, A is."""
        return -self.difference if self.metric == "TER" else self.difference

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "difference": self.difference}


def seed() -> int:
    """The seed of both tests: sacreBLEU's, or that which SACREBLEU_SEED sets for every use of sacreBLEU."""
    asked = os.environ.get(SEED_VARIABLE, str(SEED))
    if not asked.isdecimal() or int(asked) == 0:  # sacreBLEU takes 0 and "none" for no seed at all
        raise DataError(
            f"{SEED_VARIABLE}: found {asked!r}, expected a whole number above 0, so that others get the same; unset it"
        )
    return int(asked)


def paired(a: Sequence[str], b: Sequence[str], references: Sequence[str], metric: Metric) -> Difference:
    """Scores of both, and how likely their difference is by chance: by bootstrap and by approximate randomisation.

    Bootstrap: draw the test set anew, with repetition, and see how much the difference moves. Koehn 2004. sacreBLEU
    counts resamples whose |difference| exceeds its mean by more than the real difference; where A and B are close, |.|
    folds one half of them onto the other, and p comes out too small.
    Randomisation: swap the outputs of A and B in half of the sentences, which changes nothing if they are equally
    good, and see how often the difference is as large as the real one. Riezler & Maxwell 2005.
    """
    check_pairs(a, references)
    check_pairs(b, references)
    if metric == "ter":
        refuse_long(a, b, references)
    seed()
    measure = scorer(metric)
    at_a, at_b, bootstrap = run(measure, a, b, references, "bs")
    _, _, randomisation = run(measure, a, b, references, "ar")
    ours, theirs = (Estimate(float(one.score), float(one.ci)) for one in (at_a, at_b))
    wide = margin(measure, a, b, references)
    return Difference(NAMES[metric], ours, theirs, wide, bootstrap, randomisation, str(measure.get_signature()))


def scorer(metric: Metric) -> Any:
    """The metric as regard.evaluation.scores computes it."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    return {"bleu": BLEU, "chrf": CHRF, "ter": TER}[metric]()


def run(
    measure: Any, a: Sequence[str], b: Sequence[str], references: Sequence[str], test: Literal["bs", "ar"]
) -> tuple[Any, Any, Chance]:
    """sacreBLEU's results for A and B, and the chance that B's names.

    sacreBLEU counts differences strictly larger than the real one, so it would call no difference at all its rarest
    case. Every draw is at least as large as nothing: p is 1 there.
    """
    from sacrebleu.significance import PairedTest

    draws = {"bs": RESAMPLES, "ar": TRIALS}[test]
    signatures, found = PairedTest(  # each name: what it found for A, then for B
        [("A", list(a)), ("B", list(b))], {"": measure}, [list(references)], test_type=test, n_samples=draws
    )()
    (name,) = signatures
    at_a, at_b = cast(list[Any], found[name])
    p = 1.0 if at_a.score == at_b.score else float(at_b.p_value)
    if test == "ar":
        p = max(p, rarest(sum(one != other for one, other in zip(a, b, strict=True))))
    return at_a, at_b, Chance(p, str(signatures[name]))


def margin(measure: Any, a: Sequence[str], b: Sequence[str], references: Sequence[str]) -> float:
    """Half the width of the interval that holds B - A in 95 % of the resamples, those of the paired bootstrap itself.

    sacreBLEU gives the intervals of A and of B but not this one. Its function that resamples one system seeds itself,
    so that both have the same draws.
    """
    from sacrebleu.significance import _bootstrap_resample, estimate_ci

    def resampled(outputs: Sequence[str]) -> Any:
        each = measure._extract_corpus_statistics(list(outputs), [list(references)])
        return np.array([one.score for one in _bootstrap_resample(each, measure, RESAMPLES)[1]])

    return float(estimate_ci(resampled(b) - resampled(a))[1])


def rarest(differing: int) -> float:
    """The least chance that shuffling can show: of 2ⁿ ways to swap n lines that differ, two give the real difference.

    sacreBLEU's count of strictly larger differences leaves these two out.
    """
    return 2.0 ** (1 - differing) if differing else 1.0


def refuse_long(a: Sequence[str], b: Sequence[str], references: Sequence[str]) -> None:
    for number, lines in enumerate(zip(a, b, references, strict=True), 1):
        one, other, reference = (len(line.split()) for line in lines)
        if min(max(one, other), reference) > LONGEST_FOR_TER:
            raise DataError(
                f"line {number}: {max(one, other)} words against {reference}; TER takes minutes beyond "
                f"{LONGEST_FOR_TER}; split the line, or leave TER out (--metric bleu --metric chrf)"
            )


def verdict(found: Difference) -> str:
    """What the figures mean, by approximate randomisation: the bootstrap's p is too small where systems are close."""
    if found.difference == 0:
        return f"A and B have the same {found.metric}."
    better = "B" if found.gain > 0 else "A"
    by = f"{abs(found.gain):.2f} {found.metric}{' (less is better)' if found.metric == 'TER' else ''}"
    p = found.randomisation.p
    if p < LUCK:
        return (
            f"{better} is better by {by}: were A and B equally good, chance alone would give a difference this large "
            f"in {percent(p)} of cases."
        )
    return (
        f"{better} is ahead by {by}, which may be chance: were A and B equally good, a difference this large would "
        f"come up in {percent(p)} of cases."
    )


def percent(p: float) -> str:
    """Two significant digits: 0.01 %, 1.1 %, 42 %, 100 %."""
    return f"{100 * p:.0f} %" if p >= 0.1 else f"{100 * p:.2g} %"
