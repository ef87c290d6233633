"""AdamW in one pass over memory: gradients are scaled on the way, and all tensors of a part are one call."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from regard.native.update import Learner, Learners


class Adam(AdamW):
    """torch's AdamW (Loshchilov & Hutter 2019), the reference of `take`, which goes back to it where C cannot."""

    def __init__(self, groups: list[dict[str, Any]], **options: Any) -> None:
        super().__init__(groups, **options)
        self._places: list[int] = []  # of the weights that `_learners` is made of
        self._learners = Learners(())

    @torch.no_grad()
    def take(self, rate: float, scale: float) -> None:
        """A step at this learning rate along the gradients times `scale`. The gradients may be left scaled."""
        for group in self.param_groups:
            group["lr"] = rate
        learning = [
            (p, group["weight_decay"]) for group in self.param_groups for p in group["params"] if p.grad is not None
        ]
        gradients = [p.grad for p, _ in learning]
        places = [p.data_ptr() for p, _ in learning]
        if places != self._places:
            self._places, self._learners = places, Learners([self._learner(p, decay) for p, decay in learning])
        if self._learners.take(gradients, scale, rate, self.defaults["betas"], self.defaults["eps"]):
            return
        torch._foreach_mul_(gradients, scale)
        self.step()

    def remember(self, p: nn.Parameter, moments: dict[str, Tensor]) -> None:
        """Goes on from these moments of a parameter."""
        self.state[p] = moments
        self._places = []

    def _learner(self, p: nn.Parameter, decay: float) -> Learner:
        """With what is remembered of this parameter, by the names that torch has for it."""
        if not (state := self.state[p]):
            state |= {"step": p.new_zeros(()), "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
        return Learner(p, state["exp_avg"], state["exp_avg_sq"], state["step"], decay)
