"""The parts that compare: texts from two starts, trees by two models and two scorers, speed beside a plain loop."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typed_commands import Typed

from benchmarks.family import speed, texts, trees
from benchmarks.family.bench import RECIPES, Bench, recipe_of
from benchmarks.peers import plain_gpt
from benchmarks.peers.plain_gpt import Block, PlainGpt
from regard.data.packing import cropped_epoch
from regard.recipe.build import build
from regard.recipe.models import GptOptions
from regard.recipe.reading_presets import choose_masked
from regard.recipe.recipe import overlay, parse
from regard.recipe.starting import FREE
from regard.request import Request
from regard.tasks.language_model import Batch, HeldOut, LanguageModelling, Rows

# ---------------------------------------------------------------- texts
TEXTS = {
    "train": ["a fine film", "a dull film", "so fine"],
    "dev": ["held out"],
    "test": ["never seen", "so fine"],
}


@pytest.fixture
def reviews(tmp_path, monkeypatch):
    """Tiny files where the recipe expects sentence-polarity; one test text is in the training file as well."""
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    (tmp_path / "sentence-polarity").mkdir()
    for name, lines in TEXTS.items():
        content = "sentence\tlabel\n" + "".join(f"{line}\t1\n" for line in lines)
        (tmp_path / "sentence-polarity" / f"{name}.tsv.gz").write_bytes(gzip.compress(content.encode()))
    return Bench(tmp_path, tmp_path / "work", regard=Typed([{"accuracy": 70.0}, {"accuracy": 75.0}]))


def test_both_classifiers_are_the_recipe_and_one_begins_with_the_masked_model(reviews):
    found = texts.polarity(reviews)
    assert found.figures == {
        "polarity_accuracy": 70.0,
        "polarity_accuracy_pretrained": 75.0,
        "polarity_minutes": 1.0,
        "polarity_minutes_pretrained": 2.0,
    }
    assert found.minutes == 3.0
    assert "per cent of the 2 texts of test.tsv.gz" in found.notes
    assert "1 of the test texts stands in the training file as well" in found.notes
    scratch, masked, begun, *tests = reviews.regard.commands
    recipe = str(RECIPES / "sentence-polarity.yaml")
    assert scratch[1:3] == [recipe, "--out"]
    assert begun[1:4] == [recipe, "--start", masked[-1]]
    assert masked[masked.index("--budget") + 1] == texts.PRETRAINING
    assert [test[1] for test in tests] == [scratch[-1], begun[-1]]
    assert all(test[2:] == ["--labelled", "sentence-polarity/test.tsv.gz", "--json"] for test in tests)


def test_the_masked_model_reads_the_training_texts_and_validates_with_the_others_but_never_reads_a_test(reviews):
    recipe = recipe_of(RECIPES / "sentence-polarity.yaml")
    words = texts.masked_words(reviews, "polarity", recipe)
    read = {option: words[words.index(option) + 1].read_text().splitlines() for option in ("--text", "--valid-text")}
    assert read == {"--text": TEXTS["train"], "--valid-text": TEXTS["dev"]}


@pytest.mark.parametrize("name", ["sentence-polarity", "trec-qc"])
def test_the_masked_model_has_the_encoder_of_the_recipe(name, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "read_texts", lambda *_: ["a text"])
    recipe = recipe_of(RECIPES / f"{name}.yaml")
    words = texts.masked_words(Bench(tmp_path, tmp_path), name, recipe)
    settings = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    asked = Request(text=[words[words.index("--text") + 1]], masked=True, settings=settings).tree()
    masked = parse(overlay(choose_masked(100_000), asked), "masked")
    ours, theirs = (one.model.model_dump(exclude=set(FREE)) for one in (masked, recipe))
    assert ours == theirs
    assert masked.training.patience == masked.training.validations


# ---------------------------------------------------------------- trees
def scores(f1, well_formed):
    return {"f1": f1, "well_formed": well_formed, "sentences": 2, **dict.fromkeys(trees.COLUMNS, 50.0)}


def test_both_parsers_have_the_same_trees_time_and_search(tmp_path):
    typed = Typed([scores(80.0, 100.0), scores(75.0, 99.0)])
    found = trees.parse(Bench(tmp_path, tmp_path, regard=typed))
    assert (found.figures["parse_f1_transformer"], found.figures["parse_f1_rnn"]) == (80.0, 75.0)
    assert found.figures["parse_well_formed"] == 99.0
    assert found.figures["parsing, rnn: recall"] == 50.0
    assert not [name for name in found.figures if "independent" in name]
    assert found.minutes == 2.0
    recipe = recipe_of(trees.RECIPE)
    options = dict(zip(typed.commands[1][1:-1:2], typed.commands[1][2::2], strict=False))
    assert (options["--trees"], options["--valid-trees"]) == tuple(
        str(files[0]) for files in (recipe.data.trees.files, recipe.data.trees.valid)
    )
    settings = [word for word in typed.commands[1] if word.startswith(("decoding.", "task.", "text.", "loss."))]
    files = tuple(map(Path, (options["--trees"],)))
    rnn = parse(Request(trees=files, budget=options["--budget"], settings=settings).tree(), "rnn")
    assert (rnn.training.budget, rnn.decoding) == (recipe.training.budget, recipe.decoding)
    assert (rnn.task, rnn.text, rnn.loss) == (recipe.task, recipe.text, recipe.loss)


def test_a_quick_look_gives_both_parsers_the_same_time(tmp_path):
    typed = Typed([scores(1.0, 100.0), scores(1.0, 100.0)])
    trees.parse(Bench(tmp_path, tmp_path, "1m", regard=typed))
    assert all(words[words.index("--budget") + 1] == "1m" for words in typed.commands[:2])


SAID = """  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================
   1    3    0  100.00 100.00     3      3    3      0      3     3   100.00
   2    4    0   66.67  50.00     2      3    4      0      4     4   100.00
