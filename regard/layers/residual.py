"""The path around a sub-layer, and where its norm stands."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.dropout import Dropout
from regard.layers.initialise import xavier


def residual(
    z: Float[Tensor, "*rows d"], y: Float[Tensor, "*rows e"], projection: Float[Tensor, "e d"] | None = None
) -> Float[Tensor, "*rows e"]:
    """z + y with y = f(z), or W z + y where f changes the width. He et al. 2016, eq. 1 and 2."""
    return z + y if projection is None else F.linear(z, projection) + y


class Residual(nn.Module):
    """residual(z, f(z), W), owning W where the widths differ."""

    def __init__(self, f: nn.Module, width: int, output_width: int) -> None:
        super().__init__()
        self.f = f
        same = width == output_width
        self.skip = None if same else xavier(nn.Linear(width, output_width, bias=False))

    def forward(self, z: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows e"]:
        return residual(z, self.f(z), None if self.skip is None else self.skip.weight)


@runtime_checkable
class Around(Protocol):
    """A norm and a residual around a sub-layer f: `after(z, f(before(z)))`."""

    def before(self, z: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]: ...
    def after(self, z: Float[Tensor, "n t d"], y: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]: ...
    def __call__(self, z: Float[Tensor, "n t d"], f: Callable[[Tensor], Tensor]) -> Float[Tensor, "n t d"]: ...


class PreNorm(nn.Module):
    """f(LN(z)) + z: the path from top to bottom is never normalised, so that deep stacks train without warm-up."""

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def before(self, z: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]:
        normal: Tensor = self.norm(z)
        return normal

    def after(self, z: Float[Tensor, "n t d"], y: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]:
        return self.dropout.onto(z, y)

    def forward(self, z: Float[Tensor, "n t d"], f: Callable[[Tensor], Tensor]) -> Float[Tensor, "n t d"]:
        return self.after(z, f(self.before(z)))


class PostNorm(nn.Module):
    """LN(f(z) + z): the form of Vaswani et al. 2017."""

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def before(self, z: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]:
        return z

    def after(self, z: Float[Tensor, "n t d"], y: Float[Tensor, "n t d"]) -> Float[Tensor, "n t d"]:
        normal: Tensor = self.norm(self.dropout.onto(z, y))
        return normal

    def forward(self, z: Float[Tensor, "n t d"], f: Callable[[Tensor], Tensor]) -> Float[Tensor, "n t d"]:
        return self.after(z, f(self.before(z)))
