"""The text that everybody gets: Multi30k, or made-up words; raw for us, as ids of one joint vocabulary for others."""

import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml

from benchmarks.shape import SMOOTHING, Shape
from benchmarks.text import write_lines
from regard.data.corpus import load_corpora
from regard.data.examples import Example
from regard.jobs.translate import learn_vocabularies, translation
from regard.recipe.recipe import Recipe, parse
from regard.text.special import NAMES
from regard.text.tokeniser import Tokeniser

SETS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
SIDES = {"source": "en", "target": "de"}


@dataclass(frozen=True)
class Corpus:
    """A folder: raw/SET.SIDE as published, SET.SIDE in ids, vocabulary.txt, recipe.yaml (`recipe`) of our training."""

    folder: Path
    recipe: Recipe
    tokeniser: Tokeniser
    lengths: list[tuple[int, int]]  # of the training pairs, end tokens counted

    def raw(self, name: str) -> list[str]:
        return (self.folder / "raw" / name).read_text(encoding="utf-8").splitlines()


def multi30k(folder: Path) -> None:
    """The files of REGARD_DATA/multi30k, unpacked."""
    data = Path(os.environ.get("REGARD_DATA", "")) / "multi30k"
    for name, published in SETS.items():
        for side, language in SIDES.items():
            packed = data / f"{published}.{language}.gz"
            if not packed.is_file():
                raise SystemExit(
                    f"REGARD_DATA: found no {packed}; set REGARD_DATA to the folder that holds multi30k/, "
                    "or try the benchmark without it: python -m benchmarks.run --quick"
                )
            (folder / f"{name}.{side}").write_bytes(gzip.decompress(packed.read_bytes()))


def made_up(folder: Path) -> None:
    """A few hundred lines that mean nothing."""
    for seed, (name, lines) in enumerate({"train": 600, "valid": 20, "test": 20}.items()):
        for side in SIDES:
            write_lines(folder / f"{name}.{side}", lines, words=(4, 20), seed=seed)


def corpus(shape: Shape, folder: Path) -> Corpus:
    """Everything that the peers read, made in `folder`."""
    raw = folder / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    (multi30k if shape.real else made_up)(raw)
    tree = settings(shape, raw)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    recipe = parse(tree, "bench")
    loaded = load_corpora(recipe.data, recipe.training.seed)
    vocabularies = learn_vocabularies(recipe, loaded.corpora)
    task, _ = translation(recipe, loaded, vocabularies)
    tokeniser, examples = vocabularies.source, task.data.examples
    write_ids(folder, "train", examples)
    write_ids(folder, "valid", examples[:10])  # a trainer may insist on some; it is never read
    ids = range(len(NAMES), len(tokeniser))
    (folder / "vocabulary.txt").write_text("".join(f"{i}\n" for i in ids), encoding="utf-8")
    lengths = [(len(example.source) + 1, len(example.target) + 1) for example in examples]
    return Corpus(folder, recipe, tokeniser, lengths)


def settings(shape: Shape, raw: Path) -> dict[str, object]:
    """The recipe of our training: every step an AdamW step, nothing saved or validated before the end."""
    files = {name: {side: str(raw / f"{name}.{side}") for side in SIDES} for name in SETS}
    return {
        "data": {"corpora": [files["train"]], "valid": files["valid"], "batch_tokens": shape.batch_tokens},
        "text": {"kind": "bpe", "size": shape.vocabulary, "byte_fallback": shape.real},
        "model": shape.model.model_dump(mode="json"),
        "loss": {"smoothing": SMOOTHING},
        "training": {"steps": 1_000_000, "optimiser": "adamw", "validations": 0, "saves": 1, "ema": 0.0},
    }


def write_ids(folder: Path, name: str, examples: Sequence[Example]) -> None:
    """Ids as words: no tokeniser of a peer can cut them otherwise."""
    for side in SIDES:
        rows = (getattr(example, side).tolist() for example in examples)
        lines = (" ".join(map(str, row)) for row in rows)
        (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def plan(shape: Shape, found: Corpus, work: Path) -> Path:
    """What a training peer must know, as a file."""
    training = found.recipe.training
    content = {
        "text": str(found.folder),
        "recipe": str(found.folder / "recipe.yaml"),
        "work": str(work),
        "sentences": len(found.lengths),
        "threads": torch.get_num_threads(),
        "steps": shape.steps,
        "sgemm_seconds": 0.6 if shape.real else 0.0,  # for each size of product
        "model": shape.model.model_dump(mode="json"),
        "vocabulary": len(found.tokeniser),
        "batch_tokens": shape.batch_tokens,
        "smoothing": SMOOTHING,
        "learning_rate": training.learning_rate,
        "betas": list(training.betas),
        "weight_decay": training.weight_decay,
        "clip": training.clip,
    }
    path = work.with_suffix(".json")
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
