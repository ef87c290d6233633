"""Is one system further ahead on some sentences than on others, or only by chance?"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

DRAWS = 1_000
SEED = 12345  # as for the other tests of significance

Counts = Int[np.ndarray, "n 10"]  # matches of 1 to 4 words, n-grams, words of the output, words of the reference


def counts(outputs: Sequence[str], references: Sequence[str]) -> Counts:
    """What corpus BLEU is a function of, for each sentence; the sum over sentences is that of the corpus."""
    from sacrebleu.metrics.bleu import BLEU

    found = (BLEU().corpus_score([one], [[wanted]]) for one, wanted in zip(outputs, references, strict=True))
    return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found], dtype=int)


def bleu_of(sums: Int[np.ndarray, "10"]) -> float:
    from sacrebleu.metrics.bleu import BLEU

    matches, ngrams, (words, wanted) = sums[:4].tolist(), sums[4:8].tolist(), sums[8:].tolist()
    return float(BLEU.compute_bleu(matches, ngrams, words, wanted, smooth_method="exp").score)


def lead(a: float, b: float) -> float:
    """By how much B is ahead."""
    return b - a


def lost(a: float, b: float) -> float:
    """The share of B's score that A has not. On sentences that are harder for both, leads shrink, and this need not."""
    return 1 - a / b if b else 0.0


def chance_of_no_growth(
    a: Sequence[str],
    b: Sequence[str],
    references: Sequence[str],
    here: Sequence[int],
    there: Sequence[int],
    measure: Callable[[float, float], float] = lead,
) -> float:
    """How often, with the sentences drawn anew, the measure of A's and B's BLEU is no larger `there` than `here`.

    By paired bootstrap, Koehn 2004. The two groups are drawn each for itself, with repetition; both systems have the
    same sentences in each draw. What was found counts as one draw more, so that no p is 0: more draws might show one.
    """
    chance = np.random.default_rng(SEED)
    sides = [counts(outputs, references) for outputs in (a, b)]

    def found(group: Sequence[int]) -> float:
        drawn = chance.choice(np.asarray(group), len(group))
        return measure(*(bleu_of(side[drawn].sum(0)) for side in sides))

    return (sum(found(there) <= found(here) for _ in range(DRAWS)) + 1) / (DRAWS + 1)
