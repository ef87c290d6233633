"""`regard see --map`: what the label of an image depends on, as a picture over it and as numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from regard.commands.rising import converged, watched
from regard.errors import DataError
from regard.explaining.faithfulness import Faithfulness
from regard.explaining.image_map import map_svg
from regard.explaining.image_map_png import map_png
from regard.explaining.rise import Stop
from regard.files import write_atomically
from regard.viewer import Viewer

Kind = Literal["attention", "rollout", "gradient", "rise"]
Pixels = UInt8[np.ndarray, "c y x"]

SEED = 1  # of masks and random maps: the same question has the same answer
RANDOM = 4  # random maps, whose mean faithfulness is that of chance


@dataclass(frozen=True)
class MapRequest:
    """Which map a user asks for, and where it goes; nothing set: none."""

    kind: Kind | None = None
    svg: Path | None = None
    png: Path | None = None
    layer: int | None = None  # counts from 1, as heads do
    head: int | None = None
    masks: int | None = None  # at most
    faithful: bool = False

    @property
    def wanted(self) -> bool:
        return self != MapRequest()

    @property
    def method(self) -> Kind:
        return self.kind or "attention"


@dataclass(frozen=True)
class Map:
    """A number for each place of the image; `panels` is what the picture shows, `facts` what JSON adds."""

    matrix: Float[Tensor, "rows columns"]
    panels: dict[str, Tensor]
    facts: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """How faithful a map is, and how faithful chance would be."""

    own: Faithfulness
    chance: Faithfulness


@dataclass(frozen=True)
class Explained:
    """What `regard see` tells of a map, in JSON and in words."""

    method: Kind
    map: Map
    judged: Judged | None

    def json(self) -> dict[str, object]:
        told: dict[str, object] = {"map": {"method": self.method, **self.map.facts, "matrix": self.map.matrix.tolist()}}
        if self.judged is not None:
            own, chance = self.judged.own, self.judged.chance
            told["faithfulness"] = {
                "deletion": own.deletion,
                "insertion": own.insertion,
                "random": {"deletion": chance.deletion, "insertion": chance.insertion},
            }
        return told

    def line(self) -> str | None:
        """How faithful the map is, where that was asked."""
        if self.judged is None:
            return None
        own, chance = self.judged.own, self.judged.chance
        return (
            f"{self.method}: deletion {own.deletion:.4f} (random {chance.deletion:.4f}, lower is better), "
            f"insertion {own.insertion:.4f} (random {chance.insertion:.4f}, higher is better)"
        )


# ---------------------------------------------------------------- the request
def refuse(request: MapRequest, *, as_json: bool) -> None:
    """Say which wishes do not go together, before a model is loaded."""
    method = request.method
    for kind, path in (("svg", request.svg), ("png", request.png)):
        if path is not None and path.suffix.lower() != f".{kind}":
            raise DataError(f"--{kind} {path}: the picture is a file of {kind.upper()}; let its name end in .{kind}")
    for option, given in (("--layer", request.layer), ("--head", request.head)):
        if given is not None and method != "attention":
            raise DataError(f"{option} {given}: {method} is a map of all layers and heads; use it with --map attention")
    if request.masks is not None and method != "rise":
        raise DataError(f"--masks {request.masks}: {method} asks no masks; use it with --map rise")
    if not (request.svg or request.png or request.faithful or as_json):
        raise DataError(
            f"--map {method}: nothing to write it to; add --svg FILE.svg, --png FILE.png, --json or --faithful"
        )


def chosen(option: str, number: int, count: int) -> int:
    """The index of what a user counts from 1; DataError says what there is."""
    if not 1 <= number <= count:
        raise DataError(f"{option} {number}: the model has {option[2:]}s 1 to {count}; choose one of them")
    return number - 1


# ---------------------------------------------------------------- the maps
def explain(viewer: Viewer, pixels: Pixels, request: MapRequest) -> Explained:
    """The map that is asked for, drawn if there is a place for it, and judged if that is asked."""
    made = MAPS[request.method](viewer, pixels, request)
    title = f"seen: {viewer.lexicon.labels[viewer.likeliest(pixels)]}"
    if request.svg is not None:
        write_atomically(request.svg, map_svg(pixels, made.panels, title))
    if request.png is not None:
        write_atomically(request.png, map_png(pixels, made.panels, title))
    return Explained(request.method, made, judge(viewer, pixels, made.matrix) if request.faithful else None)


def attention(viewer: Viewer, pixels: Pixels, request: MapRequest) -> Map:
    """One layer, the last if none is named: every head in the picture, their mean as the matrix; or one head alone."""
    weights = viewer.attention(pixels)
    layers, heads = weights.shape[:2]
    layer = layers if request.layer is None else request.layer
    found = weights[chosen("--layer", layer, layers)]
    if request.head is not None:
        one = found[chosen("--head", request.head, heads)]
        return Map(one, {f"layer {layer}, head {request.head}": one}, {"layer": layer, "head": request.head})
    panels = {f"head {number}": head for number, head in enumerate(found, start=1)}
    return Map(found.mean(0), panels, {"layer": layer, "heads": found.tolist()})


def rollout(viewer: Viewer, pixels: Pixels, _request: MapRequest) -> Map:
    matrix = viewer.rollout(pixels)
    return Map(matrix, {"rollout": matrix})


def gradient(viewer: Viewer, pixels: Pixels, _request: MapRequest) -> Map:
    matrix = viewer.gradient(pixels)
    return Map(matrix, {"gradient": matrix})


def rise(viewer: Viewer, pixels: Pixels, request: MapRequest) -> Map:
    """Asked until it is certain enough, with lines of progress on stderr."""
    stop = Stop() if request.masks is None else Stop(most=request.masks)
    found = watched("rise", viewer.rise(pixels, stop, torch.Generator().manual_seed(SEED)), stop)
    size = pixels.shape[1:]
    matrix, errors = found.values[:, 0].reshape(size), found.errors[:, 0].reshape(size)
    facts: dict[str, object] = {
        "standard_errors": finite(errors),
        "masks": found.masks,
        "converged": converged(found, stop),
    }
    return Map(matrix, {"rise": matrix}, facts)


def finite(errors: Float[Tensor, "rows columns"]) -> list[list[float | None]]:
    """None, which JSON has, for an infinite error, which it has not: nothing is known of that place."""
    return [[error if math.isfinite(error) else None for error in row] for row in errors.tolist()]


MAPS: dict[Kind, Callable[[Viewer, Pixels, MapRequest], Map]] = {
    "attention": attention,
    "rollout": rollout,
    "gradient": gradient,
    "rise": rise,
}


def judge(viewer: Viewer, pixels: Pixels, matrix: Float[Tensor, "rows columns"]) -> Judged:
    """The map beside random ones, which have a number for each patch, as maps of attention do."""
    generator, (_, rows, columns) = torch.Generator().manual_seed(SEED), pixels.shape
    grid = rows // viewer.patch, columns // viewer.patch
    chance = [viewer.faithfulness(pixels, torch.rand(grid, generator=generator)) for _ in range(RANDOM)]
    mean = Faithfulness(fmean(one.deletion for one in chance), fmean(one.insertion for one in chance))
    return Judged(viewer.faithfulness(pixels, matrix), mean)
