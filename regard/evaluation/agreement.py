"""Do people who judged the same pairs of outputs say the same?"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

from regard.evaluation.judgements import Judgement
from regard.evaluation.ranking import Signed, opinions


@dataclass(frozen=True)
class Agreement:
    """`pairs`: a pair of outputs and two people who both judged it. `same`: the share on which these agree, in %.

    `chance`: the share that would agree if each answered at random, as often "equal" as they do together, and either
    side else: e² + (1 - e)²/2. Bojar et al. 2013, who count so for the WMT.
    """

    pairs: int
    same: float
    chance: float

    @property
    def kappa(self) -> float | None:
        """(same - chance) / (100 - chance): 1 always, 0 no more than by chance; none where all is "equal"."""
        return (self.same - self.chance) / (100 - self.chance) if self.chance < 100 else None

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "kappa": self.kappa}


def agreement(judgements: Sequence[Judgement]) -> Agreement | None:
    """None where no two people have judged the same pair. What follows from their answers counts, as in a ranking."""
    said = list(shared(judgements))
    if not said:
        return None
    equal = sum((one == 0) + (other == 0) for one, other in said) / (2 * len(said))
    same = sum(one == other for one, other in said) / len(said)
    return Agreement(len(said), 100 * same, 100 * (equal**2 + (1 - equal) ** 2 / 2))


def shared(judgements: Sequence[Judgement]) -> Iterator[tuple[int, int]]:
    """For each pair of outputs, what two of its judges say: 1 the first is better, -1 the second, 0 equal.

    Outputs that are the same text are left out: nobody was asked about them.
    """
    said: dict[tuple[tuple[int, str], Signed, Signed], list[int]] = {}
    for about, outputs, found in opinions(judgements):
        reach = found.tolist()
        for (i, one), (j, other) in combinations(enumerate(outputs), 2):
            if one[1] != other[1] and (reach[i][j] or reach[j][i]):
                said.setdefault((about, one, other), []).append(int(reach[i][j]) - int(reach[j][i]))
    for verdicts in said.values():
        yield from combinations(verdicts, 2)
