"""Several tasks in one model: each is asked by its words, and scored by itself."""

import json
import random
from pathlib import Path

import pytest
import torch
import yaml
from click.testing import CliRunner

from regard.cli.main import regard
from regard.engine import load
from regard.errors import RecipeError
from regard.recipe.folder import WEIGHTS
from regard.run import Request, foreseen, run
from regard.training.tensors import read_tensors

SMALL = {"kind": "transformer", "width": 24, "heads": 2, "feedforward": 32, "encoder_layers": 1, "decoder_layers": 1}
LETTERS = "abcdefgh"


def words(count, seed):
    draw = random.Random(seed)
    return ["".join(draw.choice(LETTERS) for _ in range(draw.randint(2, 5))) for _ in range(count)]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("mixture")


@pytest.fixture(scope="module")
def model(place):
    """Knows two tasks: to spell a word backwards, and to say with which letter it begins."""
    parts = {}
    for name, count in (("train", 300), ("valid", 12)):
        texts = words(count, len(name))
        backwards = write(place / f"{name}.tsv", [f"{text}\t{text[::-1]}" for text in texts])
        first = write(place / f"{name}-first.tsv", ["text\tlabel", *(f"{text}\t{text[0]}" for text in texts)])
        parts[name] = [{"tsv": backwards, "prefix": "turn: "}, {"labelled": {"file": first}, "prefix": "first: "}]
    tree = {
        "data": {"corpora": parts["train"], "valid": parts["valid"], "batch_tokens": 800},
        "text": {"kind": "characters"},
        "model": SMALL,
        "training": {"steps": 200, "learning_rate": 0.01, "optimiser": "muon", "validations": 1, "schedule": "linear"},
    }
    (place / "mixture.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    run(Request(recipe=place / "mixture.yaml", out=place / "model", quiet=True))
    return place / "model"


def test_every_task_has_scores_of_its_own(model):
    facts = json.loads((model / "manifest.json").read_bytes())
    assert list(facts["parts"]) == ["turn", "first"]
    assert [part["sentences"] for part in facts["parts"].values()] == [12, 12]
    assert facts["validation"]["sentences"] == 24
    card = (model / "README.md").read_text(encoding="utf-8")
    for name in ("turn", "first"):
        assert f"- {name}: BLEU" in card
        assert f"regard translate model --ask '{name}: ' < in.txt > out.txt" in card


def test_the_words_before_a_text_decide_what_is_done_with_it(model):
    engine = load(model)
    texts = words(30, 99)
    firsts = [found.text for found in engine.translate([f"first: {text}" for text in texts])]
    assert sum(map(len, firsts)) <= 1.5 * len(texts)  # one letter, where the other task writes whole words
    assert sum(found == text[0] for found, text in zip(firsts, texts, strict=True)) >= 20
    turned = [found.text for found in engine.translate([f"turn: {text}" for text in texts])]
    assert sum(map(len, turned)) > 2 * len(texts)


def test_asking_puts_the_words_before_every_line_that_is_not_blank(model, place):
    typed, asked = (
        CliRunner().invoke(regard, ["translate", str(model), *options], input=lines)
        for options, lines in (([], "turn: abc\n\nturn: ha\n"), (["--ask", "turn: "], "abc\n\nha\n"))
    )
    assert typed.exit_code == asked.exit_code == 0
    assert typed.output == asked.output
    assert asked.output.splitlines()[1] == ""


def test_a_test_set_can_be_asked_too(model, place):
    source = write(place / "s", ["abc", "gh"])
    whole = write(place / "w", ["first: abc", "first: gh"])
    target = write(place / "t", ["a", "g"])
    typed, asked = (
        CliRunner().invoke(regard, ["evaluate", str(model), "--source", text, "--target", target, "--json", *options])
        for text, options in ((whole, []), (source, ["--ask", "first: "]))
    )
    found, expected = json.loads(asked.output), json.loads(typed.output)
    assert {key: found[key] for key in found if key != "seconds"} == {
        key: expected[key] for key in expected if key != "seconds"
    }


# ---------------------------------------------------------------- what T5 begins with
@pytest.fixture(scope="module")
def denoiser(place):
    draw = random.Random(5)
    lines = [f"the {draw.choice(['red', 'green'])} {draw.choice(['dog', 'cat'])} runs home" for _ in range(120)]
    text = place / "plain.txt"
    write(text, lines)
    settings = [f"model.{key}={value}" for key, value in SMALL.items() if key != "kind"]
    settings += ["task.context=12", "text.sentinels=8", "data.batch_tokens=200", "training.learning_rate=0.01"]
    run(Request(text=(text,), denoise=True, out=place / "denoiser", steps=8, settings=settings, quiet=True))
    return place / "denoiser"


def test_a_model_that_learned_to_write_what_was_left_out_can_be_asked_for_it(denoiser):
    facts = json.loads((denoiser / "manifest.json").read_bytes())
    assert facts["validation"]["loss"] > 0
    card = (denoiser / "README.md").read_text(encoding="utf-8")
    assert "8 of them sentinels" in card
    assert "regard train tasks.yaml --start denoiser" in card
    found = CliRunner().invoke(regard, ["translate", str(denoiser)], input="the <extra_id_0> dog\n")
    assert found.exit_code == 0
    assert len(found.output.splitlines()) == 1


def test_a_translator_begins_with_all_that_it_learned(denoiser, place):
    write(place / "pairs.tsv", [f"the dog {i}\trun home {i}" for i in range(40)])
    still = ["training.learning_rate=1e-12", "training.optimiser=adamw", "data.batch_tokens=400"]
    run(Request(tsv=place / "pairs.tsv", start=denoiser, out=place / "begun", steps=1, settings=still, quiet=True))
    before, after = (read_tensors(folder / WEIGHTS) for folder in (denoiser, place / "begun"))
    assert before.keys() == after.keys()
    for name in before:
        torch.testing.assert_close(after[name], before[name], rtol=0, atol=1e-6)
    assert (place / "begun" / "shared.model").read_bytes() == (denoiser / "shared.model").read_bytes()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"denoise": True}, "--denoise: hides tokens of plain text; give some with --text"),
        (
            {"denoise": True, "masked": True, "text": (Path("a"),)},
            "--denoise: the other way to hide tokens is --masked",
        ),
    ],
)
def test_what_cannot_be_hidden_is_refused(request_, message):
    with pytest.raises(RecipeError, match=message):
        foreseen(Request(out=Path("x"), **request_))
