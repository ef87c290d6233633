"""How good translations are: trained by the command line, chosen on the dev set, tested on one that chooses nothing.

python -m benchmarks.quality multi30k-en-de --teachers 30m --budget 55m    → goes on with two models' translations
python -m benchmarks.quality multi30k-en-de --budget 30m --seeds 1 2 3     → results/quality-multi30k-en-de-30m.json
python -m benchmarks.quality tatoeba-en-de                                 → results/quality-tatoeba-en-de.json
python -m benchmarks.quality multi30k-en-de --budget 30m --set model.dropout=0.3 --name dropout --dev    → dev scores

Without --budget the recipe recipes/SET.yaml says how long; with it and without --recipe there is no recipe at all: what
a newcomer gets from two files. Seeds that are finished stay in .bench/quality/; the same command goes on. --dev is for
choosing: nothing is tested, and no result is written.
"""

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import RESULTS, ROOT, Result, page, write
from regard.data.readers import read_lines
from regard.evaluation.scores import Score, bleu, bleu_lowercased, measure
from regard.files import MANIFEST, write_atomically
from regard.studies.provenance import commit

WORK = ROOT / ".bench" / "quality"
BEAM = "5"
SHOWN = 20  # outputs on the page
COMMIT = "commit.txt"  # beside a model: the code that began to train it


@dataclass(frozen=True)
class Corpus:
    """Names beneath the data folder; a pair is (source, target). `language` is the target's, for Moses."""

    train: tuple[str, str]
    valid: tuple[str, str]
    test: tuple[str, str]
    language: str


def corpus(folder: str, source: str, target: str, names: Sequence[str] = ("train", "valid", "test")) -> Corpus:
    pairs = [(f"{folder}/{name}.{source}.gz", f"{folder}/{name}.{target}.gz") for name in names]
    return Corpus(pairs[0], pairs[1], pairs[2], target)


FLICKR = ("train", "val", "test_2016_flickr")
CORPORA = {
    "multi30k-en-de": corpus("multi30k", "en", "de", FLICKR),
    "multi30k-de-en": corpus("multi30k", "de", "en", FLICKR),
    "multi30k-en-fr": corpus("multi30k", "en", "fr", FLICKR),
    "tatoeba-en-es": corpus("tatoeba/en-es", "en", "es"),
    "tatoeba-en-de": corpus("tatoeba/en-de", "en", "de"),
    "libreoffice-help-en-de": corpus("libreoffice-help/en-de", "en", "de"),
}


@dataclass(frozen=True)
class Trial:
    """What is trained, and where its seeds are kept. No recipe: what two files alone give."""

    name: str
    corpus: Corpus
    data: Path
    folder: Path
    recipe: Path | None = None
    budget: str | None = None
    settings: tuple[str, ...] = ()
    teachers: "tuple[Trial, Trial] | None" = None  # there and back: what they make of the text is learned from, too

    def model(self, seed: int) -> Path:
        return self.folder / f"seed-{seed}" / ("made/student" if self.teachers else "model")

    def files(self, part: str) -> list[str | Path]:
        source, target = getattr(self.corpus, part)
        return ["--source", self.data / source, "--target", self.data / target]

    def training(self) -> list[str | Path]:
        """The words of `regard train` but for seed and place."""
        words: list[str | Path] = [self.recipe] if self.recipe else [*self.files("train"), *self.validation()]
        return words + self.changes()

    def changes(self) -> list[str | Path]:
        words: list[str | Path] = ["--budget", self.budget] if self.budget else []
        return words + [word for setting in self.settings for word in ("--set", setting)]

    def validation(self) -> list[str | Path]:
        source, target = self.corpus.valid
        return ["--valid-source", self.data / source, "--valid-target", self.data / target]

    def asked(self) -> dict[str, Any]:
        """What must not change between seeds: the mean of two recipes means nothing."""
        recipe = hashlib.sha256(self.recipe.read_bytes()).hexdigest() if self.recipe else None
        teachers = {"teachers": [one.asked() for one in self.teachers]} if self.teachers else {}
        return {"recipe": recipe, "budget": self.budget, "settings": list(self.settings), **teachers}

    @property
    def how(self) -> str:
        """In words, for the notes of a result."""
        settings = f", {' '.join(self.settings)}" if self.settings else ""
        said = f"{f'recipe {self.recipe.name}' if self.recipe else 'no recipe'}{settings}"
        said += f", budget {self.budget or 'of the recipe'}"
        if self.teachers:
            said += (
                ", begun with the weights of a first model, from the pairs, from their sources with its translations, "
                "and from their targets with those of a model of the other direction (regard distil --start --back); "
                "these two had "
                f"{' and '.join(str(one.budget) for one in self.teachers)}, and the minutes are those of all three, "
                "with the translating"
            )
        return said


