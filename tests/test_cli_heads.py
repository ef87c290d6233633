"""`regard heads`: a table, a map and JSON of what each head is worth, and a smaller model that every command takes."""

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from tiny_runs import TINY, write_pairs

from regard.ablation import Ablation, load_ablation
from regard.commands.heads import wanted
from regard.commands.progress import timed
from regard.data.readers import read_parallel
from regard.engine import load
from regard.errors import DecodingError, RecipeError
from regard.explaining.heads import Head, silenced
from regard.run import Request, run

KINDS = ("encoder", "decoder", "cross")


@pytest.fixture(scope="module")
def files(corpus):
    return ("--source", corpus / "test.source", "--reference", corpus / "test.target")


@pytest.fixture(scope="module")
def pairs(corpus):
    return list(read_parallel(corpus / "test.source", corpus / "test.target"))


@pytest.fixture(scope="module")
def smaller(model, pairs, tmp_path_factory):
    """Five of twelve heads removed."""
    from regard.commands.heads import HeadsRequest, study_heads

    place = tmp_path_factory.mktemp("pruned")
    write_pairs(place, "some", [(pair.source, pair.target) for pair in pairs[:8]])
    files = place / "some.source", place / "some.target"
    study_heads(model, HeadsRequest(*files, prune="5", out=place / "smaller"))
    return place / "smaller"


# ---------------------------------------------------------------- what each is worth
def test_json_has_every_head_with_what_the_model_loses_without_it(regard, model, files, pairs):
    found = json.loads(regard("heads", model, *files, "--json").out)
    evaluated = json.loads(regard("evaluate", model, "--source", files[1], "--target", files[3], "--json").out)
    assert found["bleu"] == evaluated["bleu"]
    assert found["perplexity"] == pytest.approx(evaluated["perplexity"], abs=1e-3)
    assert (found["sentences"], found["tokens"]) == (len(pairs), sum(len(pair.target) + 1 for pair in pairs))
    ablation = load_ablation(model, pairs)
    importance = ablation.importance()
    losses = [one["loss"] for one in found["heads"]]
    assert losses == sorted(losses, reverse=True)
    names = [Head(one["kind"], one["layer"], one["head"]) for one in found["heads"]]
    assert set(names) == {Head(kind, 1, head) for kind in KINDS for head in (1, 2, 3, 4)}
    for name, one in zip(names, found["heads"], strict=True):
        assert one["loss"] == pytest.approx(ablation.loss([name]), abs=1e-5)
        assert one["importance"] == pytest.approx(importance[name], abs=1e-5)
        assert one["bleu"] is None


def test_people_see_a_map_and_a_table_with_the_dearest_head_first(regard, model, files, tmp_path):
    said = regard("heads", model, *files, "--svg", tmp_path / "heads.svg")
    found = json.loads(regard("heads", model, *files, "--json").out)
    assert "20 sentences of" in said.lines[0]
    assert f"BLEU {found['bleu']['score']:.2f}" in said.out
    first = found["heads"][0]
    rise = 100 * (math.exp(first["loss"] - found["loss"]) - 1)
    table = said.out.split("roles\n")[1].splitlines()
    assert len(table) == 12
    assert table[0].split()[:3] == [first["kind"], f"{first['layer']}.{first['head']}", f"{rise:+.2f}"]
    (row,) = (line.split("·1 ")[1] for line in said.lines if f"{first['kind']}·1 " in line)
    assert row[2 * first["head"] - 2 : 2 * first["head"]] == "██"
    assert f" 0 to {rise:.2f}" in said.out
    drawn = ET.parse(tmp_path / "heads.svg").getroot()
    assert {"encoder·1", "decoder·1", "cross·1"} <= {node.text for node in drawn.iter() if node.text}
    assert drawn.get("aria-label") == "rise of perplexity without the head, in %"


