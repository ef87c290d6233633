"""Constituency parsing: a Transformer and an attention RNN, from the same trees, in the same time, by one search."""

import json
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.family.bench import RECIPES, Bench, Found, Model, Word, checksum, recipe_of
from regard.data.readers import read_lines
from regard.files import write_atomically
from regard.recipe.recipe import read_tree

RECIPE = RECIPES / "treebank-parse.yaml"
RNN = "bidirectional-gru"
COLUMNS = ("precision", "recall", "complete_match", "f1_up_to_40_words")
# Collins's parameters for EVALB; no number of bad sentences ends it.
COLLINS = """DEBUG 0
MAX_ERROR 100000
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL ADVP PRT
"""


def parse(bench: Bench) -> Found:
    trees = recipe_of(RECIPE).data.trees
    assert trees is not None
    length = str(read_tree(RECIPE)["training"]["budget"])
    models = {
        "transformer": bench.train("parse-transformer", [RECIPE]),
        "rnn": bench.train("parse-rnn", rnn_words(), length),
    }
    gold = bench.data / trees.valid[0]
    figures: dict[str, float] = {}
    for name, model in models.items():
        figures |= judged(bench, name, model, gold)
    figures["parse_well_formed"] = min(figures.pop(f"parse_well_formed_{name}") for name in models)
    notes = (
        f"recipes/{RECIPE.name}, and --preset {RNN} from the same trees with the same symbols, loss and search, "
        f"{bench.budget or length} each; F1 in per cent on the {figures.pop('sentences'):,.0f} trees of {gold.name}, "
        "which the recipe validates with; no weights are chosen by them. Well-formed: per cent of the trees, of the "
        "model that has fewer."
    )
    if bench.evalb is not None:
        notes += (
            f" Independent: the counts of the C program EVALB, which says no version (sha256 "
            f"{checksum(bench.evalb)[:12]}), with Collins's parameters, on the same files."
        )
    return Found(figures, sum(model.minutes for model in models.values()), notes)


SAME = ("task", "text", "loss", "decoding")  # sections of the recipe that are not about its model


def rnn_words() -> list[Word]:
    """The attention RNN of the line-up, sized for the trees, with the recipe's symbols, words, loss and search."""
    trees = recipe_of(RECIPE).data.trees
    assert trees is not None
    files = [("--trees", path) for path in trees.files] + [("--valid-trees", path) for path in trees.valid]
    words: list[Word] = [word for option, path in files for word in (option, str(path))]
    tree = read_tree(RECIPE)
    same = [(section, key, value) for section in SAME for key, value in tree.get(section, {}).items() if key != "kind"]
    settings = [word for section, key, value in same for word in ("--set", f"{section}.{key}={value}")]
    return [*words, "--preset", RNN, *settings]


def judged(bench: Bench, name: str, model: Model, gold: Path) -> dict[str, float]:
    """F1 by our rules and, where there is the program, by EVALB on the trees that we wrote."""
    parsed = bench.work / "trees" / f"{model.folder.name}.trees"
    found: dict[str, Any] = json.loads(
        bench.regard("parse", model.folder, "--gold", gold, "--json", "--output", parsed)
    )
    figures = {f"parse_f1_{name}": found["f1"], f"parse_well_formed_{name}": found["well_formed"]}
    if bench.evalb is not None:
        figures[f"parse_f1_independent_{name}"] = evalb(bench.evalb, gold, parsed)
    figures |= {f"parsing, {name}: {column.replace('_', ' ')}": found[column] for column in COLUMNS}
    return figures | {f"parsing, {name}: minutes": model.minutes, "sentences": found["sentences"]}


def evalb(program: Path, gold: Path, parsed: Path) -> float:
    """F1 of EVALB with Collins's parameters; what it reads stays beside the parses."""
    parameters, plain = parsed.with_name("COLLINS.prm"), parsed.with_name("gold.trees")
    write_atomically(parameters, COLLINS)
    write_atomically(plain, "".join(f"{line}\n" for line in read_lines(gold)))
    command = [str(program), "-p", str(parameters), str(plain), str(parsed)]
    return evalb_f1(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def evalb_f1(said: str) -> float:
    """100 · 2 · matched / (gold + parsed) of the line of totals, which has more digits than the summary below it."""
    totals = said.partition("=== Summary ===")[0].strip().rpartition("\n")[2].split()
    matched, gold, parsed = map(int, totals[2:5])  # after recall and precision
    return 200 * matched / (gold + parsed)
