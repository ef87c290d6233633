"""Tokens hidden for a model to fill in: masked language modelling. Devlin et al. 2019, §3.1."""

import numpy as np
from jaxtyping import Bool, Int32

from regard.text.special import NAMES
from regard.text.tokeniser import Tokeniser
from regard.text.unicode import SPACE
from regard.text.wordpiece import CONTINUED

MASK = "[MASK]"  # its name in published vocabularies, and how a user writes a hole
MASKED, RANDOM = 0.8, 0.1  # of the chosen tokens; the others stay as they are


def mask_id(tokeniser: Tokeniser) -> int:
    """The id after the tokeniser's own; the last of a published tokeniser, which has a mask already."""
    last = len(tokeniser) - 1
    return last if tokeniser.name(last) == MASK else last + 1


def word_beginnings(tokeniser: Tokeniser) -> Bool[np.ndarray, " vocabulary"]:
    """Of every id, the mask's too, whether it begins a word: with a space or a line end, else by not going on (##)."""
    names = [tokeniser.name(id) for id in range(mask_id(tokeniser))]
    found = [name.startswith(SPACE) or tokeniser.decode([id])[:1].isspace() for id, name in enumerate(names)]
    return np.array([*(found if any(found) else [not name.startswith(CONTINUED) for name in names]), True])


def mask_tokens(
    ids: Int32[np.ndarray, " t"], chosen: Bool[np.ndarray, " t"], vocabulary: int, rng: np.random.Generator
) -> Int32[np.ndarray, " t"]:
    """What the model sees: of the chosen tokens 80 % as the mask, 10 % as a random token, 10 % as they are.

    The mask is the last id of the vocabulary; a random token is neither that nor a special one. What is to be predicted
    are `ids` where `chosen`. Each token draws alone, also within a word.
    """
    mask, u = vocabulary - 1, rng.random(len(ids))
    drawn = rng.integers(len(NAMES), mask, len(ids), dtype=np.int32)
    seen = np.where(u < MASKED, np.int32(mask), np.where(u < MASKED + RANDOM, drawn, ids))
    return np.where(chosen, seen, ids)


def choose_tokens(ids: Int32[np.ndarray, " t"], share: float, rng: np.random.Generator) -> Bool[np.ndarray, " t"]:
    """round(share · tokens) of the tokens that are not special, at least one; none where all are special."""
    ordinary = np.flatnonzero(ids >= len(NAMES))
    chosen = np.zeros(len(ids), dtype=bool)
    chosen[rng.permutation(ordinary)[: budget(len(ordinary), share)]] = True
    return chosen


def choose_words(
    ids: Int32[np.ndarray, " t"], begins: Bool[np.ndarray, " vocabulary"], share: float, rng: np.random.Generator
) -> Bool[np.ndarray, " t"]:
    """Whole words in random order, each that still fits into round(share · tokens); at least one, however long.

    `begins` says of every id whether it begins a word. A word also begins after a special token and ends before one.
    As Google's whole word masking (2019), which differs in choosing nothing where no word fits.
    """
    ordinary = ids >= len(NAMES)
    first = ordinary & (begins[ids] | ~np.concatenate([[False], ordinary[:-1]]))
    word = np.where(ordinary, np.cumsum(first), 0)  # 0: special
    sizes = np.bincount(word, minlength=1)[1:]
    left = budget(int(ordinary.sum()), share)
    taken: list[int] = []
    for place in rng.permutation(len(sizes)).tolist():
        if sizes[place] <= left:
            taken.append(place + 1)
            left -= int(sizes[place])
        if not left:
            break
    if not taken and len(sizes):
        taken = [int(rng.integers(len(sizes))) + 1]
    return np.isin(word, taken)


def budget(tokens: int, share: float) -> int:
    return min(tokens, max(1, round(share * tokens)))