============================================================================
                 83.33  71.43      5      6    7      0      7     7   100.00
=== Summary ===

-- All --
Bracketing FMeasure       =  76.92
"""


def test_the_f1_of_evalb_is_worked_out_from_its_totals():
    assert trees.evalb_f1(SAID) == pytest.approx(100 * 2 * 5 / (6 + 7))


def test_evalb_gets_the_parameters_the_trees_of_the_treebank_and_ours(tmp_path):
    gold, parsed, program = tmp_path / "dev.trees.gz", tmp_path / "kept" / "ours.trees", tmp_path / "evalb"
    gold.write_bytes(gzip.compress(b"(TOP (S (NN a)))\n"))
    parsed.parent.mkdir()
    parsed.write_text("(TOP (NP (NN a)))\n")
    totals = "echo; echo '50.00 50.00 1 2 2 0 1 1 100.00'; echo '=== Summary ==='"
    program.write_text(f'#!/bin/sh\ncat "$2" "$3" "$4" > {tmp_path}/seen\n{totals}\n')
    program.chmod(0o755)
    assert trees.evalb(program, gold, parsed) == 50.0
    assert (tmp_path / "seen").read_text() == trees.COLLINS + "(TOP (S (NN a)))\n(TOP (NP (NN a)))\n"


# ---------------------------------------------------------------- speed
def test_the_ratio_of_speeds_is_that_of_their_medians():
    speeds = {speed.OURS: [30.0, 10.0, 20.0], speed.PLAIN: [8.0, 9.0, 1.0], speed.FUSED: [10.0, 9.0, 16.0]}
    found = speed.figures(speeds)
    assert found["gpt_tokens_vs_reference"] == 20.0 / 8.0
    assert found["gpt_tokens_vs_fused_reference"] == 20.0 / 10.0
    assert (found["gpt_tokens_per_second"], found["gpt_tokens_per_second_reference"]) == (20.0, 8.0)


def test_both_loops_are_told_the_same_sizes(tmp_path):
    (tmp_path / "tinyshakespeare").mkdir()
    (tmp_path / "tinyshakespeare" / "input.txt.gz").write_bytes(gzip.compress(b"to be\nor not\n"))
    plan, other = (
        json.loads(speed.written_plan(tmp_path, tmp_path / "work", fused=fused).read_text()) for fused in (False, True)
    )
    assert {name for name in plan if plan[name] != other[name]} == {"fused"}
    assert (tmp_path / "work" / "text.txt").read_bytes() == b"to be\nor not\n"
    recipe = recipe_of(tmp_path / "work" / "recipe.yaml")
    assert (plan["layers"], plan["heads"], plan["width"], plan["context"], plan["rows"]) == (4, 4, 128, 64, 12)
    assert (recipe.model.layers, recipe.model.heads, recipe.model.width, recipe.model.feedforward) == (4, 4, 128, 512)
    assert plan["feedforward"] == 512
    assert (recipe.model.positions, recipe.model.max_length, recipe.model.dropout) == ("learned", 64, 0.0)
    assert (recipe.training.optimiser, list(recipe.training.betas)) == ("adamw", plan["betas"])
    assert len(cropped_epoch(10_000, recipe.task.context, plan["rows"], 1, 0)[0]) == plan["rows"]


def test_rows_of_the_plain_loop_begin_anywhere_and_predict_what_follows():
    text = torch.arange(9)
    torch.manual_seed(1)
    inputs, targets = plain_gpt.draw(text, 200, 4)
    torch.testing.assert_close(targets, inputs + 1)
    assert set(inputs[:, 0].tolist()) == set(range(5))
    assert plain_gpt.characters("cab a").tolist() == [3, 1, 2, 0, 1]


def test_the_plain_model_is_ours():
    """The same weights give the same loss and the same gradient."""
    vocabulary, context, width, heads, inner = 11, 7, 12, 3, 20
    options = GptOptions(width=width, heads=heads, feedforward=inner, layers=2, dropout=0.0, max_length=context)
    ours = build(options, vocabulary, vocabulary, shared=True, seed=1).double()
    plain = PlainGpt(vocabulary, context, [Block(width, heads, inner) for _ in range(2)]).double()
    carry_over(ours.decoder, plain)
    rows = torch.randint(vocabulary, (3, context + 1), generator=torch.Generator().manual_seed(1))
    inputs, targets = rows[:, :-1], rows[:, 1:]
    stream = np.zeros(9, dtype=np.int32)
    task = LanguageModelling(stream, Rows(context, 3, 1, cropped_epoch, 2), HeldOut(stream, 9), smoothing=0.0)
    loss = task.loss(ours, Batch(inputs, targets))
    mean = plain(inputs, targets)
    torch.testing.assert_close(loss.total / loss.units, mean)
    loss.total.backward()
    mean.backward()
    ours_table, plain_table = ours.decoder.entrance.embedding.table.weight.grad, plain.tokens.weight.grad
    torch.testing.assert_close(ours_table / loss.units, plain_table)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in plain.parameters())


def carry_over(gpt, plain):
    pairs = [
        (gpt.entrance.embedding.table, plain.tokens),
        (gpt.entrance.positions.table.table, plain.places),
        (gpt.norm, plain.norm),
    ]
    for layer, block in zip(gpt.layers, plain.blocks, strict=True):
        pairs += [
            (layer.around_attention.norm, block.first),
            (layer.attention.packed, block.packed),
            (layer.attention.output, block.output),
            (layer.around_feedforward.norm, block.second),
            (layer.feedforward.inner, block.network[0]),
            (layer.feedforward.outer, block.network[2]),
        ]
    with torch.no_grad():
        for ours, theirs in pairs:
            for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
                mine += 0.1 * torch.rand_like(mine)  # gains and biases begin as ones and zeros
                other.copy_(mine)
