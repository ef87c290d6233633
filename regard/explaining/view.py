"""One map of an explanation, ready to be drawn: of one head or the mean of a layer, by tokens or by words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DecodingError
from regard.explaining.explanation import Block, Explanation, Kind, Method, Saliency, Token, Word
from regard.explaining.roles import best_layer

Group = tuple[str, list[int]]  # a label, and the places of the tokens behind it


@dataclass(frozen=True)
class Which:
    """Which map: none of all three is the mean of the heads that align best."""

    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class View:
    """Rows look at columns; `kind` says which tokens these are."""

    kind: Kind
    title: str
    weights: Float[Tensor, "q k"]
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def view(explanation: Explanation, which: Which) -> View:
    """The map that is asked for; DecodingError says which there are.

    Without a kind, how the output looks at the source, if it does. Without a layer, of these the one whose heads
    together align best (the last, if its kind does not look across texts). Without a head, the mean of all.
    """
    found = blocks_of(explanation, which)
    kind, layer = found[0].kind, found[0].layer
    heads = f"head {found[0].head}" if which.head or len(found) == 1 else f"mean of {len(found)} heads"
    rows, columns = (tuple(token.text for token in tokens) for tokens in explanation.axes(kind))
    return View(kind, f"{kind} attention, layer {layer}, {heads}", mean(found), rows, columns)


def mean(blocks: Sequence[Block]) -> Float[Tensor, "q k"]:
    return torch.tensor([block.weights for block in blocks], dtype=torch.float64).mean(0)


# ---------------------------------------------------------------- choosing
def blocks_of(explanation: Explanation, which: Which) -> list[Block]:
    """The heads whose mean is asked for."""
    if not explanation.attention:
        raise DecodingError(
            f"{explanation.model}: a model without attention, so there are no weights to see; ask for --map rise, "
            "which needs none, or for its probabilities as JSON"
        )
    there = list(dict.fromkeys(block.kind for block in explanation.attention))
    kind: Kind = which.kind or ("cross" if "cross" in there else there[-1])
    if kind not in there:
        raise DecodingError(f"kind {kind}: not in this model, which has {listed(there)}; choose one that is there")
    layers: dict[int, list[Block]] = {}
    for block in explanation.attention:
        if block.kind == kind:
            layers.setdefault(block.layer, []).append(block)
    layer = which.layer if which.layer is not None else usual_layer(kind, layers)
    if layer not in layers:
        raise DecodingError(
            f"layer {layer}: the {kind} attention of this model has layers {listed(layers)}; choose one"
        )
    heads = {block.head: block for block in layers[layer]}
    if which.head is None:
        return list(heads.values())
    if which.head not in heads:
        raise DecodingError(
            f"head {which.head}: layer {layer} of the {kind} attention has heads {listed(heads)}; choose one"
        )
    return [heads[which.head]]


def usual_layer(kind: Kind, layers: dict[int, list[Block]]) -> int:
    """The layer in whose mean map output and source agree most; within a text the last."""
    numbers = sorted(layers)
    return numbers[-1] if kind != "cross" else numbers[best_layer([[mean(layers[one]) for one in numbers]])]


def listed(things: Iterable[object]) -> str:
    """1 → "1", 1 2 3 → "1, 2 and 3"."""
    *first, last = map(str, things)
    return f"{', '.join(first)} and {last}" if first else last


# ---------------------------------------------------------------- what the output depends on
TITLES: dict[Method, str] = {
    "attention": "attention, mean of the layer's heads",
    "rollout": "rollout, attention through all layers",
    "gradient": "gradient × attention, through all layers",
    "rise": "rise, the probability that a token loses without another",
}


def saliency_view(explanation: Explanation, found: Saliency, kind: Kind | None) -> View:
    """One map of an explanation: of the source, or if it is of the kind `decoder`, of what had been read before.

    Without a kind, of the source if there is one.
    """
    chosen: Kind = kind or ("cross" if explanation.source else "decoder")
    values = {"cross": found.values if explanation.source else None, "decoder": found.previous}.get(chosen)
    if values is None:
        raise DecodingError(
            f"kind {chosen}: the map {found.method} does not tell how these depend on each other; leave the kind out, "
            "or choose another map"
        )
    rows, columns = (tuple(token.text for token in tokens) for tokens in explanation.axes(chosen))
    return View(chosen, TITLES[found.method], torch.tensor(values, dtype=torch.float64), rows, columns)


# ---------------------------------------------------------------- words
def by_words(explanation: Explanation, seen: View) -> View:
    """A view of the explanation by words: what the pieces of a word are given, added up; what they give, on average."""
    rows, columns = explanation.axes(seen.kind)
    target = explanation.target.words if explanation.target else ()
    source = explanation.source.words if explanation.source else ()
    down = grouped(rows, source if seen.kind == "encoder" else target)
    across = grouped(columns, target if seen.kind == "decoder" else source)
    return replace(
        seen,
        weights=merged(seen.weights, [places for _, places in down], [places for _, places in across]),
        rows=tuple(label for label, _ in down),
        columns=tuple(label for label, _ in across),
    )


def merged(
    weights: Float[Tensor, "q k"], rows: Sequence[list[int]], columns: Sequence[list[int]]
) -> Float[Tensor, "p c"]:
    """Σ over the keys of a group, mean over its queries: rows that sum to 1 still do."""
    given = torch.stack([weights[:, places].sum(1) for places in columns], 1)
    return torch.stack([given[places].mean(0) for places in rows])


def grouped(tokens: Sequence[Token], words: Sequence[Word]) -> list[Group]:
    """Tokens that share a word together, under its name; a token that is part of none alone."""
    groups: list[tuple[set[int], list[int]]] = []
    for place, token in enumerate(tokens):
        if groups and groups[-1][0] & set(token.words):
            groups[-1][0].update(token.words)
            groups[-1][1].append(place)
        else:
            groups.append((set(token.words), [place]))
    return [(" ".join(words[i].text for i in sorted(own)) or tokens[places[0]].text, places) for own, places in groups]
