"""What an output has to contain, and how much of it is already there: a small automaton over tokens.

Tokens can be read in more than one way: "New York" may be the phrase that is wanted, or a part of "New York City", that
is wanted too. So a prefix has several readings, and is as good as the best of them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.errors import DecodingError

Ids = Sequence[int]


@dataclass(frozen=True)
class Phrase:
    """`times` stretches of the output that do not overlap must each be one of the spellings, and no more may be."""

    spellings: tuple[tuple[int, ...], ...]
    times: int = 1

    def __post_init__(self) -> None:
        if not self.spellings or not all(self.spellings) or self.times < 1:
            raise DecodingError(f"required phrase: found {self}, expected one or more tokens, once or more often")


@dataclass(frozen=True)
class Seams:
    """By id, which tokens go on with a word (`begins`) and which leave one to go on with (`ends`)."""

    begins: Sequence[bool]
    ends: Sequence[bool]


class Reading(NamedTuple):
    """How often each phrase is still to come; the tokens left of the one that is begun; whether one has just ended
    in the middle of what may yet become a longer word, which would not be the phrase."""

    needs: tuple[int, ...]
    rest: tuple[int, ...] = ()
    open_word: bool = False


class Progress(NamedTuple):
    """All readings of a prefix, and how often each phrase is in it, wanted or not."""

    readings: frozenset[Reading]
    counts: tuple[int, ...]


class Wanted:
    """The phrases of one sentence. A phrase counts only where it is no part of a longer word.

    Where a phrase has no spelling that can follow any token (a vocabulary without spaces), words have no borders here.
    """

    def __init__(self, phrases: Sequence[Phrase], seams: Seams) -> None:
        self.phrases = phrases
        anywhere = [[s for s in phrase.spellings if not seams.begins[s[0]]] for phrase in phrases]
        self.begins: Sequence[bool] = seams.begins if all(anywhere) else ()
        self.ends: Sequence[bool] = seams.ends if all(anywhere) else ()
        chosen = anywhere if all(anywhere) else [phrase.spellings for phrase in phrases]
        self.shortest = [min(map(len, spellings)) for spellings in chosen]
        self.most = [sum(other.times * holds(other, phrase) for other in phrases) for phrase in phrases]
        self.tokens = sum(phrase.times * size for phrase, size in zip(phrases, self.shortest, strict=True))

    def start(self) -> Progress:
        needs = tuple(phrase.times for phrase in self.phrases)
        return Progress(frozenset([Reading(needs)]), (0,) * len(needs))

    def step(self, progress: Progress, prefix: Ids, token: int) -> Progress:
        """What is known after one more token; `prefix` are those before it."""
        counts = tuple(
            count + any(ends_with(prefix, token, spelling) for spelling in phrase.spellings)
            for count, phrase in zip(progress.counts, self.phrases, strict=True)
        )
        return Progress(self.read(progress.readings, prefix[-1] if prefix else None, token), counts)

    def read(self, readings: Iterable[Reading], last: int | None, token: int) -> frozenset[Reading]:
        goes_on = self.goes_on(token)
        within = goes_on and last is not None and self.ends[last]  # in the middle of a word no phrase begins
        found = []
        for needs, rest, open_word in readings:
            if rest:
                found += [self.reading(needs, rest[1:], token)] if rest[0] == token else []
            elif not (open_word and goes_on):
                found.append(Reading(needs))
                found += [] if within else self.begun(needs, token)
        return frozenset(undominated(found))

    def begun(self, needs: tuple[int, ...], token: int) -> list[Reading]:
        """The readings in which this token is the first of a phrase."""
        found = []
        for place, phrase in enumerate(self.phrases):
            if needs[place]:
                less = (*needs[:place], needs[place] - 1, *needs[place + 1 :])
                found += [self.reading(less, s[1:], token) for s in phrase.spellings if s[0] == token]
        return found

    def reading(self, needs: tuple[int, ...], rest: tuple[int, ...], token: int) -> Reading:
        return Reading(needs, rest, not rest and bool(self.ends) and self.ends[token])

    def goes_on(self, token: int) -> bool:
        return bool(self.begins) and self.begins[token]

    def missing(self, readings: Iterable[Reading]) -> int:
        """The fewest tokens with which everything is there."""
        return min(
            sum(need * size for need, size in zip(needs, self.shortest, strict=True)) + len(rest)
            for needs, rest, _ in readings
        )

    def besides(self, readings: Iterable[Reading], *, goes_on: bool) -> list[Reading]:
        """The readings after a token of no phrase, which goes on with a word or does not."""
        return [Reading(needs) for needs, rest, open_word in readings if not rest and not (open_word and goes_on)]

    def useful(self, progress: Progress, prefix: Ids) -> set[int]:
        """The tokens that go on with a phrase or begin one."""
        last = prefix[-1] if prefix else None
        firsts = {
            s[0]
            for needs, rest, _ in progress.readings
            if not rest
            for need, phrase in zip(needs, self.phrases, strict=True)
            if need
            for s in phrase.spellings
        }
        inside = last is not None and bool(self.ends) and self.ends[last]
        return {rest[0] for _, rest, _ in progress.readings if rest} | {
            token for token in firsts if not (inside and self.goes_on(token))
        }

    def surplus(self, progress: Progress, prefix: Ids) -> set[int]:
        """The tokens that would complete a phrase that is there often enough."""
        full = zip(progress.counts, self.most, self.phrases, strict=True)
        spellings = [s for count, most, phrase in full if count >= most for s in phrase.spellings]
        return {s[-1] for s in spellings if ends_with(prefix, s[-1], s)}


def ends_with(prefix: Ids, token: int, spelling: tuple[int, ...]) -> bool:
    """Whether prefix + token ends in the spelling."""
    size = len(spelling) - 1
    return spelling[-1] == token and size <= len(prefix) and tuple(prefix[len(prefix) - size :]) == spelling[:-1]


def holds(whole: Phrase, part: Phrase) -> int:
    """How often a spelling of `part` ends within one of `whole`, at most."""
    return max(
        sum(any(ends_with(s[:end], s[end], each) for each in part.spellings) for end in range(len(s)))
        for s in whole.spellings
    )


def undominated(readings: Iterable[Reading]) -> set[Reading]:
    """Without those that miss all that one between two phrases misses: to have begun something gains nothing then."""
    found = set(readings)
    idle = [reading for reading in found if not reading.rest and not reading.open_word]
    return {
        one for one in found if not any(all(map(int.__le__, other.needs, one.needs)) for other in idle if other != one)
    }


def phrases_of(spelled: Iterable[tuple[tuple[int, ...], ...]]) -> list[Phrase]:
    """Equal ones as one that is wanted several times."""
    return [Phrase(spellings, times) for spellings, times in Counter(spelled).items()]
