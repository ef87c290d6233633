"""A translator on texts whose translation is known, with heads taken away: what each is worth, and which can go."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.data.pairs import Pair
from regard.decoding.batching import order_by_length
from regard.decoding.scoring import score
from regard.engine import TorchEngine, Words, open_folder
from regard.errors import DataError, DecodingError, ModelFormatError
from regard.evaluation.scores import Score, bleu
from regard.explaining.explain import row
from regard.explaining.explanation import Token
from regard.explaining.heads import Habit, Habits, Head, every_head, silenced, slopes
from regard.explaining.record import replay
from regard.explaining.sides import given, separates, special
from regard.models.interface import Memory
from regard.recipe.folder import ModelFolder
from regard.recipe.pruning import taught
from regard.tasks.translate import Batch, collate, translation_loss
from regard.text.special import BOS, EOS

BATCH_TOKENS = 2048  # of the longer side
TEXTS = 100  # pairs that habits are told from: each is replayed by itself
LONGEST = 512  # tokens of either side of these: a head has a weight for every pair of tokens
ROUNDS = 10  # of pruning: after a tenth of the heads is gone, the others are judged anew

Progress = Callable[[Sequence[Batch]], Iterable[Batch]]  # the same batches, while somebody is told how far they are


@dataclass(frozen=True)
class Losses:
    """Mean loss of a token, of the whole model and without each head."""

    whole: float
    without: dict[Head, float]


class Ablation:
    """A model with heads, and the pairs by which it is judged."""

    def __init__(self, folder: ModelFolder, pairs: Sequence[Pair]) -> None:
        if not pairs:
            raise DataError("pairs: found none; give at least one text and its translation")
        self.folder, self.pairs, self.model = folder, pairs, folder.model.eval()
        self.heads = every_head(self.model)
        if not self.heads:
            raise ModelFormatError(
                f"{folder.path}: a {folder.recipe.model.kind} model, which attends with one head or not at all, so "
                "there is none to take away; use a transformer"
            )
        sources, targets = Words(folder.vocabularies).read_pairs(pairs)
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
        self.batches = [
            collate([sources[i] for i in part], [targets[i] for i in part])
            for part in order_by_length(lengths, BATCH_TOKENS)
        ]
        self.tokens = sum(int(batch.mask.sum()) for batch in self.batches)

    # ---------------------------------------------------------------- what each is worth
    @torch.no_grad()
    def losses(self, progress: Progress = iter) -> Losses:
        """Teacher-forced and without smoothing. Only the encoder's own heads need the source to be read again."""
        whole, without = 0.0, dict.fromkeys(self.heads, 0.0)
        for batch in progress(self.batches):
            memory = self.model.encode(batch.source, batch.source_mask)
            whole += self.batch_loss(batch, memory)
            for head in self.heads:
                with silenced(self.model, [head]):
                    anew = head.kind == "encoder"
                    read = self.model.encode(batch.source, batch.source_mask) if anew else memory
                    without[head] += self.batch_loss(batch, read)
        return Losses(whole / self.tokens, {head: total / self.tokens for head, total in without.items()})

    def batch_loss(self, batch: Batch, memory: Memory) -> float:
        return -float(score(self.model.decoder, memory, batch.targets, batch.mask, bos=BOS).double().sum())

    @torch.no_grad()
    def loss(self, removed: Collection[Head] = ()) -> float:
        """Mean loss of a token without these heads."""
        with silenced(self.model, removed):
            read = ((batch, self.model.encode(batch.source, batch.source_mask)) for batch in self.batches)
            return sum(self.batch_loss(batch, memory) for batch, memory in read) / self.tokens

    def importance(self, removed: Collection[Head] = (), progress: Progress = iter) -> dict[Head, float]:
        """I_h = Σ_x |∂L(x)/∂ξ_h| / tokens, with ξ a gate on each head, at 1, and x a pair. Michel et al. 2019, eq. 2.

        For all heads from one pass. What the loss of a token would rise by, to first order, if it always rose.
        """
        total = dict.fromkeys(self.heads, 0.0)
        with silenced(self.model, removed):
            for batch in progress(self.batches):
                for head, each in self.batch_slopes(batch).items():
                    total[head] += float(each.abs().sum())
        return {head: value / self.tokens for head, value in total.items()}

    def batch_slopes(self, batch: Batch) -> dict[Head, Tensor]:
        return slopes(self.model, len(batch.source), lambda: translation_loss(self.model, batch, 0.0).total)

    def bleu(self, removed: Collection[Head] = ()) -> Score:
        """Of the translations that `regard evaluate` would score, were these heads not there."""
        with silenced(self.model, removed):
            outputs = TorchEngine(self.folder).write([pair.source for pair in self.pairs])
        return bleu(outputs, [pair.target for pair in self.pairs])

    def habits(self) -> dict[Head, Habit]:
        """Of the first texts; none where all of these are too long, or empty."""
        found, vocabularies = Habits(), self.folder.vocabularies
        for pair in self.pairs[:TEXTS]:
            source = given(vocabularies.source, pair.source, after=(EOS,)).tokens
            target = given(vocabularies.target, pair.target, after=(EOS,)).tokens
            if max(len(source), len(target)) > LONGEST:
                continue
            before = (special(BOS, 0), *target[:-1])
            played = replay(self.model, row(source), torch.ones_like(row(source), dtype=torch.bool), row(before))
            keys = {"encoder": separators(source), "decoder": separators(before), "cross": separators(source)}
            found.add([(one, keys[one.kind]) for one in played.attentions])
        return found.of_each()

    # ---------------------------------------------------------------- which can go
    @property
    def removable(self) -> int:
        """How many heads can go: each attention keeps one."""
        return len(self.heads) - len({(head.kind, head.layer) for head in self.heads})

    def least(self, count: int, progress: Progress = iter) -> list[Head]:
        """So many heads to remove, in the order in which they should go.

        Those on which the loss depends least, a tenth of all at a time; then the others are judged anew without them.
        The head that learned to align stays.
        """
        if not 1 <= count <= self.removable:
            raise DecodingError(
                f"prune {count}: of the {len(self.heads)} heads of this model {self.removable} can go, as each layer "
                f"keeps one of each kind; say 1 to {self.removable}"
                if self.removable
                else f"prune {count}: each layer of this model has one head of each kind, and keeps it; "
                "there is nothing to prune"
            )
        removed: list[Head] = []
        while len(removed) < count:
            worth = self.importance(removed, progress)
            enough = min(count, len(removed) + max(1, len(self.heads) // ROUNDS))
            for head in sorted(self.heads, key=lambda one: worth[one]):
                if len(removed) < enough and self.can_go(head, removed):
                    removed.append(head)
        return removed

    def can_go(self, head: Head, removed: Collection[Head]) -> bool:
        beside = [one for one in self.heads if (one.kind, one.layer) == (head.kind, head.layer) and one not in removed]
        return head in beside and len(beside) > 1 and head != taught(self.folder.recipe)


def separators(tokens: Sequence[Token]) -> Tensor:
    return torch.tensor([separates(token) for token in tokens], dtype=torch.bool)


def load_ablation(path: str | Path, pairs: Sequence[Pair]) -> Ablation:
    """The translator in this directory, before these pairs; ModelFormatError where it is damaged, or has no heads."""
    return Ablation(open_folder(Path(path)), pairs)
