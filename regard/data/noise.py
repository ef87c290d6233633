"""Text made worse on purpose: what a model learns from with holes in it, it needs less of."""

import random
from collections.abc import Sequence

from regard.text.special import UNK

DROPPED = 0.1  # of the words
REACH = 3  # places that a word may move


def drop_words(ids: Sequence[int], p: float, rng: random.Random) -> list[int]:
    """Each id with probability 1 − p, else <unk>: the place stays, what stood there is unknown.

    Gal & Ghahramani 2016 drop whole words; Sennrich et al. 2016 (WMT) each subword with p = 0.1, on both sides.
    """
    return [UNK if rng.random() < p else id for id in ids]


def noised(text: str, rng: random.Random) -> str:
    """The words of a text, some left out, the others moved by at most `REACH` places; never none of several words.

    The noise of Lample et al. 2018, §2.3, which Edunov et al. 2018 put on back-translations.
    """
    words = text.split()
    kept = [word for word in words if rng.random() >= DROPPED] or words
    places = [place + rng.uniform(0, REACH + 1) for place in range(len(kept))]
    return " ".join(kept[place] for place in sorted(range(len(kept)), key=places.__getitem__))
