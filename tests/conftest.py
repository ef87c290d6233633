"""What the tests of commands share: a tiny corpus, a model trained on it in a second, and the command line itself."""

import io
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.cli import main

TINY = (
    "text.kind=characters",
    "model.width=32",
    "model.heads=4",
    "model.feedforward=64",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0.1",
    "loss.smoothing=0",
    "data.batch_tokens=256",
    "training.learning_rate=0.01",
    "training.validations=2",
    "training.threads=1",  # the same sums in every process
)


def options(*settings: str) -> list[str]:
    """The recipe of a tiny model that says little, as options of `regard train`; later settings win."""
    return [part for setting in (*TINY, "decoding.cap=8", *settings) for part in ("--set", setting)]


def write_pairs(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    for side, index in (("source", 0), ("target", 1)):
        (folder / f"{name}.{side}").write_text("".join(f"{pair[index]}\n" for pair in pairs), encoding="utf-8")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.source, train.target, test.source, test.target: words, and the same in capitals."""
    folder, rng = tmp_path_factory.mktemp("corpus"), random.Random(7)
    words = ["".join(rng.choice("abcde") for _ in range(rng.randint(2, 4))) for _ in range(400)]
    lines = list(dict.fromkeys(f"{one} {two}" for one, two in zip(words[::2], words[1::2], strict=True)))
    pairs = [(line, line.upper()) for line in lines]
    write_pairs(folder, "train", pairs[:-20])
    write_pairs(folder, "test", pairs[-20:])
    return folder


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


@pytest.fixture
def regard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """regard("translate", model, stdin=b"…") runs the command in this process."""

    def run(*arguments: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main()
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def train(regard: Command, corpus: Path) -> Command:
    """train(out, "--steps", 5, …): `regard train` on the corpus with the tiny recipe, quietly."""

    def run(out: Path, *arguments: object, settings: tuple[str, ...] = ()) -> Ended:
        files = ("--source", corpus / "train.source", "--target", corpus / "train.target")
        return regard("train", *files, "--out", out, "--quiet", *options(*settings), *arguments)

    return run


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A finished model directory; tests only read it."""
    from regard.run import Request, run

    out = tmp_path_factory.mktemp("models") / "tiny"
    settings = (*TINY, "training.save_every=40")
    request = Request(
        source=corpus / "train.source",
        target=corpus / "train.target",
        out=out,
        steps=120,
        settings=settings,
        quiet=True,
    )
    run(request)
    return out
