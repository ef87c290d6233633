"""Quality against cost: a large model and its distilled student, by every engine, on the same test set in one run.

python -m benchmarks.frontier --teacher MODEL --student MODEL --dev       → the dev set, several beams: to choose by
python -m benchmarks.frontier --teacher MODEL --student MODEL --beam 2    → results/frontier.json, .md and .svg
python -m benchmarks.frontier ... --set multi30k-en-fr                    → results/frontier-multi30k-en-fr.*

Needs REGARD_DATA (for multi30k). The path of the student that is compared with the teacher is named beforehand:
Regard itself with the shortlist and, if nobody says otherwise, beam 1. Nothing is chosen by its score here.
"""

import argparse
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import decoding
from benchmarks.decoding import FP32, INT8, OURS, SHORTLIST, Measured, TestSet
from benchmarks.memory import MB, descendants, status
from benchmarks.plot import dots
from benchmarks.quality import CORPORA
from benchmarks.results import RESULTS, ROOT, Result, page, write
from benchmarks.stage import Player, in_turns, players, say
from regard.data.readers import read_lines
from regard.evaluation.scores import bleu
from regard.files import check_manifest, write_atomically
from regard.recipe.folder import read_model

USUAL = "multi30k-en-de"
TEACHER, STUDENT = "teacher", "student"
ENGINES = (OURS, SHORTLIST, FP32, INT8)
BEAMS, TRIED = (5, 1), (5, 3, 2, 1)
LIMIT = (TEACHER, FP32, 5)  # what the student is compared with
PATH = (STUDENT, SHORTLIST)  # of the student, with the beam that is asked for
ROUNDS, WARMUP = 5, 1


@dataclass
class Way:
    """One model by one engine with one beam."""

    who: str
    engine: str
    beam: int
    player: Player
    test: TestSet
    files: int  # bytes that one has to carry along
    measured: Measured = field(default_factory=Measured)
    memory: int = 0

    @property
    def name(self) -> str:
        return f"{self.who}, {self.engine}, beam {self.beam}"

    @property
    def words(self) -> int:
        return sum(len(text.split()) for text in self.measured.texts)

    def go(self) -> None:
        decoding.turn(self.player, self.beam, self.test, self.measured)
        self.memory = sum(status(pid).get("VmHWM", 0) for pid in descendants(self.player.process.pid))


def size_of(path: Path) -> int:
    """Bytes of the files of a model; the log of its training is none of them."""
    files = (file for file in path.iterdir() if file.is_file() and not file.name.startswith("training"))
    return sum(file.stat().st_size for file in files)


def measure(
    models: Mapping[str, Path], texts: Sequence[str], references: Sequence[str], beams: Sequence[int], work: Path
) -> list[Way]:
    """Every way through the whole test set, in turns; one worker for each core, one thread each."""
    tests = {who: TestSet(read_model(path), texts, references) for who, path in models.items()}
    asked = [(who, peer) for who in tests for peer in decoding.peers(tests[who], work, ENGINES, work / who)]
    workers = f"{max(decoding.forms())[0]}×1"
    asked = [(who, peer) for who, peer in asked if peer.name.endswith(workers)]
    if f"{SHORTLIST} {workers}" not in [peer.name for who, peer in asked if who == STUDENT]:
        raise SystemExit(f"{models[STUDENT]}: has no shortlist, by which it is to be compared; train it with one")
    with players([peer for _, peer in asked], work / "logs") as started:
        ways = []
        for (who, peer), player in zip(asked, started, strict=True):
            engine = peer.name.rpartition(" ")[0]
            theirs = engine in (FP32, INT8)
            files = decoding.exported(tests[who], work / who, engine) if theirs else models[who]
            ways += [Way(who, engine, beam, player, tests[who], size_of(files)) for beam in beams]
        for index in range(-WARMUP, ROUNDS):
            for way in in_turns(ways, index):
                way.go()
            if index < 0:
                for way in ways:
                    way.measured.seconds.clear()
    return ways


def find(ways: Sequence[Way], wanted: tuple[str, str, int]) -> Way:
    return next(way for way in ways if (way.who, way.engine, way.beam) == wanted)


def figures(ways: Sequence[Way], references: Sequence[str], beam: int = 1) -> dict[str, float]:
    """`beam` is that of the student's path."""
    scores = {way.name: bleu(way.measured.texts, references).score for way in ways}
    limit, path = find(ways, LIMIT), find(ways, (*PATH, beam))
    seconds = zip(limit.measured.seconds, path.measured.seconds, strict=True)
    faster = statistics.median(theirs / ours for theirs, ours in seconds) * path.words / limit.words
    found = {
        "student_words_vs_ctranslate2_teacher": faster,
        "student_bleu_delta": scores[path.name] - scores[limit.name],
    }
    for way in ways:
        found[f"{way.name}: BLEU"] = scores[way.name]
        found[f"{way.name}: words/s"] = way.words / way.measured.typical
        found[f"{way.name}: files, MB"] = way.files / MB
        found[f"{way.name}: memory, MB"] = way.memory / MB
    return found


