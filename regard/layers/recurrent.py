"""Recurrent networks: one step as an equation, a cell that owns its weights, layers that run cells over time.

The input of every step is known beforehand, so W x(1..t) is one large product and the loop keeps only U h(t−1).
A hidden position (mask False) leaves the state as it was and puts out zeros, in either direction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def tanh_step(wx: Float[Tensor, "n d"], uh: Float[Tensor, "n d"], _state: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """h(t) = tanh(W x(t) + U h(t−1)) = tanh(W^h [h(t−1); x(t)]) with W^h = [U W]. Elman 1990."""
    return (wx + uh).tanh()


def lstm_step(
    wx: Float[Tensor, "n gates"], uh: Float[Tensor, "n gates"], state: Float[Tensor, "n e"]
) -> Float[Tensor, "n e"]:
    """[h; c](t) with c(t) = f ⊙ c(t−1) + i ⊙ g and h(t) = o ⊙ tanh c(t).

    [i; f; g; o] = W x(t) + U h(t−1), with g through tanh and the others through σ; torch's order of gates.
    Hochreiter and Schmidhuber 1997; Gers et al. 2000.
    """
    i, f, g, o = (wx + uh).chunk(4, dim=-1)
    c = f.sigmoid() * state.chunk(2, dim=-1)[1] + i.sigmoid() * g.tanh()
    return torch.cat([o.sigmoid() * c.tanh(), c], dim=-1)


def gru_step(
    wx: Float[Tensor, "n gates"], uh: Float[Tensor, "n gates"], state: Float[Tensor, "n d"]
) -> Float[Tensor, "n d"]:
    """h(t) = (1 − z) ⊙ m + z ⊙ h(t−1) with m = tanh((W x)_m + r ⊙ (U h)_m).

    [r; z; m] is the order of gates. As in torch, r closes the product U h, where Cho et al. 2014 close h itself.
    """
    (wr, wz, wm), (ur, uz, um) = wx.chunk(3, dim=-1), uh.chunk(3, dim=-1)
    r, z = (wr + ur).sigmoid(), (wz + uz).sigmoid()
    m = (wm + r * um).tanh()
    return m + z * (state - m)


@dataclass(frozen=True)
class Recurrence:
    """An equation and its sizes: `gates` · d rows in W and U, a state of `parts` · d whose first d are h."""

    gates: int
    parts: int
    step: Callable[[Tensor, Tensor, Tensor], Tensor]


TANH = Recurrence(gates=1, parts=1, step=tanh_step)
LSTM = Recurrence(gates=4, parts=2, step=lstm_step)
GRU = Recurrence(gates=3, parts=1, step=gru_step)


class Cell(nn.Module):
    """The weights of one recurrence; U starts orthogonal, gate by gate (Saxe et al. 2014)."""

    def __init__(self, recurrence: Recurrence, inputs: int, width: int) -> None:
        super().__init__()
        self.recurrence, self.width, self.state_width = recurrence, width, recurrence.parts * width
        self.input = nn.Linear(inputs, recurrence.gates * width)
        self.recurrent = nn.Linear(width, recurrence.gates * width)
        for gate in self.recurrent.weight.chunk(recurrence.gates):
            nn.init.orthogonal_(gate)

    def forward(self, wx: Float[Tensor, "n gates"], state: Float[Tensor, "n e"]) -> Float[Tensor, "n e"]:
        """The next state, given W x(t) as `input` computes it for all t at once."""
        return self.recurrence.step(wx, self.recurrent(state[:, : self.width]), state)


def run(
    cell: Cell, wx: Float[Tensor, "n t gates"], state: Float[Tensor, "n e"], mask: Bool[Tensor, "n t"] | None
) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
    """h(1), …, h(t) given W x, and the state after the last visible position; no mask means that all are visible."""
    outputs = []
    visible = [None] * wx.shape[1] if mask is None else mask[:, :, None].unbind(1)
    for step, seen in zip(wx.unbind(1), visible, strict=True):
        new = cell(step, state)
        state = new if seen is None else torch.where(seen, new, state)
        outputs.append(state[:, : cell.width])
    stacked = torch.stack(outputs, dim=1)
    return stacked if mask is None else stacked * mask[:, :, None], state


def unroll(
    cell: Cell, x: Float[Tensor, "n t i"], state: Float[Tensor, "n e"], mask: Bool[Tensor, "n t"] | None
) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
    """The same from x itself."""
    return run(cell, cell.input(x), state, mask)


class OneWay(nn.Module):
    """A layer that reads from left to right."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell, self.width, self.state_width = cell, cell.width, cell.state_width

    def forward(
        self, x: Float[Tensor, "n t i"], state: Float[Tensor, "n e"], mask: Bool[Tensor, "n t"] | None
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
        return unroll(self.cell, x, state, mask)


class BothWays(nn.Module):
    """A layer that reads in both directions: [h→(t); h←(t)]. Schuster and Paliwal 1997.

    Padding on the right comes first for the backward cell, which waits in its starting state until the last word.
    """

    def __init__(self, forwards: Cell, backwards: Cell) -> None:
        super().__init__()
        self.forwards, self.backwards = forwards, backwards
        self.width = forwards.width + backwards.width
        self.state_width = forwards.state_width + backwards.state_width

    def forward(
        self, x: Float[Tensor, "n t i"], state: Float[Tensor, "n e"], mask: Bool[Tensor, "n t"] | None
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
        first, second = torch.split(state, [self.forwards.state_width, self.backwards.state_width], dim=-1)
        right, first = unroll(self.forwards, x, first, mask)
        left, second = unroll(self.backwards, x.flip(1), second, None if mask is None else mask.flip(1))
        return torch.cat([right, left.flip(1)], dim=-1), torch.cat([first, second], dim=-1)


class Skipped(nn.Module):
    """layer(x) + x, where the first values of the layer's input are x. Wu et al. 2016, eq. 6."""

    def __init__(self, layer: OneWay) -> None:
        super().__init__()
        self.layer, self.width, self.state_width = layer, layer.width, layer.state_width

    def forward(
        self, x: Float[Tensor, "n t i"], state: Float[Tensor, "n e"], mask: Bool[Tensor, "n t"] | None
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
        y, state = self.layer(x, state, mask)
        return y + x[..., : self.width], state


class FastForward(nn.Module):
    """[half of f(t); h(t)] with f = W x, what the cell is given: linear in the f below, it passes by every recurrence.

    Zhou et al. 2016, who also pass on one half.
    """

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell, self.passed = cell, fast_forward_width(cell.recurrence, cell.width) - cell.width
        self.width, self.state_width = cell.width + self.passed, cell.state_width

    def forward(
        self, x: Float[Tensor, "n t i"], state: Float[Tensor, "n e"], mask: Bool[Tensor, "n t"] | None
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
        f = self.cell.input(x)
        h, state = run(self.cell, f, state, mask)
        passed = f[..., : self.passed]
        return torch.cat([passed if mask is None else passed.where(mask[..., None], 0.0), h], -1), state


def fast_forward_width(recurrence: Recurrence, width: int) -> int:
    """How wide a fast-forward layer is whose cell is `width` wide."""
    return recurrence.gates * width // 2 + width


class Backwards(nn.Module):
    """A layer that reads from right to left; its last state is that at the first word."""

    def __init__(self, layer: OneWay | Skipped | FastForward) -> None:
        super().__init__()
        self.layer, self.width, self.state_width = layer, layer.width, layer.state_width

    def forward(
        self, x: Float[Tensor, "n t i"], state: Float[Tensor, "n e"], mask: Bool[Tensor, "n t"] | None
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
        y, state = self.layer(x.flip(1), state, None if mask is None else mask.flip(1))
        return y.flip(1), state


Layer = OneWay | BothWays | Skipped | FastForward | Backwards


class Stack(nn.Module):
    """Layers on top of each other, dropout between them; the state joins those of all layers, lowest first.

    The first `context` values of a context stand behind the input of every layer.
    """

    def __init__(self, layers: Sequence[Layer], dropout: nn.Module, context: int = 0) -> None:
        super().__init__()
        self.context = context
        self.layers, self.dropout = nn.ModuleList(layers), dropout
        self.width, self.state_widths = layers[-1].width, [layer.state_width for layer in layers]

    def forward(
        self,
        x: Float[Tensor, "n t i"],
        state: Float[Tensor, "n e"],
        mask: Bool[Tensor, "n t"] | None,
        context: Float[Tensor, "n t c"] | None = None,
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n e"]]:
        last = []
        for depth, (layer, start) in enumerate(
            zip(self.layers, torch.split(state, self.state_widths, -1), strict=True)
        ):
            x = x if depth == 0 else self.dropout(x)
            if context is not None:
                x = torch.cat([x, context[..., : self.context]], -1)
            x, end = layer(x, start, mask)
            last.append(end)
        return x, torch.cat(last, dim=-1)
