"""How much of each place flows through a stack of self-attention into each other place: two estimates, and their data.

Weights of one layer tell only what that layer reads, and what it reads was mixed by the layers below.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.explaining.record import watch


def rollout(weights: Float[Tensor, "layers h t t"]) -> Float[Tensor, "t t"]:
    """Ã_L ⋯ Ã_1 with Ã = ½ (A + I), A the mean over heads, and each row of Ã made to sum to 1.

    R[i, j] is the share of input place j in output place i, if values were passed on unchanged and each residual
    connection carried half. The output plays no part: every label has the same map. Abnar and Zuidema 2020.
    """
    own = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    total = own
    for layer in weights.mean(1):
        mixed = (layer + own) / 2
        total = mixed / mixed.sum(-1, keepdim=True) @ total
    return total


def relevance(weights: Float[Tensor, "layers h t t"], gradients: Float[Tensor, "layers h t t"]) -> Float[Tensor, "t t"]:
    """R ← R + Ā R for each layer from the first, with R = I before it and Ā = E_h[(∂y/∂A ⊙ A)⁺].

    R[i, j] is how relevant input place j is to output place i, counting only attention that raises y. What has no
    effect gets nothing, but there is no unit: compare places of one map only. Chefer et al. 2021, eq. 5 and 6.
    """
    total = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    for layer in (gradients * weights).clamp(min=0).mean(1):
        total = total + layer @ total
    return total


@torch.no_grad()
def recorded(model: nn.Module, run: Callable[[], Any]) -> Float[Tensor, "layers h t t"]:
    """A of every layer. `run` runs the model once, on one row; it has self-attention of equally many heads alone."""
    with watch(model) as calls:
        run()
    return torch.cat([weights for (weights,) in calls.values()])


def recorded_with_gradients(
    model: nn.Module, run: Callable[[], Float[Tensor, ""]]
) -> tuple[Float[Tensor, "layers h t t"], Float[Tensor, "layers h t t"]]:
    """A and ∂y/∂A of every layer, where y is what `run` gives; else as `recorded`."""
    weights, gradients = zip(*by_module(model, run).values(), strict=True)
    return torch.cat(weights), torch.cat(gradients)


def by_module(
    model: nn.Module, run: Callable[[], Float[Tensor, ""]]
) -> dict[str, tuple[Float[Tensor, "n h q k"], Float[Tensor, "n h q k"]]]:
    """A and ∂y/∂A of every attention module that `run` calls, by its path; y is what `run` gives, on any rows.

    A module puts out O = A V, hence ∂y/∂A = ∂y/∂O Vᵀ: the model keeps its fast kernels, which never hold A. Calls of
    one module follow each other, as those of a recurrent decoder do.
    """
    passed: dict[str, list[tuple[Tensor, Tensor]]] = {}  # V and O of each call

    def note(name: str) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        def hook(_module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            passed.setdefault(name, []).append((inputs[1].values, output if isinstance(output, Tensor) else output[0]))

        return hook

    with torch.enable_grad(), ExitStack() as hooks:
        calls = hooks.enter_context(watch(model))
        for name in calls:
            hooks.enter_context(model.get_submodule(name).register_forward_hook(note(name)))
        y = run()
    outputs = [output for each in passed.values() for _, output in each]
    slopes = iter(torch.autograd.grad(y, outputs, materialize_grads=True))
    found = {}
    for name, each in passed.items():
        gradients = [next(slopes) @ values.mT for values, _ in each]
        heads = [one[:, None] if one.ndim == 3 else one for one in gradients]  # recurrent attention has one head
        found[name] = torch.cat(calls[name], dim=2).detach(), torch.cat(heads, dim=2).detach()
    return found
