"""Is one system further ahead on some sentences than on others, or only by chance?"""

from collections.abc import Sequence

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


def chance_of_no_growth(
    a: Sequence[str], b: Sequence[str], references: Sequence[str], here: Sequence[int], there: Sequence[int]
) -> float:
    """How often, with the sentences drawn anew, B's lead over A `there` is no larger than `here`. Koehn 2004.

    The two groups are drawn each for itself, with repetition; both systems have the same sentences in each draw.
    """
    chance = np.random.default_rng(SEED)
    sides = [counts(outputs, references) for outputs in (a, b)]

    def lead(group: Sequence[int]) -> float:
        drawn = chance.choice(np.asarray(group), len(group))
        lower, upper = (bleu_of(side[drawn].sum(0)) for side in sides)
        return upper - lower

    return sum(lead(there) <= lead(here) for _ in range(DRAWS)) / DRAWS
