"""What the tests of commands share: a tiny corpus, a model trained on it in a second, and the command line itself."""

import io
import random
import sys
from pathlib import Path

import pytest
from tiny_runs import TINY, Command, Ended, options, write_pairs

from regard.cli.main import main


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
