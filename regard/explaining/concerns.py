"""Why a person should look at an output: it hardly depends on its source, says the same again, leaves words out, or
the model itself finds it improbable.

All but the repetition is found by asking the model once more for the same output: with the whole source, with none, and
without each of its words in turn, all in one batch.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DecodingError
from regard.explaining.explanation import Concern, Side, Word
from regard.explaining.leaving_out import Written, without_source
from regard.explaining.rise import Score
from regard.models.interface import SequenceToSequence
from regard.text.special import BOS

LONGEST = 512  # tokens of one text: it is read once for each of its words
WORDS = 4  # of the longest phrase whose repetition is looked for
NAMED = 5  # words in one message
LEAST = 1e-300  # a probability that has a logarithm


@dataclass(frozen=True)
class Thresholds:
    """From where on something is a concern.

    `told`: the source should explain at least this share of how surprising the output is without it; where it explains
    less, the model goes on from its own words. `lost`: a word that was translated takes so much of the probability of
    some token away when it goes; words that others imply take little. `sure`: the geometric mean probability of a
    token, `word` the probability of a single one. `letters`: shorter words may well be translated by nothing.
    `often`: a phrase may be said twice.
    """

    told: float = 0.4
    lost: float = 0.03
    sure: float = 0.3
    word: float = 0.02
    letters: int = 4
    often: int = 3


USUAL = Thresholds()


@dataclass(frozen=True)
class Check:
    """What is wrong with an output, and two measures that every output has, good or bad.

    `dependence`: how much of its log probability the source explains. `confidence`: the geometric mean probability of
    its tokens.
    """

    concerns: tuple[Concern, ...]
    dependence: float
    confidence: float


def check_output(
    model: SequenceToSequence, source: Side, target: Side, *, start: int = BOS, thresholds: Thresholds = USUAL
) -> Check:
    """The check of the target that a model gave for the source, which ends with the end token.

    The model is in evaluation mode.
    """
    for name, side in (("text", source), ("target", target)):
        if len(side.tokens) > LONGEST:
            raise DecodingError(
                f"{name} {side.text[:40]!r}…: {len(side.tokens)} tokens, expected at most {LONGEST} in a text that is "
                "checked; split it into sentences"
            )
    ids = [tuple(token.id for token in side.tokens) for side in (source, target)]
    return check_by(source, target, without_source(model, Written(ids[0], start, ids[1])), thresholds)


def check_by(source: Side, target: Side, ask: Score, thresholds: Thresholds = USUAL) -> Check:
    """The same, where `ask` gives the probability of each target token for masks over the source but its end token."""
    whole, emptied, *without = ask(questions(source))
    dependence, confidence = told(whole, emptied), mean(whole)
    found = [detached(dependence, thresholds), repetition(source.words, target.words, thresholds)]
    if found[0] is None:  # else every word is one that nothing depends on
        found.append(untranslated(source.words, whole, without, thresholds))
    found.append(unsure(target, whole, confidence, thresholds))
    return Check(tuple(one for one in found if one is not None), dependence, confidence)


def questions(source: Side) -> Float[Tensor, "questions places"]:
    """Masks that keep all, none, and all but each word in turn."""
    tokens = source.tokens[:-1]
    kept = [[word not in token.words for token in tokens] for word in range(len(source.words))]
    return torch.tensor([[True] * len(tokens), [False] * len(tokens), *kept]).float()


# ---------------------------------------------------------------- by probabilities
def told(whole: Float[Tensor, " t"], emptied: Float[Tensor, " t"]) -> float:
    """1 − log p(output | source) / log p(output | nothing); 0 where both are certain.

    Below 0 where the source makes the output less probable.
    """
    given, nothing = (float(p.clamp(min=LEAST).log().sum()) for p in (whole, emptied))
    return 1 - given / nothing if nothing else 0.0


def mean(whole: Float[Tensor, " t"]) -> float:
    """p(output | source)^(1/t), at most 1 also where rounding says more."""
    return min(1.0, math.exp(float(whole.clamp(min=LEAST).log().mean())))


def detached(dependence: float, thresholds: Thresholds) -> Concern | None:
    """The source explains less than `told`."""
    if dependence >= thresholds.told:
        return None
    message = (
        f"the output hardly depends on the source, which explains {dependence:.2f} of its log probability, expected "
        f"{thresholds.told:g} or more"
    )
    return Concern(kind="detached", message=message, value=dependence)


def untranslated(
    words: Sequence[Word], whole: Float[Tensor, " t"], without: Sequence[Float[Tensor, " t"]], thresholds: Thresholds
) -> Concern | None:
    """Words without which no token of the output loses more than `lost` of its probability; short ones do not count."""
    losses = [float((whole - each).max()) for each in without]
    long = [place for place, word in enumerate(words) if len(plain(word.text)) >= thresholds.letters]
    missed = [place for place in long if losses[place] < thresholds.lost]
    if not missed:
        return None
    most = max(losses[place] for place in missed)
    message = (
        f"nothing in the output depends on {quoted(words[place].text for place in missed)}: without it no token loses "
        f"more than {max(most, 0.0):.2f} of its probability"
    )
    return Concern(kind="untranslated", message=message, value=most, source_words=tuple(missed))


def unsure(target: Side, whole: Float[Tensor, " t"], confidence: float, thresholds: Thresholds) -> Concern | None:
    """The mean token has less than `sure`, or some token of a word less than `word`; these words are named."""
    least = [math.inf] * len(target.words)
    for token, p in zip(target.tokens, whole.tolist(), strict=True):
        for word in token.words:
            least[word] = min(least[word], p)
    doubted = [place for place, p in enumerate(least) if p < thresholds.word]
    if confidence < thresholds.sure:
        message, value = f"the model is unsure: {confidence:.2f} is the mean probability of its tokens", confidence
    elif doubted:
        value = min(least[place] for place in doubted)
        names = quoted(target.words[place].text for place in doubted)
        message = f"the model is unsure of {names}: a token of it has a probability of {value:.3f}"
    else:
        return None
    return Concern(kind="unsure", message=message, value=value, target_words=tuple(doubted))


# ---------------------------------------------------------------- by words alone
def repetition(source: Sequence[Word], target: Sequence[Word], thresholds: Thresholds) -> Concern | None:
    """A phrase of the target that follows itself more often than any of the source does, or comes far more often."""
    texts, said = ([plain(word.text) for word in words] for words in (source, target))
    spoken = [place for place, word in enumerate(said) if word]  # punctuation may come as often as it likes
    ours, theirs = [said[place] for place in spoken], [text for text in texts if text]
    found = again_at_once(ours, theirs, thresholds) or again_and_again(ours, theirs, thresholds)
    if found is None:
        return None
    phrase = " ".join(target[spoken[place]].text for place in found.places[: found.length])
    together = " in a row" if found.together else ""
    return Concern(
        kind="repetition",
        message=f"says {phrase!r} {found.times} times{together}",
        value=float(found.times),
        target_words=tuple(spoken[place] for place in found.places),
    )


@dataclass(frozen=True)
class Repeated:
    """A phrase of so many words that is said again: all places of its words, those of its first time first."""

    places: tuple[int, ...]
    length: int
    times: int
    together: bool


def again_at_once(ours: Sequence[str], theirs: Sequence[str], thresholds: Thresholds) -> Repeated | None:
    """The phrase with most copies in a row, if the source has none with as many; "die die" is a sentence's right."""
    usual = max((times for _, _, times in runs(theirs)), default=1)
    odd = [
        (start, length, times)
        for start, length, times in runs(ours)
        if times > usual and (length > 1 or times > 2 or len(ours[start]) >= thresholds.letters)
    ]
    if not odd:
        return None
    start, length, times = max(odd, key=lambda run: run[2])
    return Repeated(tuple(range(start, start + length * times)), length, times, together=True)


