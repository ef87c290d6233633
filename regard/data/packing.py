"""Documents to rows of equal length without padding: what a language model is trained on.

The documents, each closed by EOS, are one stream of tokens to predict, which goes round: the first document follows
the last. A window is a stretch of it, [first, end): an epoch is a list of arrays of windows, one a batch, and tokens
are only cut out of the stream when a batch is wanted.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int, Int32

from regard.errors import DataError
from regard.text.special import BOS, EOS


def join(documents: Iterable[Sequence[int]]) -> Int32[np.ndarray, " tokens"]:
    """The stream: the ids of each document, then EOS. A document without tokens is left out."""
    parts = [np.array([*document, EOS], dtype=np.int32) for document in documents if len(document)]
    if not parts:
        raise DataError("data.texts: found no token in any document; give text to learn from")
    return np.concatenate(parts)


def pack(tokens: int, context: int, offset: int = 0) -> Int[np.ndarray, "windows 2"]:
    """Windows that follow one another from `offset` once round the stream: every token is in exactly one.

    Each has `context` tokens but the last, which has what is left.
    """
    firsts = np.arange(0, tokens, context)
    return np.stack([firsts, np.minimum(firsts + context, tokens)], axis=1) + offset


def group(windows: Int[np.ndarray, "windows 2"], rows: int) -> list[Int[np.ndarray, "rows 2"]]:
    """Batches of `rows` windows in order; a last window that is shorter than the others is a batch of its own."""
    lengths = windows[:, 1] - windows[:, 0]
    whole = len(windows) - int(lengths[-1] < lengths[0])
    batches = [windows[i : min(i + rows, whole)] for i in range(0, whole, rows)]
    return batches if whole == len(windows) else [*batches, windows[whole:]]


def packed_epoch(tokens: int, context: int, rows: int, seed: int, epoch: int) -> list[Int[np.ndarray, "rows 2"]]:
    """Every token exactly once, in windows that begin elsewhere in each epoch and come in random order."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
    windows, whole = pack(tokens, context, int(rng.integers(tokens))), tokens // context
    return group(np.concatenate([rng.permutation(windows[:whole]), windows[whole:]]), rows)


def cropped_epoch(tokens: int, context: int, rows: int, seed: int, epoch: int) -> list[Int[np.ndarray, "rows 2"]]:
    """Windows that begin anywhere, independently of each other: as many full batches as hold the stream once or more.

    What nanoGPT trains on (Karpathy 2022): a token is predicted about once an epoch, some never, some several times.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
    length = min(context, tokens)
    firsts = rng.integers(tokens, size=(-(-tokens // (rows * length)), rows))
    return [np.stack([row, row + length], axis=1) for row in firsts]


def cut_rows(
    stream: Int32[np.ndarray, " tokens"], batch: Int[np.ndarray, "rows 2"], start: int = BOS
) -> tuple[Int32[np.ndarray, "rows t"], Int32[np.ndarray, "rows t"]]:
    """What is seen and what is to be predicted, of windows of one length: targets[t] follows inputs[t] in the stream.

    A document begins after `start`, in the place of the EOS that closes the one before: a generated text begins so too.
    Published models that know no start token want EOS itself there.
    """
    (length,) = set((batch[:, 1] - batch[:, 0]).tolist())
    places = batch[:, :1] + np.arange(-1, length)  # one more in front: what the first token follows
    found = stream[places % len(stream)]
    inputs = found[:, :-1]
    return np.where(inputs == EOS, np.int32(start), inputs), found[:, 1:]
