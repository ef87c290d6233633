"""Text that nobody wrote: lines of made-up words, some of them much more frequent than others, as in real text."""

from pathlib import Path

import numpy as np

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
WORDS = 20_000


def lexicon(words: int) -> list[str]:
    """The first `words` made-up words: numbers, spelt with syllables for digits."""
    base, found = len(SYLLABLES), []
    for number in range(words):
        spelt, rest = SYLLABLES[number % base], number // base
        while rest:
            spelt, rest = spelt + SYLLABLES[rest % base], rest // base
        found.append(spelt)
    return found


def write_lines(path: Path, lines: int, *, words: tuple[int, int], seed: int) -> None:
    """A file of `lines` lines, each of words[0] to words[1] words."""
    rng, known = np.random.default_rng(seed), np.array(lexicon(WORDS))
    chances = 1 / np.arange(1, len(known) + 1)  # Zipf's law
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for begin in range(0, lines, 10_000):  # a million lines need not be in memory
            lengths = rng.integers(words[0], words[1] + 1, min(10_000, lines - begin))
            drawn = rng.choice(known, lengths.sum(), p=chances / chances.sum())
            out.writelines(f"{' '.join(line)}\n" for line in np.split(drawn, lengths.cumsum()[:-1]))
