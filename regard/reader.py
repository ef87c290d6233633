"""Encoders at work: what belongs into a hole, which class a text is of, and one vector for a text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.framing import framed, shortened
from regard.data.masking import MASK, mask_id
from regard.decoding.batching import order_by_length
from regard.errors import DecodingError
from regard.models.bert import pooled_mean
from regard.recipe.reading import (
    ClassifierFolder,
    EncoderFolder,
    MaskedFolder,
    read_classifier,
    read_encoder,
    read_masked,
)
from regard.tasks.classify import cells, classify, rows_of
from regard.tasks.options import MaskedOptions
from regard.text.special import BOS, EOS, NAMES
from regard.text.tokeniser import Tokeniser
from regard.text.unicode import SPACE

HOLE = "▢"
HOLES = re.compile(f"{re.escape(MASK)}|{HOLE}")
BATCH_TOKENS = 4096


# ---------------------------------------------------------------- holes
@dataclass(frozen=True)
class Guess:
    """One token that may belong into a hole: as it reads, and as the vocabulary has it (▁ for a space before it)."""

    text: str
    piece: str
    probability: float


class Filler:
    """Names what is hidden."""

    def __init__(self, folder: MaskedFolder) -> None:
        options = folder.recipe.task
        assert isinstance(options, MaskedOptions)
        self.model, self.tokeniser, self.longest = folder.model, folder.tokeniser, options.context
        self.mask = mask_id(folder.tokeniser)

    @torch.inference_mode()
    def fill(self, text: str, top: int = 5) -> list[list[Guess]]:
        """For each [MASK] or ▢, in their order, the likeliest tokens; all holes are open at once.

        A hole is one token. p is among the tokens that can be written: neither special ones nor the mask.
        """
        tokens = torch.tensor([[BOS, *with_holes(self.tokeniser, text), EOS]])
        holes = tokens == self.mask
        if not holes.any():
            raise DecodingError(f"text: found no hole in {text[:40]!r}; write {MASK} or {HOLE} where a word is missing")
        if tokens.shape[1] > self.longest:
            raise DecodingError(
                f"text: {tokens.shape[1]} tokens with start and end, but this model learned to read {self.longest} at "
                "a time; shorten it"
            )
        features = self.model.features(tokens, torch.ones_like(holes), torch.zeros_like(tokens))[holes]
        logits = self.model.head(features)
        logits[:, [*range(len(NAMES)), self.mask]] = -torch.inf
        best = logits.softmax(-1).topk(min(top, self.mask - len(NAMES)))
        return [
            [Guess(self.tokeniser.decode([id]), self.tokeniser.name(id), p) for p, id in zip(*row, strict=True)]
            for row in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]


def with_holes(tokeniser: Tokeniser, text: str) -> list[int]:
    """The ids of a text in which every hole is the mask. A hole stands for a token with the space before it.

    That is where tokens have one (subwords); of a text in characters or bytes it stands for one of them.
    """
    mask = mask_id(tokeniser)
    if mask < len(tokeniser):
        return tokeniser.encode(HOLES.sub(MASK, text))  # a published tokeniser knows its mask by name
    names = (tokeniser.name(id) for id in range(len(NAMES), len(tokeniser)))
    spaced = any(name.startswith(SPACE) and name != SPACE for name in names)
    *parts, last = HOLES.split(text)
    if spaced:
        parts = [part.removesuffix(" ") for part in parts]
    # A stand-in for each hole lets the tokeniser cut the text around it as it would without it: no token crosses ▁.
    holes = {sum(map(len, parts[: i + 1])) + i for i in range(len(parts))}
    found: list[int] = []
    filled = -1
    for piece in tokeniser.pieces(SPACE.join([*parts, last])):
        if piece.start == piece.end == 0 and 0 in holes:
            continue  # the space before a text that begins with a hole is the hole's own
        if piece.start not in holes:
            found.append(piece.id)
        elif piece.start != filled:  # once, however many pieces the stand-in has
            found.append(mask)
            filled = piece.start
    return found


# ---------------------------------------------------------------- vectors
class Embedder:
    """One vector for each text: texts that are alike have vectors that point the same way."""

    def __init__(self, folder: EncoderFolder) -> None:
        self.folder = folder

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Float[Tensor, "texts d"]:
        """The mean of the encoder's last vectors over the tokens of a text; zeros for a text that has none.

        Start and end are left out of the mean, and so is what the model did not learn to read: tokens beyond its
        longest text. Reimers & Gurevych 2019.
        """
        folder = self.folder
        frames = [framed(*shortened(folder.tokeniser.encode(text), None, folder.longest)) for text in texts]
        found = torch.zeros(len(texts), folder.encoder.entrance.segments.embedding_dim)
        for part in order_by_length([len(tokens) for tokens, _ in frames], BATCH_TOKENS):
            rows = rows_of([frames[i] for i in part])
            own = rows.mask & (rows.tokens != BOS) & (rows.tokens != EOS)
            found[part] = pooled_mean(folder.encoder(*cells(rows)), own)
        return found


# ---------------------------------------------------------------- classes
@dataclass(frozen=True)
class Decision:
    """The likeliest class of a text, and how probable each class is, by name."""

    label: str
    probabilities: dict[str, float]

    @property
    def probability(self) -> float:
        return self.probabilities[self.label]


class Classifier:
    """Sorts texts, or pairs of texts."""

    def __init__(self, folder: ClassifierFolder) -> None:
        self.folder, self.pairs = folder, folder.classes.pairs

    @torch.inference_mode()
    def classify(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> list[Decision]:
        """One decision for each text; of a text beyond the recipe's data.max_tokens the beginning is read."""
        self.refuse(texts, seconds)
        tokeniser, most = self.folder.classes.tokeniser, self.folder.recipe.data.max_tokens
        firsts = [tokeniser.encode(text) for text in texts]
        others = [None] * len(texts) if seconds is None else [tokeniser.encode(text) for text in seconds]
        frames = [framed(*shortened(*pair, most)) for pair in zip(firsts, others, strict=True)]
        if not frames:
            return []
        names = self.folder.classes.labels.names
        probabilities = classify(self.folder.model, frames, BATCH_TOKENS).softmax(-1)
        return [
            Decision(names[best], dict(zip(names, row, strict=True)))
            for best, row in zip(probabilities.argmax(-1).tolist(), probabilities.tolist(), strict=True)
        ]

    def refuse(self, texts: Sequence[str], seconds: Sequence[str] | None) -> None:
        """What cannot be sorted, by its number."""
        if self.pairs != (seconds is not None):
            found, wanted = ("single texts", "pairs") if self.pairs else ("pairs", "single texts")
            raise DecodingError(f"classify: found {found}, but this model learned from {wanted}; give {wanted}")
        if seconds is not None and len(seconds) != len(texts):
            raise DecodingError(f"classify: {len(texts)} texts and {len(seconds)} second texts; give one for each")
        for number, text in enumerate(texts, start=1):
            if not text.strip() or (seconds is not None and not seconds[number - 1].strip()):
                raise DecodingError(f"classify: text {number} is empty; leave it out")


# ---------------------------------------------------------------- from a directory
def load_filler(path: str | Path) -> Filler:
    """The masked language model in this directory; ModelFormatError where it is damaged, or learned something else."""
    return Filler(read_masked(Path(path)))


def load_embedder(path: str | Path) -> Embedder:
    """The encoder of the masked language model or classifier in this directory."""
    return Embedder(read_encoder(Path(path)))


def load_classifier(path: str | Path) -> Classifier:
    """The classifier of texts in this directory."""
    return Classifier(read_classifier(Path(path)))