# ---------------------------------------------------------------- scores
def moses_lowercased(lines: Sequence[str], language: str) -> list[str]:
    """Lowercased, punctuation normalised, tokenised: the `lc.norm.tok` form that Multi30k itself publishes."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalise, tokenise = MosesPunctNormalizer(language).normalize, MosesTokenizer(language).tokenize
    return [tokenise(normalise(line.lower()), escape=False, return_str=True) for line in lines]


def bleu_lc_tok(outputs: Sequence[str], references: Sequence[str], language: str) -> Score:
    """BLEU of Moses tokens, lowercased: the figure of the Multi30k papers. Higher than the cased 13a one."""
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize="none", force=True)  # sacreBLEU warns of text that looks tokenised: here it is
    found = measure(metric, moses_lowercased(outputs, language), moses_lowercased(references, language))
    return Score(found.score, f"{found.signature}|text:lc.norm.tok")


# ---------------------------------------------------------------- one seed
def regard(*words: str | Path) -> str:
    """One command, as typed; progress goes to the terminal, the answer comes back."""
    command = [sys.executable, "-m", "regard", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


def train_seed(trial: Trial, seed: int) -> Path:
    """The model of one seed; what is not yet trained is trained now."""
    model = trial.model(seed)
    if (model / MANIFEST).exists():
        return model
    begun = trial.folder / f"seed-{seed}" / COMMIT
    if not begun.exists():
        write_atomically(begun, commit() + "\n")
    if trial.teachers:
        there, back = (train_seed(one, seed) for one in trial.teachers)
        words = (*trial.files("train"), "--keep-original", *trial.validation(), "--start", there)
        words += ("--seed", str(seed), "--out", model.parent)
        regard("distil", there, "--back", back, *words, *trial.changes())
    elif model.exists():
        regard("train", "--resume", model)
    else:
        regard("train", *trial.training(), "--out", model, "--seed", str(seed))
    return model


def minutes(trial: Trial, seed: int) -> float:
    """That a finished model took to learn; if it had teachers, also theirs, and those of their translating."""
    model = trial.model(seed)
    own = float(json.loads((model / MANIFEST).read_bytes())["seconds"]) / 60
    if not trial.teachers:
        return own
    translating = float(json.loads((model.parent / "distil.json").read_bytes())["seconds"]) / 60
    return own + translating + sum(minutes(one, seed) for one in trial.teachers)


def finish_seed(trial: Trial, seed: int) -> dict[str, Any]:
    """The figures of one seed; what is not yet trained or scored is trained and scored now."""
    noted = trial.folder / f"seed-{seed}" / "seed.json"
    if noted.exists():
        found: dict[str, Any] = json.loads(noted.read_bytes())
        return found
    model, begun = train_seed(trial, seed), trial.folder / f"seed-{seed}" / COMMIT
    began = time.monotonic()
    found = {
        "seed": seed,
        "minutes": minutes(trial, seed),
        "steps": json.loads((model / MANIFEST).read_bytes())["steps"],
        "commit": begun.read_text().strip() if begun.exists() else "unknown",
        "dev": scored(trial, model, "valid"),
        "test": scored(trial, model, "test"),
    }
    found["scoring_minutes"] = (time.monotonic() - began) / 60
    write_atomically(noted, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return found


def scored(trial: Trial, model: Path, part: str) -> dict[str, Any]:
    """Every score of one set with beam 5, and the outputs behind them."""
    output = model.parent / f"{part}.txt"
    words = ("evaluate", model, *trial.files(part), "--beam", BEAM, "--json", "--output", output)
    found = json.loads(regard(*words))
    outputs, references = list(read_lines(output)), list(read_lines(trial.data / getattr(trial.corpus, part)[1]))
    tokens = bleu_lc_tok(outputs, references, trial.corpus.language)
    scores = {"bleu_cased": bleu(outputs, references).score, "bleu_lc_tok": tokens.score}
    scores |= {"bleu_lowercased": bleu_lowercased(outputs, references).score}
    scores |= {"chrf": found["chrf"]["score"], "ter": found["ter"]["score"], "perplexity": found["perplexity"]}
    return {"scores": scores, "signatures": [found["bleu"]["signature"], tokens.signature], "outputs": outputs}


# ---------------------------------------------------------------- all seeds
def summary(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Means over the seeds, how far apart they are, and every seed by itself. A spread is largest − smallest."""
    test, dev = ([one[part]["scores"] for one in found] for part in ("test", "dev"))
    figures: dict[str, float] = {name: mean(test, name) for name in test[0]}
    figures |= {f"dev_{name}": mean(dev, name) for name in dev[0]}
    for name in ("bleu_cased", "bleu_lc_tok"):
        values = [scores[name] for scores in test]
        if len(values) > 1:
            figures |= {f"{name}_spread": max(values) - min(values), f"{name}_deviation": statistics.stdev(values)}
    figures |= {"minutes": statistics.fmean(one["minutes"] for one in found), "seeds": len(found)}
    for one in found:
        name, (ours, theirs) = f"seed {one['seed']}", (one["test"]["scores"], one["dev"]["scores"])
        figures |= {f"{name}: bleu_cased": ours["bleu_cased"], f"{name}: bleu_lc_tok": ours["bleu_lc_tok"]}
        figures |= {f"{name}: dev_bleu_cased": theirs["bleu_cased"], f"{name}: steps": one["steps"]}
        figures |= {f"{name}: minutes": one["minutes"]}
    return figures


