"""The Transformer's decoder for inference: the same numbers in fewer, larger steps, for the usual choice of parts.

Keys and values stay where the step that made them left them, and the memory where the encoder's product did. A row only
knows which row of each step it descends from, and its sentence: a search that reorders, repeats and drops rows
moves nothing else, and padding is not read. `TransformerDecoder` is the reference, and a test holds the two equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Int32
from torch import Tensor, nn

from regard.errors import DecodingError
from regard.layers.embedding import TokenEmbedding
from regard.layers.feedforward import FeedForward
from regard.layers.positions import Added, Unplaced
from regard.models.interface import Memory, OutputLayer
from regard.models.lean import Affine, Inner, Joint, joints
from regard.models.transformer import DecoderLayer, TransformerDecoder
from regard.native.inference import Choice, Entry, LayerWeights, Native, Panels, Sources, Weights


@dataclass(frozen=True)
class SwiftState:
    """n rows after t tokens: past[layer][step] has query, key and value of each row that the step had.

    origin[r, step] is the row of that step that r descends from, sentence[r] the sentence that it translates.
    """

    past: tuple[tuple[Float[Tensor, "_ _"], ...], ...]
    origin: Int32[Tensor, "n t"]
    sentence: Int32[Tensor, " n"]
    sources: Sources

    def select(self, rows: Int[Tensor, " k"]) -> "SwiftState":
        return replace(self, origin=self.origin[rows], sentence=self.sentence[rows])


class SwiftLayer:
    """One decoder layer's weights, and what it does with one token a row."""

    def __init__(self, layer: DecoderLayer, joints: Sequence[Joint], native: Native) -> None:
        cross = layer.cross
        self.heads, self.cross_heads, self.native = layer.attention.heads, cross.heads, native
        self.packed, self.query = Affine.of(layer.attention.packed, native), Affine.of(cross.query, native)
        self.remembered, self.inner = (
            Affine.of(cross.packed, native),
            Inner(cast(FeedForward, layer.feedforward), native),
        )
        self.after_attention, self.after_cross, self.after_feedforward = joints

    def weights(self) -> LayerWeights:
        """All but those of the memory, in the order in which they are met."""
        firsts = (self.packed, self.query, self.inner.affine)
        joints = (self.after_attention, self.after_cross, self.after_feedforward)
        return [
            (first.panels, joint.last.panels, joint.norm.gain, joint.norm.shift)
            for first, joint in zip(firsts, joints, strict=True)
        ]

    def __call__(
        self,
        x: Float[Tensor, "n d"],
        y: Float[Tensor, "n d"],
        past: Sequence[Float[Tensor, "_ qkv"]],
        seen: Float[Tensor, "entries kv"],
        state: SwiftState,
        angles: Float[Tensor, "1 e"] | None,
    ) -> tuple[Float[Tensor, "n d"], tuple[Float[Tensor, "_ qkv"], ...]]:
        """What the next layer reads as y, and the past with this token in it; the stream x is written over.

        `state` knows this token already: its `origin` has a column for it.
        """
        packed = self.packed(y)
        if angles is not None:
            self.native.turn(packed, angles, self.heads)
        past = (*past, packed)
        y = self.after_attention(x, self.native.past(past, state.origin, self.heads))
        q, sources = self.query(y), state.sources
        found = self.native.memory(q, seen, state.sentence, sources.places, sources.counts, self.cross_heads)
        y = self.after_cross(x, found)
        return self.after_feedforward(x, self.inner(y)), past


