"""What a newcomer gets: two raw files, no recipe, a time budget; then the score on a test set nobody looked at.

python -m benchmarks.quality multi30k-en-de --budget 15m     → results/quality-multi30k-en-de-15m.json
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import Result, write
from regard.data.readers import read_lines
from regard.evaluation.scores import bleu, bleu_lowercased


@dataclass(frozen=True)
class Corpus:
    """Names beneath the data folder; a pair is (source, target)."""

    train: tuple[str, str]
    test: tuple[str, str]


CORPORA = {
    "multi30k-en-de": Corpus(
        ("multi30k/train.en.gz", "multi30k/train.de.gz"),
        ("multi30k/test_2016_flickr.en.gz", "multi30k/test_2016_flickr.de.gz"),
    ),
}


def unpack(data: Path, name: str, folder: Path) -> Path:
    """The raw file that a user would have."""
    plain = folder / Path(name).name.removesuffix(".gz")
    plain.write_bytes(gzip.decompress((data / name).read_bytes()))
    return plain


def regard(*words: str | Path) -> str:
    """One command, as typed; progress goes to the terminal, the answer comes back."""
    command = [sys.executable, "-m", "regard", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(name: str, budget: str, data: Path) -> None:
    began, corpus = time.monotonic(), CORPORA[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source, target = (unpack(data, file, folder) for file in corpus.train)
        test_source, test_target = (unpack(data, file, folder) for file in corpus.test)
        model, output = folder / "model", folder / "output"
        regard("train", "--source", source, "--target", target, "--out", model, "--budget", budget)
        trained = time.monotonic() - began
        scored = ("--source", test_source, "--target", test_target, "--json")
        best = json.loads(regard("evaluate", model, *scored, "--beam", "5", "--output", output))
        greedy = json.loads(regard("evaluate", model, *scored, "--beam", "1"))
        outputs, references = list(read_lines(output)), list(read_lines(test_target))
        manifest = json.loads((model / "manifest.json").read_text())
    figures = {
        "bleu_cased": bleu(outputs, references).score,
        "bleu_lowercased": bleu_lowercased(outputs, references).score,
        "bleu_cased_greedy": greedy["bleu"]["score"],
        "chrf": best["chrf"]["score"],
        "ter": best["ter"]["score"],
        "perplexity": best["perplexity"],
        "decode_seconds_beam5": best["seconds"],
        "decode_seconds_greedy": greedy["seconds"],
        "train_minutes": trained / 60,
        "steps": manifest["steps"],
    }
    notes = (
        f"Raw text, no recipe, validation carved out of the training text, --budget {budget}; "
        f"{Path(corpus.test[0]).stem} with beam 5. train_minutes is the whole command, final scoring included. "
        f"BLEU: {best['bleu']['signature']}"
    )
    command = f"python -m benchmarks.quality {name} --budget {budget}"
    result = Result(command, (time.monotonic() - began) / 60, figures, notes)
    print(json.dumps(write(f"quality-{name}-{budget}", result)["figures"], indent=2))  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--budget", default="15m")
    given = parser.parse_args()
    data = Path(os.environ.get("REGARD_DATA", ""))
    if not (data / CORPORA[given.corpus].train[0]).is_file():
        parser.error(f"REGARD_DATA: {data} does not hold {CORPORA[given.corpus].train[0]}; name the folder that does")
    measure(given.corpus, given.budget, data)


if __name__ == "__main__":
    main()
