"""evaluate, score, average, inspect: the numbers are those that others would compute."""

import gzip
import json
import shutil

import pytest
import sacrebleu
import torch
from safetensors.torch import load_file, save_file

from regard.data.pairs import Pair
from regard.decoding.bulk import score_pairs
from regard.engine import load
from regard.files import check_manifest, write_manifest


@pytest.fixture
def test_set(corpus):
    return ("--source", corpus / "test.source", "--target", corpus / "test.target")


def test_evaluate_agrees_with_sacrebleu_on_what_translate_says(regard, model, corpus, test_set, tmp_path):
    source, target = (corpus / "test.source").read_bytes(), (corpus / "test.target").read_text().splitlines()
    outputs = regard("translate", model, stdin=source).lines
    found = json.loads(regard("evaluate", model, *test_set, "--json", "--output", tmp_path / "out").out)
    assert (tmp_path / "out").read_text().splitlines() == outputs
    for name, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF()), ("ter", sacrebleu.TER())):
        assert found[name]["score"] == metric.corpus_score(outputs, [target]).score
        assert found[name]["signature"] == str(metric.get_signature())
    equal = sum(one == other for one, other in zip(outputs, target, strict=True))
    assert found["exact_match"] == 100 * equal / len(target)
    assert found["sentences"] == len(target)
    assert found["seconds"] > 0


def test_outputs_are_packed_as_their_name_says(regard, model, test_set, tmp_path):
    for name in ("out", "new/out.gz"):
        regard("evaluate", model, *test_set, "--json", "--output", tmp_path / name)
    assert gzip.decompress((tmp_path / "new" / "out.gz").read_bytes()) == (tmp_path / "out").read_bytes()


def test_perplexity_is_that_of_the_given_translations(regard, model, test_set):
    found = json.loads(regard("evaluate", model, *test_set, "--json").out)
    scores = [json.loads(line) for line in regard("score", model, *test_set, "--json").lines]
    loss = -sum(one["log_probability"] for one in scores) / sum(one["tokens"] for one in scores)
    assert found["perplexity"] == pytest.approx(torch.tensor(loss).exp().item(), abs=1e-3)


def test_what_people_read_and_what_programs_read_are_one(regard, model, test_set):
    found = json.loads(regard("evaluate", model, *test_set, "--json", "--by-length", "--beam", 2).out)
    shown = regard("evaluate", model, *test_set, "--by-length", "--beam", 2).out
    assert f"{found['chrf']['score']:.2f}" in shown
    assert f"{found['perplexity']:.2f}" in shown
    (bucket,) = found["by_length"]  # every line has two words
    assert bucket["sentences"] == found["sentences"]
    assert bucket["bleu"] == found["bleu"]["score"]


def test_a_score_is_the_sum_over_tokens_and_agrees_with_the_search(regard, model, corpus, tmp_path):
    answers = [json.loads(line) for line in regard("translate", model, "--json", stdin=b"abc de\nca\n").lines]
    (tmp_path / "s").write_text("abc de\nca\n")
    (tmp_path / "t").write_text("".join(f"{answer['text']}\n" for answer in answers))
    files = ("--source", tmp_path / "s", "--target", tmp_path / "t")
    scores = [float(line) for line in regard("score", model, *files).lines]
    engine = load(model)
    vocabularies = engine.vocabularies
    for answer, found in zip(answers, scores, strict=True):
        best = answer["candidates"][0]
        assert found == pytest.approx(best["log_probability"], abs=1e-4)
        tokens = score_pairs(
            engine.model,
            [vocabularies.source.encode(answer["source"])],
            [vocabularies.target.encode(answer["text"])],
        )[0]
        assert found == pytest.approx(sum(tokens), abs=1e-5)
        assert len(tokens) == len(best["tokens"]) + 1
    assert [s.log_probability for s in engine.score([Pair("ca", answers[1]["text"])])] == pytest.approx(
        scores[1:], abs=1e-5
    )


