"""`regard score`: log p of given pairs, or of a text."""

import sys
from pathlib import Path

from regard.commands.streams import to_json
from regard.data.plain import LIMIT, split_documents
from regard.data.readers import read_lines, read_parallel
from regard.engine import load
from regard.generator import load_generator


def score_files(model: Path, source: Path, target: Path, *, as_json: bool) -> None:
    """log p(target | source) of every pair, one a line."""
    pairs = list(read_parallel(source, target))
    for score in load(model).score(pairs):
        if as_json:
            line = {"log_probability": score.log_probability, "tokens": score.tokens, "perplexity": score.perplexity}
            sys.stdout.write(to_json(line) + "\n")
        else:
            sys.stdout.write(f"{score.log_probability:.6f}\n")


def score_text(model: Path, path: Path, *, as_json: bool) -> None:
    """How well a language model predicts the text of a file, which is one document to it."""
    found = load_generator(model).score("".join(split_documents(read_lines(path, limit=LIMIT), "file")))
    loss = -found.log_probability / found.tokens
    if as_json:
        figures = {"perplexity": found.perplexity, "bits_per_character": found.bits_per_character, "loss": loss}
        counts = {"log_probability": found.log_probability, "tokens": found.tokens, "characters": found.characters}
        sys.stdout.write(to_json({**figures, **counts}) + "\n")
        return
    sys.stdout.write(
        f"perplexity {found.perplexity:.3f}, loss {loss:.4f} nats a token ({found.tokens:,} tokens)\n"
        f"{found.bits_per_character:.4f} bits per character ({found.characters:,} characters)\n"
    )