def drawn(found: Mapping[str, float]) -> str:
    """BLEU against each cost: a dot for every way, and the frontier through the best."""
    names = list(dict.fromkeys(key.rpartition(": ")[0] for key in found if ": " in key))
    costs = ("words/s", "files, MB", "memory, MB")
    panels = {cost: [(found[f"{name}: {cost}"], found[f"{name}: BLEU"]) for name in names] for cost in costs}
    ours = [name.startswith(STUDENT) for name in names]
    return dots("Quality against cost", "BLEU", panels, names, ours, more=["words/s"])


def learned(models: Mapping[str, Path]) -> str:
    """How long each of the models learned, and with which seed."""
    said = []
    for who, path in models.items():
        minutes, seed = check_manifest(path)["seconds"] / 60, read_model(path).recipe.training.seed
        said.append(f"the {who} learned {minutes:.0f} minutes with seed {seed}")
    return f"{'; '.join(said)}.".capitalize()


NOTES = (
    "{test}, whole. Words are those of the outputs between spaces; BLEU is sacreBLEU's, cased. Every way is a process "
    "of its own; they take turns, in an order that alternates. Medians of {rounds} rounds after a first; the ratio is "
    "the median over the rounds, for as many words. Everybody is timed from text to text, with the length penalty of "
    "the model's own recipe; our searches end as CTranslate2's do (decoding.patience 1), so that BLEU may differ a "
    "little from that of `regard evaluate`. Choices were made on the dev set. {learned} One worker with "
    "one thread for each core. "
    "Files: what one has to carry along. Memory: the most that was resident, all workers together, pages that they "
    "share counted in each; all beams are of one process, so of them the largest. The path of the student that is "
    "compared was named beforehand: {path}. In the picture a line joins the ways that no other beats in both."
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.frontier", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--teacher", type=Path, required=True, help="the model that the student learned from")
    parser.add_argument("--student", type=Path, required=True, help="what `regard distil` made")
    parser.add_argument("--set", dest="corpus", choices=sorted(CORPORA), default=USUAL)
    parser.add_argument("--beam", type=int, default=1, help="of the student's path; choose it on the dev set")
    parser.add_argument("--dev", action="store_true", help="measure the dev set, to choose by, and write no result")
    parser.add_argument("--made", default="", help="for the notes: how the student came about, if not in one run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    parser.add_argument("--work", type=Path, default=ROOT / ".bench", help="folder of the peers")
    chosen: Any = parser.parse_args(arguments)
    data, names = Path(os.environ.get("REGARD_DATA", "")), CORPORA[chosen.corpus].test
    if chosen.dev:
        names = CORPORA[chosen.corpus].valid
    if not (data / names[0]).is_file():
        parser.error(f"REGARD_DATA: {data} does not hold {names[0]}; name the folder that does")
    source, target = (list(read_lines(data / name)) for name in names)
    began = time.perf_counter()
    models = {TEACHER: chosen.teacher, STUDENT: chosen.student}
    beams = TRIED if chosen.dev else sorted({*BEAMS, chosen.beam}, reverse=True)
    ways = measure(models, source, target, beams, chosen.work.absolute())
    found = figures(ways, target, chosen.beam)
    for key, value in found.items():
        say(f"{value:10.3f}  {key}")
    if chosen.dev:
        return
    path = find(ways, (*PATH, chosen.beam)).name
    told = f"{learned(models)} {chosen.made}".strip()
    notes = NOTES.format(test=names[0].partition(".")[0], rounds=ROUNDS, path=path, learned=told)
    asked = [word for who, model in models.items() for word in (f"--{who}", os.path.relpath(model, ROOT))]
    asked += ["--set", chosen.corpus, "--beam", str(chosen.beam)]
    command = " ".join(["python -m benchmarks.frontier", *asked])
    name = file_name(chosen.corpus)
    content = write(name, Result(command, (time.perf_counter() - began) / 60, found, notes), chosen.out)
    write_atomically(chosen.out / f"{name}.md", page(name, content) + f"\n![Quality against cost]({name}.svg)\n")
    write_atomically(chosen.out / f"{name}.svg", drawn(found))


def file_name(corpus: str) -> str:
    """Each text has files of its own, so that none replaces those of another."""
    return "frontier" if corpus == USUAL else f"frontier-{corpus}"


if __name__ == "__main__":
    main()
