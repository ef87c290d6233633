"""Which target tokens a source token turns into: IBM Model 1 (Brown et al. 1993), by expectation maximisation.

Every target token t_j of a pair comes from one of its l source tokens or from NULL (s_0), all equally probable:
p(t | s) = Π_j Σ_i p(t_j | s_i) / (l + 1). The likelihood is concave: EM cannot end in the wrong place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Int32

from regard.data.examples import Example

MOST_LINKS = 16_000_000  # some ten seconds and 600 MB; a pair of m and n tokens has (m + 1) · n links
ENOUGH = 200  # times that a source token was met: more say nothing new about it
ROUNDS = 5  # as Brown et al. 1993; later ones sharpen what is already known


@dataclass(frozen=True)
class Links:
    """Every pair (s_i, t_j) that occurs within an example, as rows of three tables.

    An entry is a source and a target token that occur together, a column is one target token of one example, and a
    link joins them. Source ids are one too high: 0 is NULL.
    """

    source: Int[np.ndarray, " entries"]
    target: Int[np.ndarray, " entries"]
    entry: Int[np.ndarray, " links"]
    column: Int[np.ndarray, " links"]
    fan: Int[np.ndarray, " columns"]  # links of each column, l + 1


def link(examples: Sequence[Example]) -> Links:
    """The links of these examples, each of which has a target."""
    vocab = 1 + max((int(example.target.max()) for example in examples), default=0)
    nothing = np.zeros(0, dtype=np.int64)
    keys, columns, fans, start = [nothing], [nothing], [nothing], 0
    for example in examples:
        source = np.concatenate([[0], example.source.astype(np.int64) + 1])
        keys.append((source[:, None] * vocab + example.target).ravel())
        columns.append(np.tile(np.arange(start, start + len(example.target)), len(source)))
        fans.append(np.full(len(example.target), len(source)))
        start += len(example.target)
    found, entry = np.unique(np.concatenate(keys), return_inverse=True)
    return Links(found // vocab, found % vocab, entry, np.concatenate(columns), np.concatenate(fans))


def add_up(
    places: Int[np.ndarray, " values"], values: Float[np.ndarray, " values"], size: int
) -> Float[np.ndarray, " size"]:
    """The sum of the values at each of `size` places."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)  # of nothing it would be integers


def sums(links: Links, p: Float[np.ndarray, " entries"]) -> Float[np.ndarray, " columns"]:
    """Σ_i p(t_j | s_i) of each column."""
    return add_up(links.column, p[links.entry], len(links.fan))


def improve(links: Links, p: Float[np.ndarray, " entries"]) -> Float[np.ndarray, " entries"]:
    """One round of EM: c(s, t) = Σ p(t_j | s_i) / Σ_k p(t_j | s_k) over its links; p(t | s) = c(s, t) / Σ_t c(s, t)."""
    shares = p[links.entry] / sums(links, p)[links.column]
    counts = add_up(links.entry, shares, len(p))
    totals = add_up(links.source, counts, 1 + int(links.source.max(initial=0)))
    improved: np.ndarray = counts / totals[links.source]
    return improved


def log_likelihood(links: Links, p: Float[np.ndarray, " entries"]) -> float:
    """Σ_j log (Σ_i p(t_j | s_i) / (l + 1)) over all examples."""
    return float(np.log(sums(links, p) / links.fan).sum())


def estimate(links: Links, rounds: int = ROUNDS) -> Float[np.ndarray, " entries"]:
    """p(t | s) of every entry, from a start at which all are equal."""
    p = np.ones(len(links.source))
    for _ in range(rounds):
        p = improve(links, p)
    return p


def telling(examples: Sequence[Example], seed: int, most: int = MOST_LINKS) -> list[Example]:
    """A random choice of examples with at most `most` links that spares what is known: rare tokens keep theirs.

    An example all of whose source tokens were met `ENOUGH` times is left out; so is one without a target.
    """
    vocab = 1 + max((int(example.source.max()) for example in examples if len(example.source)), default=0)
    seen, links, chosen = np.zeros(vocab, dtype=np.int64), 0, []
    for place in np.random.default_rng(seed).permutation(len(examples)):
        example = examples[place]
        links_of_it = (len(example.source) + 1) * len(example.target)
        if not links_of_it or (seen[example.source] >= ENOUGH).all() or links + links_of_it > most:
            continue
        seen[example.source] += 1
        links += links_of_it
        chosen.append(example)
    return chosen


def best_targets(
    links: Links, p: Float[np.ndarray, " entries"], *, vocab: int, most: int, least: float, fill: int
) -> Int32[np.ndarray, "vocab most"]:
    """For each of `vocab` source ids the `most` target ids of highest p(t | s) ≥ `least`, best first, then `fill`."""
    order = np.lexsort((links.target, -p, links.source))
    order = order[p[order] >= least]
    source = links.source[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)  # place among those of the same source
    kept = (rank < most) & (source > 0)  # without NULL
    table = np.full((vocab, most), fill, dtype=np.int32)
    table[source[kept] - 1, rank[kept]] = links.target[order][kept]
    return table


def most_frequent(examples: Sequence[Example], most: int) -> Int[np.ndarray, " found"]:
    """The target ids that occur most often, at most so many of them and none that never occurs; equals by id."""
    counts = np.bincount(np.concatenate([example.target for example in examples]))
    return np.argsort(-counts, kind="stable")[: min(most, np.count_nonzero(counts))]
