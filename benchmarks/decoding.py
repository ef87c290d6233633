"""Our engine beside CTranslate2 and transformers: the same weights, the whole test set in turns, then one by one."""

import json
import re
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.peers.environments import interpreter
from benchmarks.shape import Shape
from benchmarks.stage import Peer, Player, in_turns, players, say
from regard.decoding.bulk import score_pairs
from regard.evaluation.scores import bleu
from regard.exporting.ctranslate2 import Quantise, export_ctranslate2
from regard.recipe.folder import ModelFolder
from regard.text.special import EOS

OURS, SHORTLIST = "Regard", "Regard, shortlist"
FP32, INT8, TRANSFORMERS = "CTranslate2 fp32", "CTranslate2 int8", "transformers"
EVERYBODY = (OURS, SHORTLIST, FP32, INT8, TRANSFORMERS)
BEAMS = (5, 1)
AGREES = 1e-4  # in log p of a token: the weights were carried over rightly
QUANTISED: dict[str, Quantise] = {FP32: "float32", INT8: "int8"}
MODULES = {
    OURS: "regard_decoding",
    SHORTLIST: "regard_decoding",
    FP32: "ctranslate2_decoding",
    INT8: "ctranslate2_decoding",
    TRANSFORMERS: "transformers_decoding",
}


@dataclass(frozen=True)
class TestSet:
    """What is translated, and the model that does it."""

    folder: ModelFolder
    texts: Sequence[str]
    references: Sequence[str]

    @property
    def sources(self) -> list[list[int]]:
        return [self.folder.vocabularies.source.encode(text) for text in self.texts]


@dataclass
class Measured:
    """Of one peer and one beam: the seconds of each round, and what came out of the last."""

    seconds: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    tokens: int = 0  # the end tokens among them

    @property
    def typical(self) -> float:
        return statistics.median(self.seconds)


def measure(shape: Shape, test: TestSet, work: Path, names: Sequence[str] = EVERYBODY) -> dict[str, float]:
    """Speeds, ratios of the best form of each, BLEU, outputs that are equal, and the time of a single sentence."""
    with players(peers(test, work, names), work / "logs") as started:
        check_weights(test, started)
        beams = {beam: translate_all(shape, test, started, beam) for beam in BEAMS}
        return figures(beams, test) | latency(shape, test, started)


# ---------------------------------------------------------------- who takes part
def forms() -> set[tuple[int, int]]:
    """Workers and threads of each: one with a thread for every core, and as many with one."""
    cores = torch.get_num_threads()
    return {(1, cores), (cores, 1)}


def peers(test: TestSet, work: Path, names: Sequence[str], place: Path | None = None) -> list[Peer]:
    """Every peer in both forms; transformers has but the first. A model may have no shortlist.

    Environments are beneath `work`, what is made of this model in `place`.
    """
    place = place or work / "decoding"
    place.mkdir(parents=True, exist_ok=True)
    found = []
    for name in names:
        python = Path(sys.executable) if name in (OURS, SHORTLIST) else interpreter("transformers", work)
        for workers, threads in sorted(forms()):
            if (name == TRANSFORMERS and workers > 1) or (name == SHORTLIST and test.folder.shortlist is None):
                continue
            chosen: dict[str, object] = {"workers": workers, "threads": threads, "shortlist": name == SHORTLIST}
            if name in QUANTISED:
                chosen |= {"exported": str(exported(test, place, name)), "compute": QUANTISED[name]}
            label = f"{name} {workers}×{threads}"
            found.append(Peer(label, python, MODULES[name], str(plan(test, place / f"{label}.json", chosen))))
    return found


def exported(test: TestSet, place: Path, name: str) -> Path:
    """Our weights as CTranslate2 reads them, made again when the model is newer."""
    folder = place / f"{QUANTISED[name]}-{(test.folder.path / 'manifest.json').stat().st_mtime_ns}"
    if not folder.exists():
        export_ctranslate2(test.folder.path, folder, QUANTISED[name])
    return folder


