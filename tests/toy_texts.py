"""A toy language for encoders: who eats what, and words that are animals or tools."""

import random

FOOD = {"katze": "fisch", "hund": "fleisch", "kuh": "gras", "maus": "speck"}
TOOLS = ("hammer", "zange", "feile", "bohrer")
SETTINGS = (
    "model.width=32",
    "model.heads=2",
    "model.feedforward=64",
    "model.layers=2",
    "model.dropout=0.0",
    "data.batch_tokens=512",
    "training.learning_rate=0.01",
    "training.validations=2",
    "training.optimiser=adamw",
    "training.threads=1",
    "training.saves=1",
)


def sentences(count, seed):
    """ "die katze frisst fisch": who eats says what is eaten."""
    rng = random.Random(seed)
    eaters = [rng.choice(list(FOOD)) for _ in range(count)]
    return [f"{rng.choice(['die', 'eine', 'jede'])} {eater} frisst {FOOD[eater]} ." for eater in eaters]


def records(count, seed):
    """Three words, one of them an animal or a tool: that is the label."""
    rng, found = random.Random(seed), []
    for _ in range(count):
        label = rng.choice(["tier", "werkzeug"])
        words = [rng.choice(list(FOOD) if label == "tier" else TOOLS), *rng.choices(["rot", "alt", "neu", "gut"], k=2)]
        rng.shuffle(words)
        found.append((" ".join(words), label))
    return found


def write_records(path, rows, columns=("text", "label")):
    path.write_text("".join("\t".join(row) + "\n" for row in [columns, *rows]), encoding="utf-8")
    return path
