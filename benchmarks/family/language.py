"""Character language models of Shakespeare: nanoGPT's setting for a CPU, and the best of fifteen minutes."""

from benchmarks.family.bench import RECIPES, Bench, Found

HOW = (
    "nats a character over the whole last tenth of the text, which training never sees: rows follow one another, and "
    "every character is predicted once, from at most as many before it as the context has"
)


def gpt(bench: Bench) -> Found:
    """nanoGPT's CPU setting: the same sizes, rows and number of steps."""
    model = bench.train("gpt", [RECIPES / "tinyshakespeare-nanogpt.yaml"])
    figures = {"gpt_val_loss": model.facts["validation"]["loss"], "gpt_minutes": model.minutes}
    notes = (
        f"recipes/tinyshakespeare-nanogpt.yaml, {model.facts['steps']:,} steps. Loss: {HOW}. nanoGPT estimates its own "
        "from random batches of the same tenth."
    )
    return Found(figures, model.minutes, notes)


def gpt_15m(bench: Bench) -> Found:
    model = bench.train("gpt-15m", [RECIPES / "tinyshakespeare.yaml"])
    figures = {"gpt_15m_val_loss": model.facts["validation"]["loss"], "gpt_15m_minutes": model.minutes}
    notes = f"recipes/tinyshakespeare.yaml, {model.facts['steps']:,} steps. Loss: {HOW}."
    return Found(figures, model.minutes, notes)
