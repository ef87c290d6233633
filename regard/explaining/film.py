"""Attention in the course of training: what a model looked at in a few fixed sentences, again and again.

film.jsonl in the folder of a run holds one `Frame` a line; docs/training.md describes it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from regard.data.pairs import Pair
from regard.errors import DataError
from regard.explaining.alignment import cross_weights
from regard.explaining.record import evaluating
from regard.explaining.roles import agreement, best_layer
from regard.models.interface import SequenceToSequence
from regard.text.special import BOS, EOS, NAMES
from regard.text.tokeniser import Tokeniser

SCENES = 3  # sentences that are followed
LONGEST = 24  # tokens of one side: more could not be read in a small picture
SEARCHED = 200  # pairs that are looked through for sentences of that size
FRAMES = 24  # kept of a run
DECIMALS = 3
Whole = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Scene:
    """One sentence to follow: the ids that the encoder reads and those that the decoder is to write, and their names.

    Both end with the end token. The output is the reference, so that all frames have the same rows.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    columns: tuple[str, ...]
    rows: tuple[str, ...]


class Still(Part):
    """How one output looked at its source at one moment: `layers[layer][target][source]`, means of a layer's heads.

    Older films have one map, `weights`, of the layer that agreed most then.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    layers: Annotated[tuple[tuple[tuple[Share, ...], ...], ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def with_layers(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "weights" not in given or "layers" in given:
            return given
        return {**{key: value for key, value in given.items() if key != "weights"}, "layers": [given["weights"]]}


class Frame(Part):
    """All sentences after `step` steps. `layer`, counted from 1, is the one whose weights agreed most then.

    Frames compare if all are drawn by one layer: that of the last. A frame of one map is drawn by it, whatever its
    layer.
    """

    step: Whole
    layer: Annotated[int, Field(ge=1)]
    pictures: tuple[Still, ...]

    @model_validator(mode="after")
    def has_its_layer(self) -> "Frame":
        if any(1 < len(one.layers) < self.layer for one in self.pictures):
            raise ValueError(f"there is no map of layer {self.layer}")
        return self

    def by(self, layer: int) -> "View":
        """As this layer looked."""
        only = all(len(one.layers) == 1 for one in self.pictures)
        place = 0 if only else layer - 1
        maps = tuple(torch.tensor(one.layers[place]) for one in self.pictures)
        return View(self.step, self.layer if only else layer, maps)


@dataclass(frozen=True)
class View:
    """One map of each sentence, and the layer that they are of."""

    step: int
    layer: int
    maps: tuple[Float[Tensor, "_ _"], ...]

    @property
    def agreement(self) -> float:
        """Mean over sentences of how far output and source choose each other."""
        return fmean(float(agreement(one)) for one in self.maps)


def views(frames: Sequence[Frame]) -> list[View]:
    """Every frame by the layer of the last."""
    return [frame.by(frames[-1].layer) for frame in frames]


# ---------------------------------------------------------------- making
def scenes(pairs: Iterable[Pair], source: Tokeniser, target: Tokeniser) -> tuple[Scene, ...]:
    """The first few pairs that are short enough to be seen at a glance; there may be none."""
    cut = ((source.encode(pair.source), target.encode(pair.target)) for pair in islice(pairs, SEARCHED))
    short = ((read, said) for read, said in cut if 0 < len(read) < LONGEST and 0 < len(said) < LONGEST)
    return tuple(scene(read, said, source, target) for read, said in islice(short, SCENES))


def scene(read: Sequence[int], said: Sequence[int], source: Tokeniser, target: Tokeniser) -> Scene:
    columns, rows = (source.name(id) for id in read), (target.name(id) for id in said)
    return Scene((*read, EOS), (*said, EOS), (*columns, NAMES[EOS]), (*rows, NAMES[EOS]))


def shoot(model: SequenceToSequence, taken: Sequence[Scene], step: int) -> Frame:
    """What the model looks at now. It has attention, and is left in the mode in which it was found."""
    with evaluating(model):
        maps = [heads_mean(model, one) for one in taken]
    layer = best_layer(maps)
    pictures = (
        Still(source=one.columns, target=one.rows, layers=tuple(map(rounded, layers)))
        for one, layers in zip(taken, maps, strict=True)
    )
    return Frame(step=step, layer=layer + 1, pictures=tuple(pictures))


def rounded(weights: Float[Tensor, "t s"]) -> tuple[tuple[float, ...], ...]:
    """For a file; a model that has gone astray gives no numbers, and 0 then."""
    return tuple(map(tuple, weights.double().nan_to_num(0.0).round(decimals=DECIMALS).clamp(0, 1).tolist()))


def heads_mean(model: SequenceToSequence, one: Scene) -> list[Float[Tensor, "t s"]]:
    """Of each layer the mean of its heads; row t is the step that writes target[t]."""
    source, inputs = torch.tensor([one.source]), torch.tensor([(BOS, *one.target[:-1])])
    layers = cross_weights(model, source, torch.ones_like(source, dtype=torch.bool), inputs)
    return [heads[0].mean(0) for heads in layers]


def thinned(frames: Sequence[Frame]) -> list[Frame]:
    """At most FRAMES: while there are more, that one goes whose neighbours are closest to each other, never an end."""
    kept = list(frames)
    while len(kept) > FRAMES:
        gaps = [after.step - before.step for before, after in zip(kept, kept[2:], strict=False)]
        del kept[1 + gaps.index(min(gaps))]
    return kept


# ---------------------------------------------------------------- keeping
def to_lines(frames: Sequence[Frame]) -> str:
    return "".join(f"{frame.model_dump_json()}\n" for frame in frames)


def read_film(path: Path) -> list[Frame]:
    """The frames of a run; none where nothing was filmed. DataError names the line that is none."""
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            found.append(Frame.model_validate_json(line))
        except ValidationError as error:
            problem = error.errors()[0]
            raise DataError(
                f"{path}, line {number}: {problem['msg']}; expected a frame that Regard wrote, remove the file"
            ) from None
    return found
