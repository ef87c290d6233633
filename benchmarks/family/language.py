"""Character language models of Shakespeare: nanoGPT's setting for a CPU, and the best of fifteen minutes."""

import yaml

from benchmarks.family.bench import RECIPES, Bench, Found
from benchmarks.family.speed import tree_like_plain
from regard.files import write_atomically
from regard.recipe.recipe import Tree

HOW = (
    "nats a character over the whole last tenth of the text, which training never sees: rows follow one another, and "
    "every character is predicted once, from at most as many before it as the context has"
)


def gpt(bench: Bench) -> Found:
    """nanoGPT's CPU setting: the same sizes, rows and number of steps."""
    model = bench.train("gpt", [RECIPES / "tinyshakespeare-nanogpt.yaml"])
    path = bench.work / "recipes" / "gpt-timed.yaml"
    write_atomically(path, yaml.safe_dump(as_timed(model.facts["steps"]), sort_keys=False))
    timed = bench.train("gpt-timed", [path])
    figures = {"gpt_val_loss": model.facts["validation"]["loss"], "gpt_minutes": model.minutes}
    figures |= {"gpt_val_loss_as_timed": timed.facts["validation"]["loss"], "gpt_minutes_as_timed": timed.minutes}
    notes = (
        f"recipes/tinyshakespeare-nanogpt.yaml, {model.facts['steps']:,} steps. Loss: {HOW}. nanoGPT estimates its own "
        "from random batches of the same tenth. As timed: with the positions and the optimiser that gpt-speed has, "
        "for as many steps."
    )
    return Found(figures, model.minutes + timed.minutes, notes)


def as_timed(steps: int) -> Tree:
    """What gpt-speed times, for so many steps, validated as the recipe is."""
    tree = tree_like_plain()
    training = {key: value for key, value in tree["training"].items() if key not in ("validations", "saves")}
    return {**tree, "training": {**training, "steps": steps}}


def gpt_15m(bench: Bench) -> Found:
    model = bench.train("gpt-15m", [RECIPES / "tinyshakespeare.yaml"])
    figures = {"gpt_15m_val_loss": model.facts["validation"]["loss"], "gpt_15m_minutes": model.minutes}
    notes = f"recipes/tinyshakespeare.yaml, {model.facts['steps']:,} steps. Loss: {HOW}."
    return Found(figures, model.minutes, notes)
