"""Minimum Bayes risk: of several candidates, the one that the others agree with most. Eikema & Aziz 2020.

A utility is a table u of all candidates: u[i, j] is the score of i if j were the right answer.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

Table = Float[np.ndarray, "n n"]
Utility = Callable[[Sequence[str]], Table]
UtilityName = Literal["chrf", "bleu"]

LETTERS, WORDS = 6, 4  # longest n-grams of chrF and of BLEU
RECALL = 4  # β² of chrF: recall counts twice


def expected(table: Table) -> Float[np.ndarray, " n"]:
    """1/(n−1) Σ_{j≠i} u[i, j]: what each candidate is worth if any of the others may be right; 0 where it is alone."""
    others: Float[np.ndarray, " n"] = table.sum(1) - table.diagonal()
    return others / max(1, len(table) - 1)


def by_agreement(texts: Sequence[str], utility: Utility) -> list[int]:
    """The places of the candidates, most agreed with first; of equals, the one that came first.

    A text that came several times counts as often: for samples, that is how probable it is. It is compared once.
    """
    distinct = list(dict.fromkeys(texts))
    place = {text: i for i, text in enumerate(distinct)}
    own = np.array([place[text] for text in texts])
    worth = expected(utility(distinct)[np.ix_(own, own)])
    # Rounded: sums of equal numbers in another order are still equal.
    return sorted(range(len(texts)), key=lambda i: -round(float(worth[i]), 9))


def common(bags: Sequence[Counter[Hashable]]) -> Table:
    """Σ_g min(count of g in i, count of g in j) for every two bags; the diagonal holds their sizes."""
    columns = {gram: i for i, gram in enumerate(dict.fromkeys(gram for bag in bags for gram in bag))}
    counts = np.zeros((len(bags), len(columns)))
    for row, bag in enumerate(bags):
        for gram, count in bag.items():
            counts[row, columns[gram]] = count
    return np.stack([np.minimum(counts, row).sum(1) for row in counts])


def bags_of(items: Sequence[Sequence[Hashable]], n: int) -> list[Counter[Hashable]]:
    """The n-grams of each."""
    return [Counter(tuple(item[i : i + n]) for i in range(len(item) - n + 1)) for item in items]


def chrf_table(texts: Sequence[str]) -> Table:
    """chrF as sacreBLEU scores a sentence: F₂ of the mean precision and recall of letter 1- to 6-grams. Popović 2015.

    Orders that one side is too short for do not count. Blanks are no letters.
    """
    letters = ["".join(text.split()) for text in texts]
    shape = (len(texts), len(texts))
    precision, recall, orders = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for n in range(1, LETTERS + 1):
        matches = common(bags_of(letters, n))
        sizes = matches.diagonal()
        both = (sizes[:, None] > 0) & (sizes[None] > 0)
        precision += both * matches / np.maximum(sizes, 1)[:, None]
        recall += both * matches / np.maximum(sizes, 1)[None]
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = RECALL * precision + recall
    found: Table = 100 * (1 + RECALL) * precision * recall / np.where(below > 0, below, 1)
    return found


def bleu_table(texts: Sequence[str]) -> Table:
    """BLEU as sacreBLEU scores a sentence: brevity penalty × geometric mean of the precisions of word 1- to 4-grams.

    Orders that the candidate is too short for do not count; the k-th precision that would be 0 is 1/2ᵏ of a match
    (Chen & Cherry 2014, method 3). Words are those of the 13a tokeniser.
    """
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    cut = Tokenizer13a()  # type: ignore[no-untyped-call]
    words = [cut(text.rstrip()).split() for text in texts]
    logs, orders = np.zeros((len(texts), len(texts))), np.zeros((len(texts), 1))
    misses, any_match = np.ones_like(logs), np.zeros(logs.shape, dtype=bool)
    for n in range(1, WORDS + 1):
        matches = common(bags_of(words, n))
        sizes = matches.diagonal()[:, None]
        counts, hit = sizes > 0, matches > 0
        misses = np.where(counts & ~hit, 2 * misses, misses)
        logs += np.where(counts, np.log(np.where(hit, matches, 1 / misses) / np.maximum(sizes, 1)), 0)
        orders += counts
        any_match |= hit
    lengths = np.array([len(line) for line in words], dtype=float)
    shorter = np.minimum(0, 1 - lengths[None] / np.maximum(lengths, 1)[:, None])
    found: Table = any_match * 100 * np.exp(shorter + logs / np.maximum(orders, 1))
    return found


UTILITIES: dict[UtilityName, Utility] = {"chrf": chrf_table, "bleu": bleu_table}
