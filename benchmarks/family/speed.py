"""Tokens per second of `regard train` and of plain torch loops with the same model, in turns."""

import json
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from benchmarks.family.bench import RECIPES, Bench, Found, recipe_of
from benchmarks.stage import Peer, in_turns, players, say
from regard.data.readers import opened
from regard.files import write_atomically
from regard.recipe.models import GptOptions
from regard.recipe.recipe import Recipe, Tree, overlay, read_tree
from regard.tasks.options import LanguageModelOptions

RECIPE = RECIPES / "tinyshakespeare-nanogpt.yaml"
OURS, PLAIN, FUSED = "Regard", "plain loop", "plain loop, fused AdamW"
MODULES = {OURS: "regard_training", PLAIN: "plain_gpt", FUSED: "plain_gpt"}
STEPS, REPEATS, WARMUP = 30, 9, 2  # steps of a turn; rounds that count; rounds that do not
LEARNING = {"learning_rate": 1e-3, "betas": [0.9, 0.99], "weight_decay": 0.1, "clip": 1.0}  # nanoGPT's


def gpt_speed(bench: Bench) -> Found:
    began = time.perf_counter()
    folder = bench.work / "gpt-speed"
    shutil.rmtree(folder, ignore_errors=True)
    plans = {name: written_plan(bench.data, folder, fused=name == FUSED) for name in MODULES}
    peers = [Peer(name, Path(sys.executable), module, str(plans[name])) for name, module in MODULES.items()]
    speeds = take_turns(peers, folder / "logs")
    notes = (
        f"the model and the rows of recipes/{RECIPE.name} with learned positions and AdamW: `regard train` against a "
        f"plain torch loop (torch's AdamW as it is without being asked, which on a CPU nanoGPT has too; torch's own "
        f"attention), and against the same loop with fused=True. Each is a process with all cores; they take turns of "
        f"{STEPS} steps. Medians of {REPEATS} rounds after {WARMUP} that warm up; tokens are characters to predict."
    )
    return Found(figures(speeds), (time.perf_counter() - began) / 60, notes)


def take_turns(peers: Sequence[Peer], logs: Path) -> dict[str, list[float]]:
    """Tokens per second of each peer in every round that counts."""
    speeds: dict[str, list[float]] = {peer.name: [] for peer in peers}
    with players(peers, logs) as started:
        for index in range(-WARMUP, REPEATS):
            for player in in_turns(started, index):
                answer = player.turn()
                speed = answer["tokens"] / answer["seconds"]
                say(f"  round {index + 1}: {player.name} {speed:,.0f} tokens/s")
                if index >= 0:
                    speeds[player.name].append(speed)
    return speeds


def figures(speeds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    ours, plain, fused = (statistics.median(speeds[name]) for name in (OURS, PLAIN, FUSED))
    return {
        "gpt_tokens_vs_reference": ours / plain,
        "gpt_tokens_vs_fused_reference": ours / fused,
        "gpt_tokens_per_second": ours,
        "gpt_tokens_per_second_reference": plain,
        "gpt_tokens_per_second_fused_reference": fused,
    }


# ---------------------------------------------------------------- what the two are told
def written_plan(data: Path, folder: Path, *, fused: bool) -> Path:
    """The file that all read: our recipe, and the same text and sizes for the plain loops."""
    recipe, text, plan = folder / "recipe.yaml", folder / "text.txt", folder / f"plan{'-fused' * fused}.json"
    write_atomically(recipe, yaml.safe_dump(tree_like_plain(), sort_keys=False))
    asked = recipe_of(recipe)
    with opened(data / asked.data.texts[0].files[0]) as file:
        write_atomically(text, file.read())
    places = {"recipe": str(recipe), "work": str(folder / "model"), "text": str(text)}
    turns = {"steps": STEPS, "threads": torch.get_num_threads(), "fused": fused}
    write_atomically(plan, json.dumps({**places, **turns, **sizes(asked)}, indent=1) + "\n")
    return plan


def tree_like_plain() -> Tree:
    """The recipe with the positions and the optimiser of the plain loop: AdamW steps, and nothing between them."""
    tree = read_tree(RECIPE)
    training = {**LEARNING, "steps": 1_000_000, "optimiser": "adamw", "validations": 0, "saves": 1}
    model = {"positions": "learned", "max_length": tree["task"]["context"]}
    return overlay(tree, {"model": model, "training": training})


def sizes(recipe: Recipe) -> dict[str, Any]:
    model, task, training = recipe.model, recipe.task, recipe.training
    assert isinstance(model, GptOptions)
    assert isinstance(task, LanguageModelOptions)
    return {
        **{name: getattr(model, name) for name in ("width", "heads", "feedforward", "layers")},
        "context": task.context,
        "rows": recipe.data.batch_tokens // task.context,
        **{name: getattr(training, name) for name in LEARNING},
    }
