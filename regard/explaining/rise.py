"""RISE: what a black box depends on, found by asking it again and again with random places hidden.

S[i, o] = E[f_o | place i kept] − E[f_o | place i hidden]: what place i adds to output o on average, in the unit of f,
while the other places come and go. A place that f ignores is at 0 but for chance, and standard errors say how much
chance there is. Nothing is known here of what is hidden: pixels, tokens, anything that a mask can stand for.
Petsiuk et al. 2018, whose map is the first of the two terms: the second one moves what does not matter to 0.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DecodingError

# Masks with 1 where a place is kept, 0 where it is hidden, or a share between, to a value of each output for each mask.
Score = Callable[[Float[Tensor, "n places"]], Float[Tensor, "n outputs"]]


@dataclass(frozen=True)
class Stop:
    """Enough was asked: no standard error exceeds `tolerance` times the range of S, or `most` masks were used.

    `least` masks come first: few can agree by chance.
    """

    tolerance: float = 0.05
    least: int = 200
    most: int = 4000

    def __post_init__(self) -> None:
        if self.most < 3:
            raise DecodingError(f"rise: {self.most} masks tell nothing of their own error; ask with 3 or more")


@dataclass(frozen=True)
class Saliency:
    """S and its standard errors after so many masks.

    A place that was always kept, or never, has saliency 0 and an infinite error.
    """

    values: Float[Tensor, "places outputs"]
    errors: Float[Tensor, "places outputs"]
    masks: int

    @property
    def uncertainty(self) -> float:
        """The largest standard error as a share of the range of S: 0 is certain, and from 1 on nothing is known."""
        largest, spread = float(self.errors.max()), float(self.values.max() - self.values.min())
        if not largest:
            return 0.0
        return largest / spread if spread else math.inf


def rise(score: Score, batches: Iterable[Float[Tensor, "_ places"]], stop: Stop) -> Iterator[Saliency]:
    """The saliency after each batch of masks, until the rule stops it: each knows more, and the last is the result.

    Only sums are kept, never the masks.
    """
    sums, asked = torch.zeros(()), 0
    centre: Tensor | None = None
    for batch in batches:
        masks = batch[: stop.most - asked]
        values = score(masks).double()
        if not values.isfinite().all():
            raise DecodingError("rise: an output is not finite, so it has no mean; score by a probability, for one")
        if centre is None:
            centre = values.mean(0)  # S does not change if f moves by a constant, and near 0 no digits cancel
        sums = sums + power_sums(masks.double(), values - centre)
        asked += len(masks)
        found = estimate(sums, asked)
        yield found
        if asked >= stop.most or (asked >= stop.least and found.uncertainty <= stop.tolerance):
            return


def power_sums(
    masks: Float[Tensor, "n places"], values: Float[Tensor, "n outputs"]
) -> Float[Tensor, "3 3 places outputs"]:
    """T[a, b] = Σ mᵃ fᵇ over the masks, for every place and output."""
    m, f = (torch.stack([x**power for power in range(3)]) for x in (masks, values))
    return torch.einsum("anp,bno->abpo", m, f)


def estimate(sums: Float[Tensor, "3 3 places outputs"], masks: int) -> Saliency:
    """S = f₁ − f₀ with f₁ = E[m f] / E[m] and f₀ = E[(1 − m) f] / E[1 − m]; its error is √(E[ψ²] / (n − 2)).

    ψ = m (f − f₁) / E[m] − (1 − m) (f − f₀) / E[1 − m] is how much one mask moves S (its influence function).
    Where masks are 0 or 1, S is the difference of two means, and the error that of Welch 1947. Where they lie between,
    each mask counts on both sides, by its share: S = Cov(m, f) / (E[m] E[1 − m]).
    """
    moments = sums / masks  # E[mᵃ fᵇ]
    kept, hidden = moments[1, 0], 1 - moments[1, 0]
    with_place, without = moments[1, 1] / kept, (moments[0, 1] - moments[1, 1]) / hidden
    psi = {  # the coefficient of mᵃ fᵇ in ψ
        (0, 0): without / hidden,
        (0, 1): -1 / hidden,
        (1, 0): -with_place / kept - without / hidden,
        (1, 1): 1 / kept + 1 / hidden,
    }
    terms = [psi[a, b] * psi[c, d] * moments[a + c, b + d] for (a, b), (c, d) in product(psi, psi)]
    unknown = (kept <= 0) | (hidden <= 0) | (masks <= 2)
    values = (with_place - without).masked_fill(unknown, 0.0)
    errors = (torch.stack(terms).sum(0).clamp(min=0) / max(masks - 2, 1)).sqrt().masked_fill(unknown, math.inf)
    return Saliency(values, errors, masks)


def binary_masks(
    places: int, kept: float, batch: int, generator: torch.Generator
) -> Iterator[Float[Tensor, "batch places"]]:
    """Masks without end: each place is kept with probability `kept`, whatever happens to the others."""
    while True:
        yield (torch.rand(batch, places, generator=generator) < kept).float()
