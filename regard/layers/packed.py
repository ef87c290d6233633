"""Several projections that one product computed, taken apart: views, whose gradients are put together once."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def parts_of(packed: Float[Tensor, "n t parts h e"]) -> tuple[Tensor, ...]:
    return packed.permute(2, 0, 3, 1, 4).unbind()  # (n, t, parts, h, e) → parts of (n, h, t, e)


class Unpack(torch.autograd.Function):
    """torch would stack the gradients by part, and copy the result into the order of the product.

    Gradients that already lie side by side, as attention.c leaves them, are not copied at all.
    """

    @staticmethod
    def forward(ctx: Any, packed: Float[Tensor, "n t parts h e"]) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(True)
        return parts_of(packed)

    @staticmethod
    def backward(ctx: Any, *gradients: Float[Tensor, "n h t e"]) -> Float[Tensor, "n t parts h e"]:  # noqa: ARG004
        whole = gradients[0]._base
        if whole is not None and whole.dim() == 5 and whole.shape[2] == len(gradients):
            slices = zip(parts_of(whole), gradients, strict=True)
            if all(x.data_ptr() == g.data_ptr() and x.stride() == g.stride() and x.shape == g.shape for x, g in slices):
                return whole
        return torch.stack([g.transpose(1, 2) for g in gradients], 2)


def unpack(packed: Float[Tensor, "n t d"], parts: int, heads: int) -> tuple[Float[Tensor, "n h t e"], ...]:
    """The `parts` projections side by side in the last dimension, each by heads."""
    n, t, d = packed.shape
    whole = packed.reshape(n, t, parts, heads, d // (parts * heads))
    if not whole.requires_grad:
        return parts_of(whole)
    found: tuple[Tensor, ...] = Unpack.apply(whole)  # type: ignore[no-untyped-call]
    return found