class SwiftDecoder:
    """A TransformerDecoder of full attention, layer norms and plain feed-forward layers; see the top of this file."""

    def __init__(self, decoder: TransformerDecoder, native: Native) -> None:
        layers = [cast(DecoderLayer, layer) for layer in decoder.layers]
        lasts, arounds = zip(*(part for layer in layers for part in parts(layer)), strict=True)
        self.first, joined = joints(lasts, arounds, decoder.norm, native)
        self.layers = [SwiftLayer(layer, joined[3 * i : 3 * i + 3], native) for i, layer in enumerate(layers)]
        self.entrance, self.relation, self.native = decoder.entrance, decoder.relation, native
        norm, rectified = joined[0].norm, all(layer.inner.activation is F.relu for layer in self.layers)
        # Pruned layers may have unequally many heads; the one call for all layers knows one number.
        heads = {count for layer in self.layers for count in (layer.heads, layer.cross_heads)}
        weights = [layer.weights() for layer in self.layers]
        alike = rectified and len(heads) == 1
        self.weights = Weights(weights, heads.pop(), self.first is None, norm.epsilon) if alike else None
        self.output: OutputLayer = Output(decoder.output, native)

    def begin(self, memory: Memory) -> SwiftState:
        real = memory.values[memory.mask]
        entries = memory.mask.flatten().cumsum(0, dtype=torch.int32).view_as(memory.mask) - 1
        sources = Sources(
            places=entries.gather(1, memory.mask.logical_not().to(torch.uint8).argsort(stable=True, dim=1)),
            counts=memory.mask.sum(1, dtype=torch.int32),
            seen=tuple(layer.remembered(real) for layer in self.layers),
        )
        sentence = torch.arange(len(memory.mask), dtype=torch.int32)
        return SwiftState(((),) * len(self.layers), sentence.new_empty(len(sentence), 0), sentence, sources)

    def features(self, tokens: Int[Tensor, "n t"], state: SwiftState) -> tuple[Float[Tensor, "n t d"], SwiftState]:
        if tokens.shape[1] == 1:
            x, state = self.step(tokens, state)
            return x[:, None], state
        found = []
        for token in torch.split(tokens, 1, 1):
            x, state = self.step(token, state)
            found.append(x)
        return torch.stack(found, 1), state

    def step(self, token: Int[Tensor, "n 1"], state: SwiftState) -> tuple[Float[Tensor, "n d"], SwiftState]:
        length, itself = state.origin.shape[1], torch.arange(len(token), dtype=torch.int32)
        state = replace(state, origin=torch.cat([state.origin, itself[:, None]], 1))
        x, pasts, angles = self.entrance(token, length)[:, 0], [], self.relation(1, length).angles
        y = self.first(x) if self.first else x
        if self.weights:
            return self.at_once(x.clone(), y.clone(), state, angles)
        for layer, past, seen in zip(self.layers, state.past, state.sources.seen, strict=True):
            y, grown = layer(x, y, past, seen, state, angles)
            pasts.append(grown)
        return y, replace(state, past=tuple(pasts))

    def at_once(
        self, x: Float[Tensor, "n d"], y: Float[Tensor, "n d"], state: SwiftState, angles: Float[Tensor, "1 e"] | None
    ) -> tuple[Float[Tensor, "n d"], SwiftState]:
        """All layers in one call."""
        assert self.weights
        packed = self.native.decode(x, y, self.weights, state.past, state.origin, state.sentence, state.sources, angles)
        pasts = tuple((*past, own) for past, own in zip(state.past, packed, strict=True))
        return y, replace(state, past=pasts)

    def write(self, memory: Memory, limits: Int[Tensor, " n"], choice: Choice) -> list[list[int]] | None:
        """What greedy search writes for each sentence, in one call; nothing where it needs step by step.

        An empty line: no column of that sentence had a finite number.
        """
        entry = self.entry(int(limits.max()) if len(limits) else 0)
        if entry is None or self.weights is None:
            return None
        written, lengths = self.native.greedy(self.weights, self.begin(memory).sources, entry, choice, limits)
        return [line[: max(length, 0)] for line, length in zip(written.tolist(), lengths.tolist(), strict=True)]

    def entry(self, longest: int) -> Entry | None:
        """Tokens to vectors for so many steps, if that is a sum."""
        embedding, positions = self.entrance.embedding, self.entrance.positions
        if not isinstance(embedding, TokenEmbedding) or not isinstance(positions, Added | Unplaced):
            return None
        table = embedding.table.weight.detach()
        try:
            rows: Tensor = positions(table.new_zeros(1, longest, table.shape[1]), 0)[0]
        except DecodingError:  # positions that were learned end before the longest output, but perhaps not before ours
            return None
        norm = None if self.first is None else (self.first.gain, self.first.shift)
        return Entry(table, embedding.scale, rows.contiguous(), self.relation(longest, 0).angles, norm)

    def __call__(self, tokens: Int[Tensor, "n t"], state: SwiftState) -> tuple[Float[Tensor, "n t vocab"], SwiftState]:
        features, state = self.features(tokens, state)
        return self.output(features), state


def parts(layer: DecoderLayer) -> list[tuple[nn.Linear, Any]]:
    """The last product of each sub-layer, and what is around it."""
    return [
        (layer.attention.output, layer.around_attention),
        (layer.cross.output, layer.around_cross),
        (cast(FeedForward, layer.feedforward).outer, layer.around_feedforward),
    ]


class Output:
    """The decoder's output layer, packed, with its weight as others ask for it."""

    def __init__(self, output: OutputLayer, native: Native) -> None:
        self.weight: Tensor = output.weight.detach()
        self.bias: Tensor | None = None if output.bias is None else output.bias.detach()
        self.panels, self.native = Panels(self.weight.mT, self.bias), native

    def __call__(self, features: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows vocab"]:
        rows = features.reshape(-1, self.panels.rows).contiguous()
        return self.native.product(rows, self.panels).view(*features.shape[:-1], self.panels.columns)