def runs(words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Every phrase that follows itself: where it begins, its length in words, and how often it stands there."""
    for length in range(1, WORDS + 1):
        start = 0
        while start + 2 * length <= len(words):
            times, phrase = 1, words[start : start + length]
            while words[start + times * length : start + (times + 1) * length] == phrase:
                times += 1
            if times > 1:
                yield start, length, times
            start += length * (times - 1) + 1


def again_and_again(ours: Sequence[str], theirs: Sequence[str], thresholds: Thresholds) -> Repeated | None:
    """A phrase of two words or more said `often`, and twice more than the source says any phrase of that length."""
    for length in range(WORDS, 1, -1):
        usual = max(Counter(phrases(theirs, length)).values(), default=0)
        said = phrases(ours, length)
        for phrase, times in Counter(said).most_common():
            if times < max(thresholds.often, usual + 2):
                break
            if any(len(word) >= thresholds.letters for word in phrase):
                starts = [place for place, other in enumerate(said) if other == phrase]
                places = dict.fromkeys(place for start in starts for place in range(start, start + length))
                return Repeated(tuple(places), length, times, together=False)
    return None


def phrases(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + length]) for start in range(len(words) - length + 1)]


def plain(word: str) -> str:
    """Its letters and digits, without case."""
    return "".join(character for character in word if character.isalnum()).casefold()


def quoted(words: Iterator[str]) -> str:
    """ "one", "two" and 3 more."""
    every = [f'"{word}"' for word in words]
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more
