"""Convolutions over time: a position sees a few others, `rate` positions apart, and nothing beyond them.

A convolution takes the positions that it may see and gives (k−1)·r fewer. What it finds before the first position and
behind the last is decided by `surround` (an encoder: zeros on either side) or `follow` (a decoder: its own past).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.initialise import xavier
from regard.layers.norm import LayerNorm


def convolve(
    x: Float[Tensor, "n p d"], weight: Float[Tensor, "e kd"], bias: Float[Tensor, " e"], rate: int
) -> Float[Tensor, "n t e"]:
    """y(t) = b + Σ_j W_j x(t + j·r) for j = 0 … k−1 and every t for which all of them are there.

    W = [W_0 … W_{k−1}] beside each other, so that it is one product with the k inputs beside each other: on a CPU as
    fast as torch's conv1d over whole sentences, and four times as fast one position at a time.
    """
    taps = weight.shape[-1] // x.shape[-1]
    length = x.shape[1] - (taps - 1) * rate
    seen = torch.cat([x[:, tap * rate : tap * rate + length] for tap in range(taps)], -1)
    return F.linear(seen, weight, bias)


def surround(x: Float[Tensor, "n t d"], mask: Bool[Tensor, "n t"], reach: int) -> Float[Tensor, "n p d"]:
    """x with zeros for what is hidden and `reach` zeros around it, half of them on either side."""
    return F.pad(x * mask[..., None], (0, 0, reach // 2, reach - reach // 2))


def follow(
    x: Float[Tensor, "n t d"], past: Float[Tensor, "n r d"]
) -> tuple[Float[Tensor, "n p d"], Float[Tensor, "n r d"]]:
    """x behind its past, and the past of what comes next: as many positions again, the newest ones."""
    joined = torch.cat([past, x], 1)
    return joined, joined[:, x.shape[1] :]


def gated(x: Float[Tensor, "*rows both"]) -> Float[Tensor, "*rows d"]:
    """a ⊙ σ(b) for x = [a; b]: the gated linear unit. Dauphin et al. 2017."""
    return F.glu(x, -1)


class Convolution(nn.Module):
    """Owns the weights of `convolve`; `reach` is how many positions fewer come out."""

    def __init__(self, width: int, output_width: int, taps: int, rate: int) -> None:
        super().__init__()
        self.width, self.rate, self.reach = width, rate, (taps - 1) * rate
        self.linear = xavier(nn.Linear(taps * width, output_width))

    def nothing(self, x: Float[Tensor, "n t d"]) -> Float[Tensor, "n r e"]:
        """The past before the first position: zeros, for the rows of x."""
        return x.new_zeros(len(x), self.reach, self.width)

    def forward(self, x: Float[Tensor, "n p d"]) -> Float[Tensor, "n t e"]:
        return convolve(x, self.linear.weight, self.linear.bias, self.rate)


class DilatedBlock(nn.Module):
    """x + W₂ a(conv(a(W₁ a(x)))) with a(x) = ReLU(LN(x)): narrow, look around at a rate, widen.

    The residual block with rectified linear units of Kalchbrenner et al. 2016. Inside, x is half as wide.
    """

    def __init__(self, width: int, taps: int, rate: int, dropout: nn.Module) -> None:
        super().__init__()
        inner = width // 2
        self.dropout = dropout
        self.norms = nn.ModuleList([LayerNorm(width), LayerNorm(inner), LayerNorm(inner)])
        self.narrow, self.widen = xavier(nn.Linear(width, inner)), xavier(nn.Linear(inner, width))
        self.convolution = Convolution(inner, inner, taps, rate)

    def inside(self, x: Float[Tensor, "n t d"]) -> Float[Tensor, "n t e"]:
        """What the convolution looks at."""
        narrowed: Tensor = self.norms[1](self.narrow(F.relu(self.norms[0](x))))
        return F.relu(narrowed)

    def outside(self, x: Float[Tensor, "n t d"], inner: Float[Tensor, "n p e"]) -> Float[Tensor, "n t d"]:
        y: Tensor = self.dropout(self.widen(F.relu(self.norms[2](self.convolution(inner)))))
        return x + y

    def forward(self, x: Float[Tensor, "n t d"], mask: Bool[Tensor, "n t"]) -> Float[Tensor, "n t d"]:
        """Looks to either side, as far as it is visible."""
        return self.outside(x, surround(self.inside(x), mask, self.convolution.reach))

    def go_on(
        self, x: Float[Tensor, "n t d"], past: Float[Tensor, "n r e"]
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n r e"]]:
        """Looks back only; the second result is the past of the next call."""
        inner, past = follow(self.inside(x), past)
        return self.outside(x, inner), past


class GatedConvolution(nn.Module):
    """GLU(conv(dropout(x))), of the width of x. Gehring et al. 2017, §3.2.

    Its first weights have variance 4 (1 − p) / (k·d), which keeps the variance of x: the gate halves it twice, and
    dropout raises it by 1/(1 − p). §3.5 there.
    """

    def __init__(self, width: int, taps: int, dropout: nn.Module, kept: float) -> None:
        super().__init__()
        self.dropout, self.convolution = dropout, Convolution(width, 2 * width, taps, rate=1)
        nn.init.normal_(self.convolution.linear.weight, std=(4 * kept / (taps * width)) ** 0.5)

    def forward(self, x: Float[Tensor, "n t d"], mask: Bool[Tensor, "n t"]) -> Float[Tensor, "n t d"]:
        """Looks to either side, as far as it is visible."""
        return gated(self.convolution(surround(self.dropout(x), mask, self.convolution.reach)))

    def go_on(
        self, x: Float[Tensor, "n t d"], past: Float[Tensor, "n r d"]
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n r d"]]:
        """Looks back only; the second result is the past of the next call."""
        joined, past = follow(self.dropout(x), past)
        return gated(self.convolution(joined)), past
