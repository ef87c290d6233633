"""A tiny recipe, and how a command ended: what the tests of commands have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TINY = (
    "text.kind=characters",
    "model.width=32",
    "model.heads=4",
    "model.feedforward=64",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0.1",
    "model.positions=sinusoid",  # not what a recipe for this little text would choose
    "loss.smoothing=0",
    "data.batch_tokens=256",
    "training.learning_rate=0.01",
    "training.optimiser=adamw",
    "training.schedule=cosine",
    "training.ema=0",
    "training.validations=2",
    "training.threads=1",  # the same sums in every process
)
STUDY = (  # what every row of a study has
    "text.kind=characters",
    "model.width=16",
    "data.batch_tokens=256",
    "training.threads=1",  # the same sums in every process
    "training.validations=1",
    "training.save_every=5",
    "decoding.cap=8",
)


def options(*settings: str) -> list[str]:
    """The recipe of a tiny model that says little, as options of `regard train`; later settings win."""
    return [part for setting in (*TINY, "decoding.cap=8", *settings) for part in ("--set", setting)]


def write_pairs(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    for side, index in (("source", 0), ("target", 1)):
        (folder / f"{name}.{side}").write_text("".join(f"{pair[index]}\n" for pair in pairs), encoding="utf-8")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.removesuffix("\n").split("\n") if self.out else []

    def refused(self, *words: str) -> None:
        """One line, exit code 1, nothing on stdout, and the line says all of `words`."""
        assert (self.code, self.out) == (1, ""), self
        assert self.err.startswith("regard: ")
        assert self.err.count("\n") == 1
        for word in words:
            assert word in self.err


Command = Callable[..., Ended]