def test_bleu_without_each_head_goes_on_where_it_stopped(regard, model, tmp_path, pairs):
    out, pairs = tmp_path / "heads.json", pairs[:3]
    write_pairs(tmp_path, "few", [(pair.source, pair.target) for pair in pairs])
    files = ("--source", tmp_path / "few.source", "--reference", tmp_path / "few.target")
    found = json.loads(regard("heads", model, *files, "--bleu", "--out", out, "--json").out)
    ablation = load_ablation(model, pairs)
    worst = found["heads"][0]
    name = Head(worst["kind"], worst["layer"], worst["head"])
    assert worst["bleu"] == pytest.approx(ablation.bleu([name]).score)
    kept = json.loads(out.read_text())
    assert len(kept["bleu"]) == 12
    kept["bleu"] = {"cross 1.2": 12.5}  # as if it had been interrupted after one
    out.write_text(json.dumps(kept), encoding="utf-8")
    again = json.loads(regard("heads", model, *files, "--bleu", "--out", out, "--json").out)
    scores = {(one["kind"], one["head"]): one["bleu"] for one in again["heads"]}
    assert scores.pop(("cross", 2)) == 12.5
    assert scores.items() <= {(one["kind"], one["head"]): one["bleu"] for one in found["heads"]}.items()
    assert "BLEU" in regard("heads", model, *files, "--bleu", "--out", out).out.split("roles\n")[0].splitlines()[-1]
    out.write_text("{}", encoding="utf-8")
    regard("heads", model, *files, "--bleu", "--out", out).refused("heads.json", "no file of finished heads")
    out.write_text(json.dumps({**kept, "inputs": {"weights": "x"}}), encoding="utf-8")
    regard("heads", model, *files, "--bleu", "--out", out).refused("heads.json", "another model or other texts")


# ---------------------------------------------------------------- a smaller model
def test_a_pruned_model_says_what_the_whole_one_says_without_those_heads(model, smaller, pairs):
    whole, less = load_ablation(model, pairs), load_ablation(smaller, pairs)
    removed = Ablation(whole.folder, pairs[:8]).least(5)
    assert len(less.heads) == 7
    assert less.loss() == pytest.approx(whole.loss(removed), abs=1e-5)
    with silenced(whole.model, removed):
        assert load(smaller).write(["abc de", "b"]) == load_whole(whole).write(["abc de", "b"])
    assert (smaller / "model.safetensors").stat().st_size < (model / "model.safetensors").stat().st_size


def load_whole(ablation):
    from regard.engine import TorchEngine

    return TorchEngine(ablation.folder)


def test_every_command_takes_a_pruned_model(regard, smaller, files, corpus, tmp_path):
    lines = regard("translate", smaller, stdin=b"abc de\nab\n").lines
    assert len(lines) == 2
    assert regard("translate", smaller, "--beam", 3, stdin=b"abc de\n").code == 0
    assert json.loads(regard("explain", smaller, "abc de", "--json").out)["target"]["text"] == lines[0]
    assert regard("explain", smaller, "abc de").code == 0
    aligned = regard("align", smaller, "--source", files[1], "--target", files[3])
    assert len(aligned.lines) == 20
    assert regard("score", smaller, "--source", files[1], "--target", files[3]).code == 0
    assert "kept_heads" in regard("inspect", smaller).out + (smaller / "recipe.yaml").read_text()
    assert json.loads(regard("heads", smaller, *files, "--json").out)["heads"][0]["layer"] == 1
    assert regard("average", smaller, smaller, "--out", tmp_path / "mean").code == 0
    regard("export", smaller, "--to", "ctranslate2", "--out", tmp_path / "fast").refused("model.kept_heads")
    regard("export", smaller, "--to", "transformers", "--out", tmp_path / "theirs").refused("model.kept_heads")