def retold(model, folder, change):
    """A copy of the model whose weights went through `change`."""
    shutil.copytree(model, folder)
    weights = load_file(folder / "model.safetensors")
    save_file({name: change(tensor) for name, tensor in weights.items()}, folder / "model.safetensors")
    write_manifest(folder, {})
    return folder


def test_the_average_of_models_is_the_mean_of_their_weights(regard, model, tmp_path):
    other = retold(model, tmp_path / "other", lambda tensor: tensor * 3 + 1)
    third = retold(model, tmp_path / "third", lambda tensor: tensor - 2)
    assert regard("average", model, other, third, "--out", tmp_path / "mean").code == 0
    mean = load_file(tmp_path / "mean" / "model.safetensors")
    paths = [folder / "model.safetensors" for folder in (model, other, third)]
    by_hand = [load_file(path) for path in paths]
    assert mean.keys() == by_hand[0].keys()
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, torch.stack([one[name].double() for one in by_hand]).mean(0).float())
    assert load(tmp_path / "mean").translate(["ab"])[0].text is not None
    assert "training.jsonl" not in check_manifest(tmp_path / "mean")["files"]


def test_the_average_of_checkpoints_leaves_out_what_an_interrupt_left(regard, model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "copy")
    steps = sorted((copy / "checkpoints").glob("step-*"))
    assert [path.name for path in steps] == ["step-00000040", "step-00000080", "step-00000120"]
    state = json.loads((steps[1] / "state.json").read_text())
    (steps[1] / "state.json").write_text(json.dumps({**state, "scheduled": False}))
    write_manifest(steps[1], {"kind": "checkpoint"})
    assert regard("average", copy, "--last", 2, "--out", tmp_path / "mean").code == 0
    found = load_file(tmp_path / "mean" / "model.safetensors")
    first, last = (load_file(steps[i] / "model.safetensors") for i in (0, 2))
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, ((first[name].double() + last[name].double()) / 2).float())
    card = (tmp_path / "mean" / "README.md").read_text()
    assert "step-00000040" in card
    assert "step-00000080" not in card
    regard("average", copy, "--last", 3, "--out", tmp_path / "more").refused("found 2 checkpoints", "at least 3")


def test_what_cannot_be_averaged_is_refused(regard, model, tmp_path):
    regard("average", model, "--out", model).refused("already exists")
    regard("average", model, model, "--last", 2, "--out", tmp_path / "x").refused("--last 2")
    shutil.copytree(model, tmp_path / "unlike")
    recipe = tmp_path / "unlike" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("dropout: 0.1", "dropout: 0.2"))
    write_manifest(tmp_path / "unlike", {})
    regard("average", model, tmp_path / "unlike", "--out", tmp_path / "x").refused("unlike", "model section differs")
    shutil.copytree(model, tmp_path / "foreign")
    tokeniser = tmp_path / "foreign" / "shared.json"
    tokeniser.write_text(tokeniser.read_text().replace('"a"', '"x"'))
    write_manifest(tmp_path / "foreign", {})
    regard("average", model, tmp_path / "foreign", "--out", tmp_path / "x").refused("shared.json", "vocabulary")
    bare = shutil.copytree(model, tmp_path / "bare")
    shutil.rmtree(bare / "checkpoints")
    regard("average", bare, "--out", tmp_path / "x").refused("found 0 checkpoints")
    assert not (tmp_path / "x").exists()


def test_inspect_tells_what_is_there(regard, model):
    found = json.loads(regard("inspect", model, "--json").out)
    engine, manifest = load(model), check_manifest(model)
    assert found["parameters"] == sum(p.numel() for p in engine.model.parameters())
    assert found["vocabulary"] == {"kind": "characters", "source": 15, "target": 15}  # 4 special, 5 + 5 letters, space
    assert found["recipe"]["model"]["width"] == 32
    assert found["files"] == manifest["files"]
    assert found["validation"] == manifest["validation"]
    shown = regard("inspect", model).out
    for told in (
        f"{found['parameters']:,}",
        "width: 32",
        found["validation"]["bleu"]["signature"],
        "model.safetensors",
    ):
        assert told in shown
