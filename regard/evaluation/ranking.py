"""From judgements of pairs to a ranking: Bradley–Terry strengths, their intervals, and what they were counted from."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool, Float

from regard.errors import DataError
from regard.evaluation.judgements import Judgement, Output

PRIOR = 0.5  # wins each way that every pair starts with: Jeffreys' prior of a share
DRAWS = 2_000
SEED = 1

Signed = tuple[str, str]  # a system and a text that it wrote


@dataclass(frozen=True)
class Place:
    """One system of a ranking.

    `strength`: log-odds of being preferred to a system of strength 0, which is the mean of all.
    `low` … `high` holds it with 95 %, `first` … `last` its place. `better`, `equal`, `worse` count the pairs with any
    other system that people judged or that follow from what they judged; `preferred` is their share in %, equal = half.
    """

    system: str
    strength: float
    low: float
    high: float
    first: int
    last: int
    better: int
    equal: int
    worse: int

    @property
    def preferred(self) -> float:
        return 100 * (self.better + self.equal / 2) / (self.better + self.equal + self.worse)


@dataclass(frozen=True)
class Ranking:
    """Best first. `questions` were asked; where all outputs were the same text nobody had to be."""

    sentences: int
    questions: int
    judges: int
    places: tuple[Place, ...]

    def to_json(self) -> dict[str, object]:
        systems = [{**asdict(place), "preferred": place.preferred} for place in self.places]
        return {
            "sentences": self.sentences,
            "questions": self.questions,
            "judges": self.judges,
            "systems": systems,
        }


def rank(judgements: Sequence[Judgement]) -> Ranking:
    """Strengths, best first; the same judgements give the same intervals."""
    systems = systems_of(judgements)
    if not systems:
        raise DataError("ranking: 0 judgements; judge at least one pair first")
    wins, ties = tally(judgements, systems)
    better, equal = wins.sum(0), ties.sum(0)
    found = strengths(with_prior(better + equal / 2, PRIOR))
    drawn = draw(wins + ties / 2, DRAWS, SEED)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    ranks = (drawn[:, None, :] > drawn[:, :, None]).sum(-1) + 1
    first, last = np.quantile(ranks, [0.025, 0.975], axis=0, method="inverted_cdf")
    places = [
        Place(
            system=system,
            strength=float(found[i]),
            low=float(low[i]),
            high=float(high[i]),
            first=int(first[i]),
            last=int(last[i]),
            better=int(better[i].sum()),
            equal=int(equal[i].sum()),
            worse=int(better[:, i].sum()),
        )
        for i, system in enumerate(systems)
    ]
    return Ranking(
        sentences=len({one.about for one in judgements}),
        questions=sum(not one.idle for one in judgements),
        judges=len({one.judge for one in judgements}),
        places=tuple(sorted(places, key=lambda place: (-place.strength, place.system))),
    )


# ---------------------------------------------------------------- counting
def systems_of(judgements: Sequence[Judgement]) -> list[str]:
    return sorted({name for one in judgements for side in (one.left, one.right) for name in side.systems})


def tally(
    judgements: Sequence[Judgement], systems: Sequence[str]
) -> tuple[Float[np.ndarray, "n k k"], Float[np.ndarray, "n k k"]]:
    """How often i was better than j, and how often equal, for each sentence; every judge of a sentence counts.

    A sort asks for few pairs, those that the answers before made interesting: counting only them would favour systems
    that meet weak outputs. So a pair also counts when it follows from others: a ≥ b and b ≥ c give a ≥ c, strictly if
    one of them is strict. Answers that go round in a circle make those outputs equal.
    """
    row = {about: n for n, about in enumerate(dict.fromkeys(one.about for one in judgements))}
    index = {system: i for i, system in enumerate(systems)}
    shape = (len(row), len(systems), len(systems))
    wins, ties = np.zeros(shape), np.zeros(shape)
    for about, outputs, reach in opinions(judgements):
        wrote = np.array([index[system] for system, _ in outputs])
        others = reach & (wrote[:, None] != wrote)
        # A system can be there with two texts, and += would count only one of them.
        np.add.at(wins[row[about]], np.ix_(wrote, wrote), others & ~reach.T)
        np.add.at(ties[row[about]], np.ix_(wrote, wrote), others & reach.T)
    return wins, ties


def opinions(
    judgements: Sequence[Judgement],
) -> Iterator[tuple[tuple[int, str], list[Signed], Bool[np.ndarray, "o o"]]]:
    """For each sentence and each of its judges: is output i at least as good as j, as they said or as follows from it?

    A system that wrote different texts in different files has an output for each: what is said of one text does not
    follow for another.
    """
    said: dict[tuple[tuple[int, str], str], list[Judgement]] = {}
    for one in judgements:
        said.setdefault((one.about, one.judge), []).append(one)
    for (about, _), together in said.items():
        outputs = sorted({output for one in together for side in (one.left, one.right) for output in signed(side)})
        yield about, outputs, closure(at_least(together, outputs))


def signed(side: Output) -> list[Signed]:
    return [(system, side.text) for system in side.systems]


def at_least(judgements: Sequence[Judgement], outputs: Sequence[Signed]) -> Bool[np.ndarray, "o o"]:
    """[i, j]: output i was judged at least as good as j."""
    index = {output: i for i, output in enumerate(outputs)}
    edges = np.zeros((len(index), len(index)), dtype=bool)
    for one in judgements:
        left, right = ([index[output] for output in signed(side)] for side in (one.left, one.right))
        for same in (left, right):
            edges[np.ix_(same, same)] = True
        if one.verdict != "right":
            edges[np.ix_(left, right)] = True
        if one.verdict != "left":
            edges[np.ix_(right, left)] = True
    return edges


def closure(edges: Bool[np.ndarray, "k k"]) -> Bool[np.ndarray, "k k"]:
    """What follows from the edges: [i, j] where a path leads from i to j. Warshall 1962."""
    reach = edges.copy()
    for via in range(len(reach)):
        reach |= reach[:, via, None] & reach[via]
    return reach


# ---------------------------------------------------------------- strengths
def strengths(wins: Float[np.ndarray, "*draws k k"]) -> Float[np.ndarray, "*draws k"]:
    """θ with mean 0 that maximises Σᵢⱼ wᵢⱼ log σ(θᵢ - θⱼ): i is preferred to j with probability σ(θᵢ - θⱼ).

    `wins` may be fractions (a tie is half a win each) and must be above 0 for every pair, see `with_prior`; then there
    is one finite maximum, and Newton's steps, shortened where they are long, lead to it. Bradley & Terry 1952.
    """
    k = wins.shape[-1]
    wins = wins * (1 - np.eye(k))
    games = wins + wins.swapaxes(-1, -2)
    theta: Float[np.ndarray, "*draws k"] = np.zeros(wins.shape[:-1])
    for _ in range(1_000):
        p = 1 / (1 + np.exp(theta[..., None, :] - theta[..., :, None]))
        slope = (wins - games * p).sum(-1)
        weights = games * p * (1 - p)
        bend = weights.sum(-1)[..., None] * np.eye(k) - weights
        # Equal steps for all change nothing, so `bend` is singular along them: the added ones make it solvable.
        step = np.linalg.solve(bend + weights.max((-1, -2), keepdims=True), slope[..., None])[..., 0]
        longest = np.abs(step).max(-1, keepdims=True)
        theta = theta + step / np.maximum(1, longest)
        if longest.max() < 1e-6:  # below that, rounding keeps a system that always won from coming to rest
            break
    return np.asarray(theta - theta.mean(-1, keepdims=True))


def with_prior(wins: Float[np.ndarray, "*draws k k"], prior: float) -> Float[np.ndarray, "*draws k k"]:
    """Every pair starts with `prior` wins each way, so that a system that never lost has a finite strength."""
    return wins + prior * (1 - np.eye(wins.shape[-1]))


def draw(wins: Float[np.ndarray, "n k k"], draws: int, seed: int) -> Float[np.ndarray, "draws k"]:
    """Strengths as uncertain as the data leave them: a Bayesian bootstrap over sentences. Rubin 1981.

    Each draw weighs every sentence by an exponential variable, and the prior half wins by Γ(½). Sentences are weighed
    and not single pairs, since the pairs of one sentence depend on each other: the Fisher information, which takes
    them as independent, gives intervals that are too narrow. Unlike with the plain bootstrap, a system that won every
    time still has an interval. For two systems without ties, σ(θ₁ - θ₂) is drawn from Beta(½ + wins, ½ + losses):
    Jeffreys' interval.
    """
    rng = np.random.default_rng(seed)
    n, k, _ = wins.shape
    counts = rng.standard_exponential((draws, n)) @ wins.reshape(n, k * k)
    # Γ(½) can be as good as 0, which has no logarithm; below a millionth is one draw in a thousand.
    prior = np.maximum(rng.standard_gamma(PRIOR, (draws, k, k)), 1e-6)
    return strengths(counts.reshape(draws, k, k) + prior)
