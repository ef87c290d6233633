"""A translator that is ready to align: pairs of sentences in, links between their words out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from regard.data.pairs import Pair
from regard.decoding.batching import order_by_length
from regard.errors import DecodingError, ModelFormatError
from regard.evaluation.alignment import AlignmentScore, Gold, Links, score_links
from regard.explaining.alignment import (
    Look,
    attention_sizes,
    belonging,
    cross_weights,
    described,
    every_look,
    looked,
    side_by_side,
    strongest,
    word_weights,
)
from regard.explaining.roles import best_layer
from regard.recipe.folder import ModelFolder, read_model
from regard.tasks.guiding import taught_head
from regard.tasks.translate import collate
from regard.text.offsets import word_spans, words_of
from regard.text.tokeniser import Tokeniser

BATCH_TOKENS = 2048  # of the longer side; all weights of a batch are in memory at once
LONGEST = 1024  # tokens a side: the weights of a pair grow with its square


@dataclass(frozen=True)
class Side:
    """One side of a pair: its ids, and which of them belong to which word."""

    ids: list[int]
    words: Float[Tensor, "words pieces"]


class Aligner:
    """Links the words of given pairs by what the model looks at; words are what stands between white space.

    `look` is where it looks unless it is told: at the head that was taught to align, else at the mean of all
    at the step that writes a word.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self.folder, self.vocabularies, self.model = folder, folder.vocabularies, folder.model.eval()
        self.heads = attention_sizes(self.model)  # of each layer
        if not self.heads:
            raise ModelFormatError(
                f"{folder.path}: a {folder.recipe.model.kind} model without attention, so it looks at no word; "
                "use a model with attention"
            )
        loss = folder.recipe.loss
        self.look = Look(*taught_head(loss, len(self.heads)), loss.guided_step) if loss.guided else Look()

    def align(self, pairs: Sequence[Pair], look: Look | None = None, threshold: float = 0.0) -> list[Links]:
        """The links of each pair, in order: one for each target word, or none where it looks at words too little.

        `threshold`: how much of its attention, at most 1, a word must give to the one that it is linked to.
        """
        look = look or self.look
        self.refuse_missing(look)
        found: list[Links] = [frozenset()] * len(pairs)
        for i, (weights,) in self.word_maps(pairs, [look]):
            found[i] = strongest(weights, threshold)
        return found

    def link(self, pair: Pair) -> Links:
        """The links of one pair by itself, where nobody says where to look; see `sights`."""
        found: Links = frozenset()
        for _, maps in self.word_maps([pair], self.sights):
            found = strongest(maps[best_layer([maps])], 0.0)
        return found

    def place(self, pair: Pair) -> Links:
        """The links of one pair by which to move what stands around its words; see `side_by_side`."""
        found: Links = frozenset()
        for _, maps in self.word_maps([pair], self.sights):
            found = side_by_side(maps[best_layer([maps])])
        return found

    @property
    def sights(self) -> list[Look]:
        """Where to look for one pair: at the head that was taught, else at that layer which aligns it best."""
        return [self.look] if self.look.layer else [Look(layer) for layer in range(1, len(self.heads) + 1)]

    def rank(self, pairs: Sequence[Pair], gold: Sequence[Gold]) -> list[tuple[Look, AlignmentScore]]:
        """Every place to look with its score against the gold links, the least error first."""
        looks = every_look(self.heads)
        scores = [AlignmentScore()] * len(looks)
        for i, maps in self.word_maps(pairs, looks):
            found = [score_links(strongest(weights, 0.0), gold[i]) for weights in maps]
            scores = [one + other for one, other in zip(scores, found, strict=True)]
        return sorted(zip(looks, scores, strict=True), key=lambda each: each[1].aer)

    def word_maps(
        self, pairs: Sequence[Pair], looks: Sequence[Look]
    ) -> Iterator[tuple[int, list[Float[Tensor, "w v"]]]]:
        """The number of each pair that has words on both sides, and what its target words give its source words.

        In an order that pads little; one map for each look.
        """
        sources = [self.side(pair.source, self.vocabularies.source) for pair in pairs]
        targets = [self.side(pair.target, self.vocabularies.target) for pair in pairs]
        full = [i for i, pair in enumerate(pairs) if pair.source.split() and pair.target.split()]
        lengths = [max(len(sources[i].ids), len(targets[i].ids)) + 1 for i in full]
        for part in order_by_length(lengths, BATCH_TOKENS):
            rows = [full[place] for place in part]
            batch = collate([sources[i].ids for i in rows], [targets[i].ids for i in rows])
            weights = cross_weights(self.model, batch.source, batch.source_mask, batch.inputs)
            for row, i in enumerate(rows):
                source, target = sources[i], targets[i]
                real = [layer[row, :, : len(target.ids) + 1, : len(source.ids)] for layer in weights]
                yield i, [word_weights(looked(real, look), target.words, source.words) for look in looks]

    def side(self, text: str, tokeniser: Tokeniser) -> Side:
        pieces = tokeniser.pieces(text)
        if len(pieces) > LONGEST:
            raise DecodingError(
                f"{text[:40]!r}…: {len(pieces)} tokens in one sentence, expected at most {LONGEST}; put each sentence "
                "on a line of its own"
            )
        return Side([piece.id for piece in pieces], belonging(words_of(pieces, text), len(word_spans(text))))

    def refuse_missing(self, look: Look) -> None:
        layers = len(self.heads)
        if look.layer is None and look.head is not None:
            raise DecodingError(f"head {look.head}: of which layer? say 1 to {layers}")
        if look.layer is not None and not 1 <= look.layer <= layers:
            raise self.missing("layer", look.layer, layers)
        heads = self.heads[look.layer - 1] if look.layer else 0
        if look.head is not None and not 1 <= look.head <= heads:
            raise self.missing("head", look.head, heads)

    def missing(self, name: str, wanted: int, most: int) -> DecodingError:
        there = described(self.heads)
        return DecodingError(f"{name} {wanted}: {self.folder.path} looks at its source with {there}; say 1 to {most}")


def load_aligner(path: str | Path) -> Aligner:
    """The aligner in a directory of a translation model; ModelFormatError where it is damaged, or has no attention."""
    return Aligner(read_model(Path(path)))
