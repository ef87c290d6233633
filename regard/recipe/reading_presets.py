"""The recipe for someone who gave none and has an encoder learn: sized for the text, or for the number of examples."""

from regard.recipe.lineup import Size, Tree

TEXT_SIZES = {  # by the number of characters that stays below
    3_000_000: Size(width=192, heads=6, feedforward=768, layers=4, dropout=0.1, batch_tokens=4096, learning_rate=0.003),
    100_000_000: Size(
        width=384, heads=6, feedforward=1536, layers=6, dropout=0.1, batch_tokens=8192, learning_rate=0.002
    ),
}
LARGE_TEXT = Size(width=512, heads=8, feedforward=2048, layers=8, dropout=0.1, batch_tokens=8192, learning_rate=0.001)

LABELLED_SIZES = {  # by the number of texts that stays below
    20_000: Size(width=128, heads=4, feedforward=256, layers=2, dropout=0.3, batch_tokens=1000, learning_rate=0.001),
    200_000: Size(width=192, heads=6, feedforward=768, layers=4, dropout=0.2, batch_tokens=2000, learning_rate=0.001),
}
LARGE_LABELLED = Size(
    width=384, heads=6, feedforward=1536, layers=6, dropout=0.1, batch_tokens=4096, learning_rate=0.001
)


def choose_masked(characters: int) -> Tree:
    """A recipe tree (without its files) for a masked language model of this much text, on a CPU."""
    size = next((size for limit, size in TEXT_SIZES.items() if characters < limit), LARGE_TEXT)
    return {
        "data": {"batch_tokens": size.batch_tokens},
        "model": model(size),
        "loss": {"smoothing": 0.0},
        "training": {"learning_rate": size.learning_rate, "schedule": "linear", "optimiser": "muon"},
    }


def choose_classifier(texts: int) -> Tree:
    """A recipe tree (without its files) for a classifier that learns from this many texts, on a CPU.

    A few thousand texts are soon known by heart: a small model, much dropout, words hidden from it, and the weights
    that validated best.
    """
    size = next((size for limit, size in LABELLED_SIZES.items() if texts < limit), LARGE_LABELLED)
    return {
        "data": {"batch_tokens": size.batch_tokens},
        "model": model(size),
        "loss": {"source_word_dropout": 0.1},
        "training": {
            "learning_rate": size.learning_rate,
            "schedule": "linear",
            "ema": 0.99,
            "validations": 15,
            "patience": 15,
            "stop_on": "accuracy",
        },
    }


def model(size: Size) -> Tree:
    return {
        "kind": "bert",
        "width": size.width,
        "heads": size.heads,
        "feedforward": size.feedforward,
        "layers": size.layers,
        "dropout": size.dropout,
        "positions": "rotary",
    }
