"""The Transformer's decoder for inference: the same numbers in fewer, larger steps, for the usual choice of parts.

Weights stand transposed, which few rows read faster. Hypotheses of one sentence share one cache: each knows which of
its entries are its own past, so that a search reorders them without moving a key. `TransformerDecoder` is the
reference, and a test holds the two equal.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from regard.layers.feedforward import FeedForward
from regard.layers.relations import rotate
from regard.layers.residual import PreNorm
from regard.models.interface import Memory, OutputLayer
from regard.models.lean import IN_PLACE, Affine, Norm
from regard.models.transformer import DecoderLayer, TransformerDecoder, together

VECTOR = 16  # numbers that the widest vector unit takes at once


# ---------------------------------------------------------------- caches
class Beside:
    """A cache that one row of each sentence reads: key and value of an entry side by side, written in one go.

    The first `filled` entries are taken. Entries are read in multiples of `VECTOR`: torch's softmax is ten times
    slower on fewer numbers than one vector holds. What waits there is hidden, and zero so that it is a number.
    """

    def __init__(self, data: Float[Tensor, "m room 2 h e"], filled: int) -> None:
        self.data, self.filled = data, filled

    def write(self, entries: Float[Tensor, "m new 2 h e"], at: int) -> "Beside":
        """These entries behind the first `at`: here if nobody wrote there before, else in a copy."""
        end, data = at + entries.shape[1], self.data
        if self.filled != at or whole(end) > data.shape[1]:
            room = data.new_empty(len(entries), whole(2 * end), *data.shape[2:])
            room[:, :at] = data[:, :at]
            room[:, at : whole(at)] = 0
            return Beside(room, at).write(entries, at)
        data[:, at:end] = entries
        if whole(end) > whole(at):
            data[:, end : whole(end)] = 0
        self.filled = end
        return self

    def select(self, sentences: Int[Tensor, " k"]) -> "Beside":
        """The entries of these sentences."""
        return Beside(self.data[:, : whole(self.filled) + VECTOR].index_select(0, sentences), self.filled)

    def read(self, q: Float[Tensor, "m w h e"], hidden: Float[Tensor, "#m 1 #w k"]) -> Float[Tensor, "m h w e"]:
        k, v = self.data[:, : hidden.shape[-1]].permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=hidden)

    def for_many(self) -> "Across":
        return Across.of(self.data[:, : self.filled])


class Across:
    """A cache that several rows of each sentence read: keys stand in columns, so that reading is two plain products.

    The fused kernel takes the heads one by one, and three times as long, where each has only a few queries.
    """

    def __init__(self, keys: Float[Tensor, "m h e room"], values: Float[Tensor, "m h room e"], filled: int) -> None:
        self.keys, self.values, self.filled = keys, values, filled

    @classmethod
    def of(cls, entries: Float[Tensor, "m k 2 h e"]) -> "Across":
        m, k, _, h, e = entries.shape
        room = whole(k)
        return cls(entries.new_empty(m, h, e, room), entries.new_empty(m, h, room, e), 0).write(entries, 0)

    def write(self, entries: Float[Tensor, "m new 2 h e"], at: int) -> "Across":
        end, keys, values = at + entries.shape[1], self.keys, self.values
        if self.filled != at or whole(end) > values.shape[2]:
            return self.copy(at, whole(2 * end)).write(entries, at)
        keys[..., at:end] = entries[:, :, 0].permute(0, 2, 3, 1)
        values[:, :, at:end] = entries[:, :, 1].transpose(1, 2)
        if whole(end) > whole(at):
            keys[..., end : whole(end)] = 0
            values[:, :, end : whole(end)] = 0
        self.filled = end
        return self

    def copy(self, filled: int, room: int) -> "Across":
        """The first `filled` entries, in another place."""
        m, h, e, _ = self.keys.shape
        fresh = Across(self.keys.new_empty(m, h, e, room), self.keys.new_empty(m, h, room, e), filled)
        fresh.keys[..., :filled] = self.keys[..., :filled]
        fresh.values[:, :, :filled] = self.values[:, :, :filled]
        fresh.keys[..., filled : whole(filled)] = 0
        fresh.values[:, :, filled : whole(filled)] = 0
        return fresh

    def select(self, sentences: Int[Tensor, " k"]) -> "Across":
        """The entries of these sentences, and room for a few more."""
        room = whole(self.filled) + VECTOR
        keys, values = self.keys[..., :room], self.values[:, :, :room]
        return Across(keys.index_select(0, sentences), values.index_select(0, sentences), self.filled)

    def read(self, q: Float[Tensor, "m w h e"], hidden: Float[Tensor, "#m 1 #w k"]) -> Float[Tensor, "m h w e"]:
        m, w, h, e = q.shape
        k = hidden.shape[-1]
        flat = q.transpose(1, 2).reshape(m * h, w, e) * e**-0.5
        scores = torch.bmm(flat, self.keys.flatten(0, 1)[..., :k])
        scores.view(m, h, w, k).add_(hidden)
        return torch.bmm(scores.softmax(-1), self.values.flatten(0, 1)[:, :k]).view(m, h, w, e)

    def for_many(self) -> "Across":
        return self


Cache = Beside | Across


def whole(entries: int) -> int:
    """The next multiple of a vector's length."""
    return -(-entries // VECTOR) * VECTOR


@dataclass(frozen=True)
class SwiftState:
    """m sentences, `readers` rows in a row for each, after `length` tokens.

    `own` is 0 where one of the `entries` of the cache belongs to the row's own past and −∞ elsewhere; none: all do.
    """

    length: int
    readers: int
    entries: int
    past: tuple[Cache, ...]
    own: Float[Tensor, "m readers entries"] | None
    memory: tuple[Cache, ...]
    hidden: Float[Tensor, "m 1 1 s"]

    def select(self, rows: Int[Tensor, " n"]) -> "SwiftState":
        m = len(self.hidden)
        sentences, readers = together(rows // self.readers if self.readers > 1 else rows)
        shared = readers > 1 or self.own is not None
        past, memory, hidden, own = self.past, self.memory, self.hidden, None
        if shared:
            past, memory = tuple(store.for_many() for store in past), tuple(store.for_many() for store in memory)
            own = self.owned().flatten(0, 1)[rows].view(len(sentences), readers, self.entries)
        if len(sentences) != m or not torch.equal(sentences, torch.arange(m, device=rows.device)):
            past = tuple(store.select(sentences) for store in past)
            memory = tuple(store.select(sentences) for store in memory)
            hidden = hidden.index_select(0, sentences)
        return SwiftState(self.length, readers, self.entries, past, own, memory, hidden)

    def owned(self) -> Float[Tensor, "m readers entries"]:
        return self.hidden.new_zeros(len(self.hidden), self.readers, self.entries) if self.own is None else self.own

    def grown(self) -> Float[Tensor, "m readers more"] | None:
        """`own` once every row has written an entry, which it alone reads."""
        if self.own is None and self.readers == 1:
            return None
        new = self.hidden.new_full((self.readers, self.readers), -torch.inf).fill_diagonal_(0.0)
        return torch.cat([self.owned(), new.expand(len(self.hidden), -1, -1)], 2)


def closed(shown: Float[Tensor, "#m 1 #w k"]) -> Float[Tensor, "#m 1 #w more"]:
    """The same, with −∞ for the entries up to a whole number of vectors."""
    k = shown.shape[-1]
    return F.pad(shown, (0, whole(k) - k), value=-torch.inf)


# ---------------------------------------------------------------- layers
@dataclass(frozen=True)
class Step:
    """What all layers share for one token: see SwiftState."""

    entries: int
    own: Float[Tensor, "#m 1 #readers more"]
    hidden: Float[Tensor, "m 1 1 s"]
    angles: Float[Tensor, "1 e"] | None


class SwiftLayer:
    """One decoder layer's weights, and what it does with one token a row."""

    def __init__(self, layer: DecoderLayer) -> None:
        attention, cross, feedforward = layer.attention, layer.cross, cast(FeedForward, layer.feedforward)
        arounds = (layer.around_attention, layer.around_cross, layer.around_feedforward)
        self.heads = attention.heads
        self.activation = IN_PLACE.get(feedforward.activation, feedforward.activation)
        self.pre = isinstance(layer.around_attention, PreNorm)
        self.attention_norm, self.cross_norm, self.feedforward_norm = (Norm.of(cast(Any, a)) for a in arounds)
        self.packed, self.output = Affine.of(attention.packed), Affine.of(attention.output)
        self.query, self.remembered, self.cross_output = map(Affine.of, (cross.query, cross.packed, cross.output))
        self.inner, self.outer = Affine.of(feedforward.inner), Affine.of(feedforward.outer)

    def begin(self, memory: Float[Tensor, "m s d"]) -> tuple[Beside, Beside]:
        """An empty cache, and the memory as this layer sees it, computed once."""
        packed = self.remembered(memory.flatten(0, 1))
        seen = packed.view(*memory.shape[:2], 2, self.heads, packed.shape[1] // (2 * self.heads))
        room = seen.new_empty(len(seen), whole(seen.shape[1]), *seen.shape[2:])
        return Beside(seen[:, :0], 0), Beside(room, 0).write(seen, 0)

    def __call__(
        self, x: Float[Tensor, "n d"], past: Cache, memory: Cache, step: Step
    ) -> tuple[Float[Tensor, "n d"], Cache]:
        """What the layer makes of x, which it writes over, and the past with this token in it."""
        m, e = len(step.hidden), self.query.weight.shape[1] // self.heads
        packed = self.packed(self.before(self.attention_norm, x)).view(m, -1, 3, self.heads, e)
        if step.angles is not None:
            turned = packed[:, :, :2]
            packed[:, :, :2] = rotate(turned.flatten(1, 3)[:, :, None], step.angles).view_as(turned)
        past = past.write(packed[:, :, 1:], step.entries)
        seen = side_by_side(past.read(packed[:, :, 0], step.own))
        x = self.after(self.attention_norm, self.output.onto(x, seen))
        q = self.query(self.before(self.cross_norm, x)).view(m, -1, self.heads, e)
        x = self.after(self.cross_norm, self.cross_output.onto(x, side_by_side(memory.read(q, step.hidden))))
        inner = self.activation(self.inner(self.before(self.feedforward_norm, x)))
        return self.after(self.feedforward_norm, self.outer.onto(x, inner)), past

    def before(self, norm: Norm, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        return norm(x) if self.pre else x

    def after(self, norm: Norm, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        return x if self.pre else norm(x)


def side_by_side(heads: Float[Tensor, "m h w e"]) -> Float[Tensor, "n d"]:
    return heads.transpose(1, 2).reshape(-1, heads.shape[1] * heads.shape[3])


class SwiftDecoder:
    """A TransformerDecoder of full attention, layer norms and plain feed-forward layers; see the top of this file."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        self.entrance, self.relation, self.norm = decoder.entrance, decoder.relation, decoder.norm
        self.layers = [SwiftLayer(cast(DecoderLayer, layer)) for layer in decoder.layers]
        self.output: OutputLayer = Output(decoder.output)

    def begin(self, memory: Memory) -> SwiftState:
        past, seen = zip(*(layer.begin(memory.values) for layer in self.layers), strict=True)
        shown = memory.mask[:, None, None]
        hidden = memory.values.new_zeros(shown.shape).masked_fill_(~shown, -torch.inf)
        return SwiftState(0, 1, 0, past, None, seen, closed(hidden))

    def features(self, tokens: Int[Tensor, "n t"], state: SwiftState) -> tuple[Float[Tensor, "n t d"], SwiftState]:
        found = []
        for token in torch.split(tokens, 1, 1):
            x, state = self.step(token, state)
            found.append(x)
        return torch.stack(found, 1), state

    def step(self, token: Int[Tensor, "n 1"], state: SwiftState) -> tuple[Float[Tensor, "n d"], SwiftState]:
        own, entries = state.grown(), state.entries + state.readers
        seen = state.hidden.new_zeros(1, 1, 1, entries) if own is None else own[:, None]
        step = Step(state.entries, closed(seen), state.hidden, self.relation(1, state.length).angles)
        x, pasts = self.entrance(token, state.length)[:, 0], []
        for layer, past, memory in zip(self.layers, state.past, state.memory, strict=True):
            x, store = layer(x, past, memory, step)
            pasts.append(store)
        after = replace(state, length=state.length + 1, entries=entries, past=tuple(pasts), own=own)
        return self.norm(x), after

    def __call__(self, tokens: Int[Tensor, "n t"], state: SwiftState) -> tuple[Float[Tensor, "n t vocab"], SwiftState]:
        features, state = self.features(tokens, state)
        return self.output(features), state


class Output:
    """The decoder's output layer with its weight as one row of features reads it, and as others ask for it."""

    def __init__(self, output: OutputLayer) -> None:
        self.weight: Tensor = output.weight.detach()
        self.bias: Tensor | None = None if output.bias is None else output.bias.detach()
        self.transposed = self.weight.mT.contiguous()

    def __call__(self, features: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows vocab"]:
        logits = features @ self.transposed
        return logits if self.bias is None else logits.add_(self.bias)