def plan(test: TestSet, path: Path, chosen: Mapping[str, object]) -> Path:
    """What a peer must know, as a file."""
    recipe, sources = test.folder.recipe, test.sources
    content = {
        "weights": str(test.folder.path / "model.safetensors"),
        "model": recipe.model.model_dump(mode="json"),
        "vocabulary": len(test.folder.vocabularies.target),
        "texts": list(test.texts),
        "sources": sources,
        "longest": recipe.decoding.max_length(max(map(len, sources)) + 1),
        "length_penalty": recipe.decoding.length_penalty,
        "eos": EOS,
        **chosen,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def check_weights(test: TestSet, started: Sequence[Player]) -> None:
    """transformers must find the references exactly as probable as we do, or it does not compute our model."""
    sources, target = test.sources[:5], test.folder.vocabularies.target
    targets = [target.encode(text) for text in test.references[:5]]
    ours = score_pairs(test.folder.model.eval(), sources, targets)
    for player in started:
        if player.name.startswith(TRANSFORMERS):
            for source, goal, expected in zip(sources, targets, ours, strict=True):
                found = player.turn({"source": source, "target": goal})["scores"]
                far = max(abs(a - b) for a, b in zip(expected, found, strict=True))
                if far > AGREES:
                    raise SystemExit(f"{player.name}: log p of a token is {far:.2g} from ours, expected ≤ {AGREES}")


# ---------------------------------------------------------------- the whole test set
def translate_all(shape: Shape, test: TestSet, started: Sequence[Player], beam: int) -> dict[str, Measured]:
    """A first round warms up and shows the best form of each peer; the rounds that count are between those."""
    found = {player.name: turn(player, beam, test, Measured()) for player in started}
    best = {min(forms, key=lambda label: found[label].typical) for forms in by_peer(found).values()}
    playing = [player for player in started if player.name in best]
    measured = {player.name: Measured() for player in playing}
    for index in range(shape.repeats):
        for player in in_turns(playing, index):
            turn(player, beam, test, measured[player.name])
    return measured


def by_peer(labels: Iterable[str]) -> dict[str, list[str]]:
    """The labels of each peer: its name, then its form."""
    found: dict[str, list[str]] = {}
    for label in labels:
        found.setdefault(label.rpartition(" ")[0], []).append(label)
    return found


def turn(player: Player, beam: int, test: TestSet, one: Measured) -> Measured:
    """Translate everything once more."""
    answer = player.turn({"beam": beam})
    say(f"  beam {beam}, {player.name}: {answer['seconds']:.2f} s")
    one.seconds.append(answer["seconds"])
    one.texts = answer["texts"]
    one.tokens = sum(len(test.folder.vocabularies.target.encode(text)) + 1 for text in one.texts)
    return one


def have(measured: Mapping[str, Measured], *names: str) -> bool:
    return set(names) <= set(by_peer(measured))


def of(measured: Mapping[str, Measured], name: str) -> Measured:
    """What was measured of this peer, in its best form."""
    return measured[by_peer(measured)[name][0]]


def figures(beams: Mapping[int, Mapping[str, Measured]], test: TestSet) -> dict[str, float]:
    found: dict[str, float] = {}
    for beam, measured in beams.items():
        for label, one in measured.items():
            found[f"decoding, beam {beam}, {label}: tokens/s"] = one.tokens / one.typical
            found[f"decoding, beam {beam}, {label}: sentences/s"] = len(one.texts) / one.typical
            found[f"decoding, beam {beam}, {label}: BLEU"] = bleu(one.texts, test.references).score
        for word, name in (("ctranslate2", FP32), ("transformers", TRANSFORMERS)):
            if have(measured, OURS, name):
                found[f"decode_beam{beam}_vs_{word}"] = ratio(measured, OURS, name)
    both = list(beams.values())
    if all(have(measured, SHORTLIST, FP32) for measured in both):
        found["decode_shortlist_vs_ctranslate2"] = min(ratio(measured, SHORTLIST, FP32) for measured in both)
    if all(have(measured, OURS, FP32) for measured in both):
        found["decode_same_outputs"] = min(equal(measured) for measured in both)
    return found


def ratio(measured: Mapping[str, Measured], one: str, other: str) -> float:
    """How many times as fast as the other one is: the median over the rounds."""
    seconds = zip(of(measured, one).seconds, of(measured, other).seconds, strict=True)
    return statistics.median(theirs / ours for ours, theirs in seconds)


def equal(measured: Mapping[str, Measured]) -> float:
    """The share of the sentences that CTranslate2 translates just as we do."""
    pairs = zip(of(measured, OURS).texts, of(measured, FP32).texts, strict=True)
    return statistics.mean(ours == theirs for ours, theirs in pairs)


# ---------------------------------------------------------------- one sentence
def latency(shape: Shape, test: TestSet, started: Sequence[Player]) -> dict[str, float]:
    """Milliseconds of a single sentence, beam 1, sentence by sentence in turns; the first few do not count.

    The ratio is of the whole vocabulary, each in its better form: a shortlist has its own lines.
    """
    say("  one sentence at a time ...")
    asked = [player for player in started if player.name.startswith((OURS, FP32))]
    times: dict[str, list[float]] = {player.name: [] for player in asked}
    for index in range(-5, min(shape.singles, len(test.texts))):
        for player in in_turns(asked, index):
            answer = player.turn({"beam": 1, "sentence": abs(index)})
            if index >= 0:
                times[player.name].append(1000 * answer["seconds"])
    found: dict[str, float] = {}
    for name, values in times.items():
        label = re.sub(r"\d+×1$", "1×1", name)  # of several workers but one has something to do
        found[f"one sentence, beam 1, {label}: p50, ms"] = statistics.median(values)
        found[f"one sentence, beam 1, {label}: p95, ms"] = statistics.quantiles(values, n=20)[-1]
    peers = by_peer(times)
    theirs, ours = ([statistics.median(times[label]) for label in peers.get(name, [])] for name in (FP32, OURS))
    return found | ({"latency_vs_ctranslate2": min(theirs) / min(ours)} if theirs else {})
