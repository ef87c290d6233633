"""AdamW in one pass over memory: gradients are scaled on the way, and all tensors of a part are one call."""

import torch
from torch import nn
from torch.optim import AdamW

from regard.native.update import Learner, adamw


class Adam(AdamW):
    """torch's AdamW (Loshchilov & Hutter 2019), the reference of `take`, which goes back to it where C cannot."""

    @torch.no_grad()
    def take(self, rate: float, scale: float) -> None:
        """A step at this learning rate along the gradients times `scale`. The gradients may be left scaled."""
        for group in self.param_groups:
            group["lr"] = rate
        learners = [
            self.learner(p, group["weight_decay"])
            for group in self.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        if adamw(learners, scale, rate, self.defaults["betas"], self.defaults["eps"]):
            return
        torch._foreach_mul_([learner.gradient for learner in learners], scale)
        self.step()

    def learner(self, p: nn.Parameter, decay: float) -> Learner:
        """With what is remembered of this parameter, by the names that torch has for it."""
        assert p.grad is not None
        if not (state := self.state[p]):
            state |= {"step": p.new_zeros(()), "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
        return Learner(p, state["exp_avg"], state["exp_avg_sq"], p.grad, state["step"], decay)
