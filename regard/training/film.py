"""A reader of events that films: at every checkpoint it notes where the model looks in a few fixed sentences."""

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from regard.explaining.film import Frame, Scene, read_film, shoot, thinned, to_lines
from regard.files import write_atomically
from regard.models.interface import SequenceToSequence
from regard.training.events import Event, MemoryChecked, Saved, Started


class Film:
    """One frame before the first step, one at each checkpoint, of the weights as they are then (no moving average).

    The model is replayed in evaluation mode, where nothing is drawn at random: the run goes on as if nobody looked.
    A resumed run first forgets the frames after its step, as its log does.
    """

    def __init__(self, path: Path, model: nn.Module, scenes: Sequence[Scene]) -> None:
        assert isinstance(model, SequenceToSequence)
        self.path, self.model, self.scenes = path, model, scenes
        self.frames: list[Frame] = []
        self.fresh = True

    def read(self, event: Event) -> None:
        match event:
            case Started(resumed_from=step):
                self.fresh = step is None
                self.frames = [] if step is None else [frame for frame in read_film(self.path) if frame.step <= step]
            case MemoryChecked() if self.fresh:  # a resumed run has not read its weights yet
                self._add(0)
            case Saved(step=step):
                self._add(step)
            case _:
                pass

    def _add(self, step: int) -> None:
        frames = [frame for frame in self.frames if frame.step < step]
        self.frames = thinned([*frames, shoot(self.model, self.scenes, step)])
        write_atomically(self.path, to_lines(self.frames))
