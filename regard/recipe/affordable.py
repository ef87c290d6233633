"""What a budget can pay: of sizes that would fit a text, the largest that comes to learn enough in that time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from regard.data.pairs import Pair
from regard.recipe.lineup import Size
from regard.recipe.recipe import Recipe
from regard.text.characters import count_characters
from regard.text.learn import TRANSLATED, merges
from regard.text.options import LETTERS, TextOptions

FLOPS = 1e11  # a second, of an ordinary machine of two cores at training; results/bench.md has twice that of a good one
CHARACTERS = 4  # of a subword
ENOUGH = 4.0  # tokens, of both sides, that a size must see for each of its weights to be worth its time
BY_HEART = 10.0  # times through a text from which on a model has to be kept from learning it by heart
LIGHT = 0.1  # dropout until then; afterwards that of the size that would fit the text


def affordable(sizes: Sequence[Size], pairs: Sequence[Pair], asked: Recipe) -> Size:
    """Of `sizes`, smallest first, the one for this text and a run of this length, kept from learning by heart.

    A model of w weights that computes C FLOPs sees C / 3w tokens, half of them targets at 6w each. On Multi30k and on
    Tatoeba the same six or seven minutes of two cores gave width 192 far more than width 256, which saw 0.15 tokens for
    each weight in them (docs/quality.md); where larger ones begin to pay is a guess. Without a budget the largest.
    """
    counts = count_characters(text for pair in pairs for text in (pair.source, pair.target))
    letters = 1 if asked.text.kind in LETTERS else CHARACTERS
    tokens = counts.total() / 2 / letters + len(pairs)  # each target has an end, too

    def weigh(size: Size) -> float:
        return weights(size, counts, asked.text)

    size = next((size for size in reversed(sizes) if worthwhile(weigh(size), asked.training.budget)), sizes[0])
    often = passes(size, weigh(size), tokens, asked) >= BY_HEART
    dropout = sizes[-1].dropout if often else min(sizes[-1].dropout, LIGHT)
    return replace(size, dropout=dropout, weight_decay=sizes[-1].weight_decay)


def worthwhile(weights: float, budget: float | None) -> bool:
    return budget is None or budget * FLOPS / (3 * weights**2) >= ENOUGH


def passes(size: Size, weights: float, tokens: float, asked: Recipe) -> float:
    """How often such a run goes through a text of so many target tokens: exact for epochs, else an estimate."""
    training, data = asked.training, asked.data
    if training.budget is not None:
        return training.budget * FLOPS / (6 * weights * tokens)
    if training.steps is not None:
        batch = data.batch_tokens if "batch_tokens" in data.model_fields_set else size.batch_tokens
        return training.steps * training.accumulate * batch / tokens
    return training.epochs or size.epochs


def weights(size: Size, counts: Counter[str], text: TextOptions) -> float:
    """4d² for attention, 2df for the network of a layer, 4d² more where the decoder looks at the encoder; one table."""
    layer = 12 * size.width**2 + 4 * size.width * size.feedforward
    words = 0 if text.kind in LETTERS else text.size or merges(counts, TRANSLATED)
    return float(size.layers * layer + words * size.width)
