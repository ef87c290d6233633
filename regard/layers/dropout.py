"""Dropout that is cheap on a CPU: one random byte decides each value."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from regard.native.training import drop_add, fits


def byte_threshold(p: float) -> int:
    """The k for which k/256 is nearest to p: bytes below k are dropped."""
    return round(p * 256)


class Drawing(nn.Module):
    """A module that draws random numbers while training: from `generator`, or from torch's own where that is none.

    Copies of a model that are trained side by side, each in a thread, could not share one: which of them draws first
    is chance.
    """

    generator: torch.Generator | None = None


def random_bytes(like: Float[Tensor, "*shape"], generator: torch.Generator | None = None) -> UInt8[Tensor, "*shape"]:
    """A byte for each value, drawn from the generator, torch's own where there is none.

    One 64-bit draw serves eight values; torch's own `bernoulli_` draws each one, serially, and was 13 % of a step.
    """
    values = like.numel()
    draws = torch.empty((values + 7) // 8, dtype=torch.int64, device=like.device)
    draws.random_(-(2**63), None, generator=generator)
    return draws.view(torch.uint8)[:values].view(like.shape)


def keep_mask(
    like: Float[Tensor, "*shape"], threshold: int, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """1 with probability 1 − threshold/256, else 0."""
    bits = random_bytes(like, generator)
    return torch.ge(bits, threshold, out=torch.empty_like(like, memory_format=torch.contiguous_format))


def dropout(
    x: Float[Tensor, "*shape"], threshold: int, generator: torch.Generator | None = None
) -> Float[Tensor, "*shape"]:
    """x ⊙ m / (1 − p) with m ~ Bernoulli(1 − p) and p = threshold/256: E[result] = x."""
    return x * keep_mask(x.detach(), threshold, generator).mul_(256 / (256 - threshold))


class Dropout(Drawing):
    """Drops values while training and scales the rest by 1/(1 − p); the identity otherwise.

    p is rounded to a multiple of 1/256 and the scale uses the rounded p, so that the mean is exact.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.threshold = min(byte_threshold(p), 255)

    @property
    def active(self) -> bool:
        return self.training and self.threshold > 0

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return dropout(x, self.threshold, self.generator) if self.active else x

    def onto(self, z: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """z + dropout(y)."""
        if self.active and fits(z, y):
            return drop_add(z, y, random_bytes(y.detach(), self.generator), self.threshold)
        dropped: Tensor = self(y)
        return z + dropped


class DropoutScaledAtTest(Drawing):
    """The form of Srivastava et al. 2014: values are dropped unscaled in training, and multiplied by 1 − p at test.

    Equal to `Dropout` in expectation, up to the factor 1 − p that both phases share here.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.threshold = min(byte_threshold(p), 255)

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if self.training:
            return x * keep_mask(x.detach(), self.threshold, self.generator)
        return x * (1 - self.threshold / 256)