def mean(scores: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.fmean(one[name] for one in scores)


def agree(trial: Trial) -> None:
    path, asked = trial.folder / "asked.json", trial.asked()
    if not path.exists():
        write_atomically(path, json.dumps(asked, indent=1) + "\n")
    elif json.loads(path.read_bytes()) != asked:
        raise SystemExit(f"{trial.folder}: its seeds were trained otherwise; remove it, or ask for the same again")


def run(trial: Trial, seeds: Sequence[int], command: str, results: Path = RESULTS) -> dict[str, Any]:
    """Writes results/quality-NAME.json and its page, with outputs of the first seed."""
    agree(trial)
    found = [finish_seed(trial, seed) for seed in seeds]
    notes = (
        f"{trial.how}, seeds {', '.join(map(str, seeds))}, whose training began at commit "
        f"{', '.join(dict.fromkeys(one['commit'] for one in found))}; beam {BEAM} "
        f"on {Path(trial.corpus.test[0]).name.partition('.')[0]}. Choices were made on the dev set. minutes: without "
        "scoring, the mean over the seeds. bleu_cased: sacreBLEU as it is; bleu_lc_tok: lowercased, punctuation "
        "normalised, Moses tokens, as the Multi30k papers report. "
        f"Signatures: {' and '.join(found[0]['test']['signatures'])}"
    )
    taken = sum(one["minutes"] + one["scoring_minutes"] for one in found)
    content = write(f"quality-{trial.name}", Result(command, taken, summary(found), notes), results)
    said = page(f"quality-{trial.name}", content) + examples(trial, found[0])
    write_atomically(results / f"quality-{trial.name}.md", said)
    return content


def examples(trial: Trial, found: Mapping[str, Any]) -> str:
    """Test outputs drawn at random, beside source and reference: the same ones every time."""
    source, target = (list(read_lines(trial.data / name)) for name in trial.corpus.test)
    outputs = found["test"]["outputs"]
    drawn = sorted(random.Random(1).sample(range(len(outputs)), min(SHOWN, len(outputs))))
    lines = [f"## {len(drawn)} test outputs, drawn at random (seed {found['seed']})", ""]
    for i in drawn:
        lines += [f"{i + 1}. {source[i]}", f"   - reference: {target[i]}", f"   - output: {outputs[i]}"]
    return "\n" + "\n".join(lines) + "\n"


def plain(name: str, data: Path, budget: str, settings: tuple[str, ...] = ()) -> Trial:
    """The one of `python -m benchmarks.quality NAME --budget BUDGET`: what two files alone give."""
    called = "-".join((name, budget, *settings))
    return Trial(called, CORPORA[name], data, WORK / called, budget=budget, settings=settings)


def back(name: str) -> str | None:
    """The set of the same texts the other way round, if there is one."""
    wanted = CORPORA[name].train[::-1]
    return next((other for other, corpus in CORPORA.items() if corpus.train == wanted), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--budget", help="training time; default: as the recipe has it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--recipe", type=Path, help="default: recipes/SET.yaml, or none when there is a --budget")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="A.B=C")
    parser.add_argument("--teachers", metavar="BUDGET", help="first let both directions learn so long; with --budget")
    parser.add_argument("--name", help="of a trial that is not the usual one; its files are called SET-BUDGET-NAME")
    parser.add_argument("--dev", action="store_true", help="score the dev set alone, and write no result")
    given = parser.parse_args()
    data, chosen = Path(os.environ.get("REGARD_DATA", "")), CORPORA[given.corpus]
    if not (data / chosen.train[0]).is_file():
        parser.error(f"REGARD_DATA: {data} does not hold {chosen.train[0]}; name the folder that does")
    recipe = given.recipe or (None if given.budget else ROOT / "recipes" / f"{given.corpus}.yaml")
    if not (given.name or given.teachers) and (given.settings or given.recipe):
        parser.error("--set and --recipe: give --name too, or this would pass for the usual trial")
    teachers = None
    if given.teachers:
        if given.recipe or not given.budget or back(given.corpus) is None:
            parser.error("--teachers: needs --budget, no recipe, and a set that has its other direction")
        teachers = tuple(plain(name, data, given.teachers) for name in (given.corpus, back(given.corpus)))
    name = "-".join(filter(None, (given.corpus, None if teachers else given.budget, given.name)))
    settings = tuple(given.settings)
    trial = Trial(name, chosen, data, WORK / name, recipe and recipe.resolve(), given.budget, settings, teachers)
    if given.dev:
        agree(trial)
        for seed in given.seeds:
            print(seed, json.dumps(scored(trial, train_seed(trial, seed), "valid")["scores"]))  # noqa: T201
        return
    content = run(trial, given.seeds, " ".join(["python -m benchmarks.quality", *sys.argv[1:]]))
    print(json.dumps(content["figures"], indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