def test_training_goes_on_from_a_pruned_model(smaller, corpus, tmp_path):
    files = {"source": corpus / "train.source", "target": corpus / "train.target"}
    settings = tuple(one for one in TINY if not one.startswith(("model.", "text.")))
    request = Request(**files, start=smaller, out=tmp_path / "on", steps=2, settings=settings, quiet=True)
    run(request)
    again = load_ablation(tmp_path / "on", list(read_parallel(corpus / "test.source", corpus / "test.target")))
    assert len(again.heads) == 7
    with pytest.raises(RecipeError, match=r"model\.kept_heads: None, but the model"):
        run(replace(request, out=tmp_path / "other", settings=(*settings, "model.kept_heads=null")))


def test_json_says_what_pruning_cost_and_the_card_does_too(regard, model, files, tmp_path):
    out = tmp_path / "less"
    found = json.loads(regard("heads", model, *files, "--prune", "25%", "--out", out, "--json").out)
    assert len(found["removed"]) == 3
    assert (found["before"]["heads"], found["after"]["heads"]) == (12, 9)
    each = 4 * 32 * 8 + 3 * 8  # four matrices of width × head width, and the biases of query, key and value
    assert found["before"]["parameters"] - found["after"]["parameters"] == 3 * each
    evaluated = json.loads(regard("evaluate", out, "--source", files[1], "--target", files[3], "--json").out)
    assert found["after"]["bleu"] == pytest.approx(evaluated["bleu"]["score"])
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "`tiny` without 3 of its 12 attention heads" in card
    assert f"{found['after']['bleu']:.2f}" in card


# ---------------------------------------------------------------- bad input
def test_how_many_heads_are_wanted():
    assert [wanted(asked, 48) for asked in ("12", "0.25", "25%", "1%", "99.9%")] == [12, 12, 12, 1, 47]
    for asked in ("x", "", "%", "0.x", "1e3", "half"):
        with pytest.raises(DecodingError, match="expected a number of heads such as 12, or a share"):
            wanted(asked, 48)
    for asked in ("0.0", "1.0", "100%", "0%", "-5%", "1.5", "nan%"):
        with pytest.raises(DecodingError, match="no share between nothing and all"):
            wanted(asked, 48)


def test_what_cannot_be_measured_is_one_line(regard, model, files, tmp_path):
    empty, short = tmp_path / "empty", tmp_path / "short"
    empty.write_text("")
    short.write_text("AB\n")
    regard("heads", model, *files[:3], empty).refused("empty", "the file is empty")
    regard("heads", model, *files[:3], short).refused("20 lines", "1;")
    regard("heads", model, *files[:3], tmp_path / "none").refused("none")
    regard("heads", tmp_path, *files).refused(tmp_path.name)
    regard("heads", model, *files, "--svg", "heads.png").refused("heads.png", ".svg")
    regard("heads", model, *files, "--out", tmp_path / "x").refused("--out", "--bleu", "--prune")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("12",), ("prune 12", "9 can go", "say 1 to 9")),
        (("0",), ("prune 0", "say 1 to 9")),
        (("95%",), ("prune 11", "say 1 to 9")),
        (("1.5",), ("--prune 1.5", "0.25 or 25%")),
        (("many",), ("--prune many", "0.25 or 25%")),
        (("3", "--bleu"), ("--bleu", "--prune")),
        (("3", "--svg", "a.svg"), ("--svg", "--prune")),
    ],
)
def test_what_cannot_be_pruned_is_one_line(regard, model, files, tmp_path, arguments, words):
    regard("heads", model, *files, "--out", tmp_path / "less", "--prune", *arguments).refused(*words)
    assert not list(tmp_path.iterdir())


def test_a_pruned_model_needs_a_place(regard, model, files, tmp_path):
    regard("heads", model, *files, "--prune", 3).refused("--prune 3", "--out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    regard("heads", model, *files, "--prune", 3, "--out", tmp_path / "full").refused("full", "already exists")


def test_whoever_waits_is_told_how_long(capsys):
    ticks = iter([0.0, 4.0, 12.0, 13.0, 30.0])
    assert list(timed("abcd", 4, "heads", clock=lambda: next(ticks))) == list("abcd")
    assert capsys.readouterr().err == "heads: 2 of 4, 12 s left\n"
