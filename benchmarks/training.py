"""Our training beside the peers' and the limit: the same sentences and shape, blocks of steps in turns."""

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.corpus import Corpus, plan
from benchmarks.peers.environments import interpreter
from benchmarks.shape import Shape
from benchmarks.stage import Peer, in_turns, players, say
from regard.studies.flops import Cost

OURS, LIMIT = "Regard", "limit"
MODULES = {  # peer: its module and its environment (none: ours); whose turn is next to ours sees the same machine
    LIMIT: ("sgemm", None),
    OURS: ("regard_training", None),
    "torch.nn.Transformer": ("plain_training", None),
    "MarianMT": ("marian_training", "transformers"),
    "Eole": ("eole_training", "eole"),
    "JoeyNMT": ("joeynmt_training", "joeynmt"),
}
EVERYBODY = tuple(MODULES)
TORCH_PEERS = {"Eole", "MarianMT", "torch.nn.Transformer"}


@dataclass
class Rounds:
    """What every round found: target tokens per second by peer, FLOP/s by the size of the product."""

    speeds: dict[str, list[float]] = field(default_factory=dict)
    rates: dict[str, list[float]] = field(default_factory=dict)

    @property
    def best(self) -> list[float]:
        """FLOP/s in each round of the size with the best median."""
        return max(self.rates.values(), key=statistics.median)

    @property
    def limit(self) -> float:
        return statistics.median(self.best)


def measure(shape: Shape, found: Corpus, work: Path, names: Sequence[str] = EVERYBODY) -> dict[str, float]:
    """Medians; our speed over theirs, the median over the rounds of the quotient within a round; the limit."""
    rounds = take_turns(shape, found, work, names)
    return ratios(rounds.speeds) | of_the_limit(rounds, Cost(shape.model, len(found.tokeniser)), found)


def take_turns(shape: Shape, found: Corpus, work: Path, names: Sequence[str]) -> Rounds:
    rounds = Rounds()
    with players([peer(name, shape, found, work) for name in names], work / "logs") as started:
        for index in range(shape.warmup + shape.repeats):
            for player in in_turns(started, index):
                answer = player.turn()
                if "rates" in answer:
                    keep(rounds.rates, answer["rates"], counts=index >= shape.warmup)
                    continue
                speed = answer["tokens"] / answer["seconds"]
                keep(rounds.speeds, {player.name: speed}, counts=index >= shape.warmup)
                say(f"  round {index - shape.warmup + 1}: {player.name} {speed:,.0f} tokens/s")
    return rounds


def keep(all_rounds: dict[str, list[float]], found: Mapping[str, float], *, counts: bool) -> None:
    if counts:
        for name, value in found.items():
            all_rounds.setdefault(name, []).append(value)


def peer(name: str, shape: Shape, found: Corpus, work: Path) -> Peer:
    module, environment = MODULES[name]
    python = interpreter(environment, work) if environment else Path(sys.executable)
    place = work / "training" / module
    place.parent.mkdir(parents=True, exist_ok=True)
    return Peer(name, python, module, str(plan(shape, found, place)))


def ratios(speeds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    found = {f"training, target tokens/s: {name}": statistics.median(values) for name, values in speeds.items()}
    quotients = {
        name: statistics.median(ours / theirs for ours, theirs in zip(speeds[OURS], values, strict=True))
        for name, values in speeds.items()
        if name != OURS
    }
    found |= {f"training, times as fast as: {name}": ratio for name, ratio in quotients.items()}
    if "JoeyNMT" in quotients:
        found["train_vs_joeynmt"] = quotients["JoeyNMT"]
    if set(quotients) >= TORCH_PEERS:
        found["train_vs_best_torch_peer"] = min(quotients[name] for name in TORCH_PEERS)
    return found


def of_the_limit(rounds: Rounds, cost: Cost, found: Corpus) -> dict[str, float]:
    """Useful operations of our training per second, and what part they are of the best products of the same run."""
    needed = cost.per_target_token(found.lengths)
    useful = needed * statistics.median(rounds.speeds[OURS])
    along = zip(rounds.speeds[OURS], rounds.best, strict=True)
    products = {f"sgemm, GFLOP/s: {size}": statistics.median(rates) / 1e9 for size, rates in rounds.rates.items()}
    return products | {
        "limit: useful MFLOP per target token": needed / 1e6,
        "limit: best sgemm, GFLOP/s": rounds.limit / 1e9,
        "limit: Regard's training, GFLOP/s": useful / 1e9,
        "limit: target tokens/s": rounds.limit / needed,
        "train_of_roof": statistics.median(needed * speed / rate for speed, rate in along),
    }
