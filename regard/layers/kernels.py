"""Attention kernels: fast forms of `attend` that never hold all weights, and the exact weights for who asks.

`Full` sees everything, `Window` its neighbours, `Linear` everything through a sum. A causal kernel sees no future.
Each one gives zeros to a query that sees nothing.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers import masks
from regard.layers.attention import attend
from regard.layers.cache import KeyValues, RunningSums
from regard.layers.dropout import Dropout
from regard.native.attention import attention, suits


def by_pair(bias: Float[Tensor, "h o"] | None, queries: int, keys: int) -> Float[Tensor, "h q k"] | None:
    """B[i, j] = b[j − i]: a bias by distance, laid out by pair. Distances beyond the keys are left out."""
    return None if bias is None else bias[:, -(queries + keys - 1) :].unfold(-1, keys, 1).flip(-2)


def fused(
    q: Float[Tensor, "n h q e"],
    seen: KeyValues,
    visible: Bool[Tensor, "..."] | None,
    bias: Float[Tensor, "h q k"] | None,
    dropout: Dropout,
) -> Float[Tensor, "n h q f"]:
    """attend(q, k, v, visible, bias) by torch's fused kernel, which gives zeros to a row that sees nothing.

    Where weights are dropped it is the reference itself: the fused kernel has none to drop.
    """
    if dropout.active:
        weights: Tensor = dropout(attend(q, seen.keys, seen.values, visible, bias)[1])
        return weights @ seen.values
    adjust: Tensor | None = visible
    if bias is not None:
        adjust = bias[None] if visible is None else bias.masked_fill(~visible, -torch.inf)
    return F.scaled_dot_product_attention(q, seen.keys, seen.values, attn_mask=adjust)


class Full(nn.Module):
    """softmax(q kᵀ / √d + bias) v over every visible key.

    `dropout` above 0 drops weights while training, and leaves the fast kernels for the reference.
    """

    def __init__(self, causal: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.causal, self.dropout = causal, Dropout(dropout)

    def begin(self, keys: Float[Tensor, "n h 0 e"], values: Float[Tensor, "n h 0 f"]) -> KeyValues:
        return KeyValues(keys, values)

    def extend(self, past: KeyValues, keys: Float[Tensor, "n h t e"], values: Float[Tensor, "n h t f"]) -> KeyValues:
        return past.append(keys, values)

    def visible(self, queries: int, keys: Float[Tensor, "n h k e"], mask: Bool[Tensor, "n k"] | None) -> Tensor | None:
        # The newest token alone sees all keys: no mask to make.
        future = masks.causal(queries, keys.shape[2], keys.device) if self.causal and queries > 1 else None
        return masks.both(masks.over_keys(mask), future)

    def forward(
        self,
        q: Float[Tensor, "n h q e"],
        seen: KeyValues,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q f"]:
        queries, keys = q.shape[2], seen.keys.shape[2]
        if bias is None and not self.dropout.active and suits(q, seen.keys, seen.values):
            return attention(q, seen.keys, seen.values, mask, self.causal)
        if self.causal and queries == keys and mask is None and bias is None and not self.dropout.active:
            return F.scaled_dot_product_attention(q, seen.keys, seen.values, is_causal=True)
        return fused(q, seen, self.visible(queries, seen.keys, mask), by_pair(bias, queries, keys), self.dropout)

    def weights(
        self,
        q: Float[Tensor, "n h q e"],
        seen: KeyValues,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q k"]:
        queries, keys = q.shape[2], seen.keys.shape[2]
        visible = self.visible(queries, seen.keys, mask)
        return attend(q, seen.keys, seen.values, visible, by_pair(bias, queries, keys))[1]


# ---------------------------------------------------------------- sliding window
def tiles(x: Float[Tensor, "n h k e"], margins: tuple[int, int], span: int, step: int) -> Float[Tensor, "m h span e"]:
    """Overlapping stretches of `span` positions, one every `step`, as rows; a negative margin cuts off."""
    stretches = F.pad(x, (0, 0, *margins)).unfold(2, span, step)  # (n, h, stretches, e, span)
    return stretches.permute(0, 2, 1, 4, 3).flatten(0, 1)


class Window(nn.Module):
    """`Full` over the keys at most `size` positions away: work grows with t · size, not with t².

    Long inputs go in blocks of queries, each of which meets only the keys that some query of it can see.
    Beltagy et al. 2020.
    """

    def __init__(self, causal: bool, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.causal, self.size, self.dropout = causal, size, Dropout(dropout)
        self.ahead = 0 if causal else size
        self.block = max(size, 32)  # smaller blocks cost more to start than they save

    def begin(self, keys: Float[Tensor, "n h 0 e"], values: Float[Tensor, "n h 0 f"]) -> KeyValues:
        return KeyValues(keys, values)

    def extend(self, past: KeyValues, keys: Float[Tensor, "n h t e"], values: Float[Tensor, "n h t f"]) -> KeyValues:
        return past.last(self.size).append(keys, values)

    def visible(self, queries: int, keys: Float[Tensor, "n h k e"], mask: Bool[Tensor, "n k"] | None) -> Tensor | None:
        band = masks.window(queries, keys.shape[2], self.size, self.ahead, keys.device)
        return masks.both(masks.over_keys(mask), band)

    def forward(
        self,
        q: Float[Tensor, "n h q e"],
        seen: KeyValues,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q f"]:
        queries, keys = q.shape[2], seen.keys.shape[2]
        if queries > 2 * self.block:
            return self.blocked(q, seen, mask, bias)
        return fused(q, seen, self.visible(queries, seen.keys, mask), by_pair(bias, queries, keys), self.dropout)

    def blocked(
        self,
        q: Float[Tensor, "n h q e"],
        seen: KeyValues,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q f"]:
        """The same result: blocks of queries, and the stretches of keys around them, become rows of one call."""
        n, _, queries, _ = q.shape
        block, keys = self.block, seen.keys.shape[2]
        span, rest = self.size + block + self.ahead, -queries % block
        # The first query stands at key position keys − queries, and its stretch begins `size` before it.
        margins = (self.size - (keys - queries), rest + self.ahead)
        real = q.new_ones(n, keys, dtype=torch.bool) if mask is None else mask
        real = F.pad(real, margins).unfold(1, span, block).flatten(0, 1)  # (n, k) → (n·blocks, span)
        # A stretch ends `ahead` keys after its last query, so that seen from there nothing lies ahead.
        near = masks.window(block, span, self.size + self.ahead, 0, q.device)
        if bias is not None:  # keep distances −(block − 1 + size) … block − 1 + ahead of −centre … queries − 1
            centre = bias.shape[-1] - queries
            bias = F.pad(bias, (block - 1 + self.size - centre, block + self.ahead - queries))
        out = fused(
            tiles(q, (0, rest), block, block),
            KeyValues(tiles(seen.keys, margins, span, block), tiles(seen.values, margins, span, block)),
            masks.both(masks.over_keys(real), near),
            by_pair(bias, block, span),
            self.dropout,
        )
        return out.reshape(n, -1, *out.shape[1:]).transpose(1, 2).flatten(2, 3)[:, :, :queries]

    def weights(
        self,
        q: Float[Tensor, "n h q e"],
        seen: KeyValues,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q k"]:
        queries, keys = q.shape[2], seen.keys.shape[2]
        visible = self.visible(queries, seen.keys, mask)
        return attend(q, seen.keys, seen.values, visible, by_pair(bias, queries, keys))[1]


# ---------------------------------------------------------------- linear attention
def positive(x: Float[Tensor, "*rows e"]) -> Float[Tensor, "*rows e"]:
    """φ(x) = elu(x) + 1."""
    return F.elu(x) + 1


def divide(total: Float[Tensor, "*rows f"], norm: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows f"]:
    """total / norm, and zeros where the norm is zero: nothing was seen."""
    return total / norm.masked_fill(norm == 0, 1.0)[..., None]


def linear_attention(q: Float[Tensor, "n h q e"], seen: RunningSums) -> Float[Tensor, "n h q f"]:
    """(φ(q)ᵀ Σ φ(k) vᵀ) / (φ(q)ᵀ Σ φ(k)): every query sees every key, in time ∝ q + k.

    Here q is φ(q) and `seen` holds φ(k). Katharopoulos et al. 2020, eq. 5.
    """
    total = seen.append(seen.keys[:, :, :0], seen.values[:, :, :0])
    return divide(q @ total.sums, (q @ total.norms[..., None])[..., 0])


def in_chunks(x: Float[Tensor, "n h t e"], chunk: int) -> Float[Tensor, "n h c chunk e"]:
    n, h, t, e = x.shape
    return F.pad(x, (0, 0, 0, -t % chunk)).reshape(n, h, -1, chunk, e)


def causal_linear_attention(q: Float[Tensor, "n h t e"], seen: RunningSums, chunk: int) -> Float[Tensor, "n h t f"]:
    """The same sums over keys up to the query: pairs inside a chunk, running sums before it.

    Katharopoulos et al. 2020, eq. 9 to 12, `chunk` tokens at a time.
    """
    t = q.shape[2]
    chunk = min(chunk, t)
    q, k, v = (in_chunks(x, chunk) for x in (q, seen.keys, seen.values))
    pairs = (q @ k.mT).tril()  # (n, h, chunks, t, t)
    sums, norms = k.mT @ v, k.sum(3)
    past = seen.sums[:, :, None] + sums.cumsum(2) - sums
    before = seen.norms[:, :, None] + norms.cumsum(2) - norms
    out = divide(pairs @ v + q @ past, pairs.sum(-1) + (q @ before[..., None])[..., 0])
    return out.flatten(2, 3)[:, :, :t]


class Linear(nn.Module):
    """Attention whose weight is φ(q)·φ(k) / Σ φ(q)·φ(k'): one sum stands for the whole past.

    A bias has no place in a sum. A causal mask may hide padding at the end of the whole input, nothing else: the
    running sums do not know it.
    """

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal, self.chunk = causal, 64

    def begin(self, keys: Float[Tensor, "n h 0 e"], values: Float[Tensor, "n h 0 f"]) -> RunningSums:
        n, h, _, e = keys.shape
        return RunningSums(keys, values, keys.new_zeros(n, h, e, values.shape[-1]), keys.new_zeros(n, h, e))

    def extend(
        self, past: RunningSums, keys: Float[Tensor, "n h t e"], values: Float[Tensor, "n h t f"]
    ) -> RunningSums:
        return past.append(positive(keys), values)

    def forward(
        self,
        q: Float[Tensor, "n h q e"],
        seen: RunningSums,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q f"]:
        assert bias is None, "the recipe refuses this pair"
        seen, q = hide(seen, mask), positive(q)
        return causal_linear_attention(q, seen, self.chunk) if self.causal else linear_attention(q, seen)

    def weights(
        self,
        q: Float[Tensor, "n h q e"],
        seen: RunningSums,
        mask: Bool[Tensor, "n k"] | None,
        bias: Float[Tensor, "h o"] | None,
    ) -> Float[Tensor, "n h q k"]:
        """Weights of the newest keys; what a row lacks to 1 belongs to a past that only its sums remember."""
        assert bias is None, "the recipe refuses this pair"
        seen, q = hide(seen, mask), positive(q)
        pairs = q @ seen.keys.mT
        pairs = pairs.tril() if self.causal else pairs
        return divide(pairs, pairs.sum(-1) + (q @ seen.norms[..., None])[..., 0])


def hide(seen: RunningSums, mask: Bool[Tensor, "n k"] | None) -> RunningSums:
    """The same, where a hidden key adds nothing."""
    if mask is None:
        return seen
    return RunningSums(seen.keys * mask[:, None, :, None], seen.values, seen.sums, seen.norms)
