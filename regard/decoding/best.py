"""The likeliest tokens of long rows, found without sorting the rows: torch's own topk and argmax are slow there."""

from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.embedding import TiedOutput
from regard.native.inference import Panels, native

HEIGHT = 64  # entries of a stack
SMALL, LARGE = 1e-30, 1e30  # a sum of exponentials between these has lost nothing


def log_softmax_(x: Float[Tensor, "rows n"]) -> Float[Tensor, "rows n"]:
    """x − log Σ exp x, written over x.

    Rows of ordinary size need no maximum taken off before the exponential, which saves a third of the work.
    """
    total = x.exp().sum(-1, keepdim=True)
    if total.numel() and float(total.amin()) > SMALL and float(total.amax()) < LARGE:
        return x.sub_(total.log_())
    return torch.log_softmax(x, -1, out=x)


def in_stacks(x: Float[Tensor, "rows n"]) -> Float[Tensor, "rows stacks height"]:
    """Each row cut into stacks of `HEIGHT` neighbours; −∞ fills the last one."""
    rest = -x.shape[1] % HEIGHT
    return (F.pad(x, (0, rest), value=-torch.inf) if rest else x).view(len(x), (x.shape[1] + rest) // HEIGHT, HEIGHT)


def likeliest(x: Float[Tensor, "rows n"]) -> Int[Tensor, " rows"]:
    """x.argmax(-1): the top of each stack by one vectorised pass, then the place within the highest stack."""
    stacks = in_stacks(x)
    stack = stacks.amax(2).argmax(1)
    return stack * HEIGHT + stacks[torch.arange(len(x), device=x.device), stack].argmax(1)


@runtime_checkable
class Packed(Protocol):
    """An output layer that keeps its weight in panels, too, if C can compute with it."""

    @property
    def panels(self) -> Panels | None: ...


def packed(layer: Any) -> Panels | None:
    """The layer in panels, made now if it is a plain product; none where C cannot compute with it."""
    if isinstance(layer, nn.Linear | TiedOutput) and layer.weight.dtype == torch.float32 and layer.weight.is_cpu:
        return Panels(layer.weight.detach().mT, None if layer.bias is None else layer.bias.detach()) if native else None
    return layer.panels if native and isinstance(layer, Packed) else None


def best_of_features(
    features: Float[Tensor, "rows d"],
    layer: Panels,
    more: Float[Tensor, " rows"] | None,
    total: Float[Tensor, "sentences w"],
    never: Int[Tensor, " b"],
    k: int,
) -> tuple[Float[Tensor, "sentences k"], Int[Tensor, "sentences k"], Int[Tensor, "sentences k"], Tensor]:
    """`best_continuations` of log_softmax(x W + b) without the columns `never`, and the log p of each.

    The last column is `more` than x W + b. Where fewer than k are possible, −∞ stands for the others, in row and column
    0. A row with a NaN has none.
    """
    assert native
    sums, steps, places = native.best_of_product(features.contiguous(), layer, more, total.contiguous(), never, k)
    places.clamp_(min=0)
    return sums, places // layer.columns, places % layer.columns, steps


def best_continuations(
    log_probs: Float[Tensor, "rows n"], total: Float[Tensor, "sentences w"], k: int
) -> tuple[Float[Tensor, "sentences k"], Int[Tensor, "sentences k"], Int[Tensor, "sentences k"]]:
    """The k largest of total + log_probs over all w rows of a sentence, largest first; the row and the column of each.

    They lie in the k stacks with the highest tops, so that only the tops and the members of k stacks are compared.
    """
    (n, w), columns = total.shape, log_probs.shape[1]
    if k * HEIGHT >= columns * w:
        best, place = (log_probs.view(n, w, -1) + total[..., None]).flatten(1).topk(min(k, columns * w))
        return best, place // columns, place % columns
    stacks = in_stacks(log_probs)
    tops = stacks.amax(2).view(n, w, -1) + total[..., None]
    highest = tops.flatten(1).topk(k).indices
    row, stack = highest // stacks.shape[1], highest % stacks.shape[1]
    members = stacks[row + w * torch.arange(n, device=row.device)[:, None], stack]  # (n, k, height)
    best, place = (members + total.gather(1, row)[..., None]).flatten(1).topk(k)
    chosen = place // HEIGHT
    column = stack.gather(1, chosen) * HEIGHT + place % HEIGHT
    # With fewer than k possible, what fills the last stack is as good as any other −∞: it must still be a column.
    return best, row.gather(1, chosen), column.clamp_(max=columns - 1)
