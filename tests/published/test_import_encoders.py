"""A published BERT or ViT fills holes, sorts texts and tells images apart as transformers does, or is refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from published_folders import LABELS, PIXELS, TEXTS, opened, transformers, write_checkpoint
from safetensors.torch import load_file, save_file

from regard.data.pixels import normalise
from regard.errors import DecodingError, ModelFormatError
from regard.published.fields import told_apart
from regard.published.importing import import_checkpoint
from regard.published.preprocessing import read_normalisation
from regard.reader import load_classifier, load_embedder, load_filler
from regard.recipe.reading import read_masked
from regard.viewer import load_viewer

Image = pytest.importorskip("PIL.Image")
HOLES = ["the [MASK] sat on the mat", "[MASK] dog's [MASK]"]
PAIRS = [("the cat", "a dog sat"), ("der Hund", "the cat, didn't it?")]


def brought_in(folder, out, **more):
    import_checkpoint(folder, out, convert=False, say=lambda _: None, **more)
    return out


# ---------------------------------------------------------------- BERT
@torch.no_grad()
def test_holes_are_filled_as_transformers_fills_them(published, imported):
    filler, theirs = load_filler(imported["bert"]), opened(published["bert"], "bert")
    order = filler.tokeniser.order
    for text in HOLES:
        ids = torch.tensor([theirs.ids(text)])
        logits = theirs.model(ids).logits[ids == theirs.tokeniser.mask_token_id]
        logits[:, theirs.tokeniser.all_special_ids] = -torch.inf
        for guesses, row in zip(filler.fill(text, top=4), logits.softmax(-1), strict=True):
            best = row.topk(4)
            assert [guess.piece for guess in guesses] == [
                filler.tokeniser.name(order.index(id)) for id in best.indices.tolist()
            ]
            assert [guess.probability for guess in guesses] == pytest.approx(best.values.tolist(), rel=1e-4)


@torch.no_grad()
def test_a_vector_is_the_mean_of_theirs_over_the_tokens_of_a_text(published, imported):
    theirs = opened(published["bert"], "bert")
    expected = []
    for text in TEXTS:
        features = theirs.model.bert(torch.tensor([theirs.ids(text)])).last_hidden_state[0]
        expected.append(features[1:-1].mean(0))  # neither [CLS] nor [SEP]
    found = load_embedder(imported["bert"]).embed(TEXTS)
    torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-4)


@torch.no_grad()
def test_texts_are_sorted_as_transformers_sorts_them(published, imported, regard):
    classifier, theirs = load_classifier(imported["bert-classes"]), opened(published["bert-classes"], "bert-classes")
    decisions = classifier.classify(TEXTS)
    for text, decision in zip(TEXTS, decisions, strict=True):
        p = theirs.model(torch.tensor([theirs.ids(text)])).logits.softmax(-1)[0].tolist()
        assert decision.probabilities == pytest.approx(dict(zip(LABELS, p, strict=True)), abs=1e-4)
    ended = regard("classify", imported["bert-classes"], stdin="\n".join(TEXTS).encode())
    assert ended.lines == [decision.label for decision in decisions]


@torch.no_grad()
def test_a_classifier_of_pairs_is_one_where_it_is_said_to_be(published, regard, tmp_path):
    out = tmp_path / "pairs"
    assert regard("import", published["bert-classes"], "--out", out, "--pairs").code == 0
    theirs = opened(published["bert-classes"], "bert-classes")
    firsts, seconds = zip(*PAIRS, strict=True)
    for decision, (first, second) in zip(load_classifier(out).classify(firsts, seconds), PAIRS, strict=True):
        p = theirs.model(**theirs.tokeniser(first, second, return_tensors="pt")).logits.softmax(-1)[0].tolist()
        assert decision.probabilities == pytest.approx(dict(zip(LABELS, p, strict=True)), abs=1e-4)
    regard("import", published["bert"], "--out", tmp_path / "no", "--pairs").refused("--pairs: is for classifiers")
    single = write_checkpoint(tmp_path / "single", "bert-classes", type_vocab_size=1)
    regard("import", single, "--out", tmp_path / "no", "--pairs").refused("--pairs: the checkpoint has one segment")


def test_files_of_any_year_make_the_same_model(published, imported, tmp_path):
    """The first ones call gain and shift γ and β, and hold what no head needs; some repeat the tied output layer."""
    folder = shutil.copytree(published["bert"], tmp_path / "old")
    tensors = load_file(folder / "model.safetensors")
    words = "bert.embeddings.word_embeddings.weight"
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    old |= {
        "bert.embeddings.position_ids": torch.arange(40)[None],
        "bert.pooler.dense.weight": torch.ones(12, 12),
        "bert.pooler.dense.bias": torch.ones(12),
        "cls.seq_relationship.weight": torch.ones(2, 12),
        "cls.seq_relationship.bias": torch.ones(2),
        "cls.predictions.decoder.weight": tensors[words].clone(),  # without the bias, which came later
    }
    save_file(old, folder / "model.safetensors")
    brought_in(folder, tmp_path / "out")
    one, other = (load_file(path / "model.safetensors") for path in (imported["bert"], tmp_path / "out"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_model_reads_as_far_as_its_positions_go(imported):
    found = read_masked(imported["bert"])
    assert found.recipe.task.context == found.recipe.model.max_length == 40
    filler = load_filler(imported["bert"])
    assert len(filler.fill("[MASK]" + "." * 37)) == 1  # 40 tokens with [CLS] and [SEP]
    with pytest.raises(DecodingError, match="41 tokens with start and end, but this model learned to read 40"):
        filler.fill("[MASK]" + "." * 38)


@pytest.mark.parametrize(
    ("name", "keep", "said"),
    [
        ("bert", "bert.", "found an encoder alone, expected a head upon it"),
        ("bert-classes", ("bert.embeddings", "bert.encoder", "classifier"), "found a classifier upon every token"),
        ("vit", "vit.", "found an encoder alone, expected a classifier upon it"),
    ],
)
def test_a_head_that_we_have_not_is_refused(published, regard, tmp_path, name, keep, said):
    folder = shutil.copytree(published[name], tmp_path / "bad")
    tensors = load_file(folder / "model.safetensors")
    save_file({key: x for key, x in tensors.items() if key.startswith(keep)}, folder / "model.safetensors")
    regard("import", folder, "--out", tmp_path / "out").refused(said)


def test_a_mask_of_another_name_is_refused(published, regard, tmp_path):
    folder = shutil.copytree(published["bert"], tmp_path / "bad")
    names = (folder / "vocab.txt").read_text(encoding="utf-8").replace("[MASK]", "<mask>")
    (folder / "vocab.txt").write_text(names, encoding="utf-8")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"mask_token": "<mask>"}))
    regard("import", folder, "--out", tmp_path / "out").refused("mask_token: found <mask>, expected [MASK]")


# ---------------------------------------------------------------- names of classes
def test_classes_of_one_name_are_told_apart_by_their_numbers():
    assert told_apart(["crane", "tulip", "rose", "crane"]) == ("crane", "tulip", "rose", "crane (3)")
    assert told_apart(["no", "yes"]) == ("no", "yes")


@pytest.mark.parametrize("names", [["one"], ["a", ""], ["a", "a (2)", "a"]])
def test_names_that_tell_nothing_apart_are_refused(names):
    with pytest.raises(ModelFormatError, match=r"config.json: id2label: "):
        told_apart(names)


# ---------------------------------------------------------------- ViT
@torch.no_grad()
def test_images_are_seen_as_transformers_sees_them(published, imported, regard, tmp_path):
    """Of the model's own size, and of another, to which Pillow brings them."""
    rng = np.random.default_rng(1)
    pictures = [rng.integers(256, size=(*size, 3), dtype=np.uint8) for size in ((8, 12), (21, 17))]
    theirs = opened(published["vit"], "vit").model
    reads = transformers.ViTImageProcessorPil.from_pretrained(published["vit"])
    pixels = reads([Image.fromarray(picture) for picture in pictures], return_tensors="pt").pixel_values
    names = ["crane", "tulip", "rose", "crane (3)"]
    found = load_viewer(imported["vit"]).classify([picture.transpose(2, 0, 1) for picture in pictures])
    for seen, p in zip(found, theirs(pixels).logits.softmax(-1).tolist(), strict=True):
        assert dict(seen.ranking) == pytest.approx(dict(zip(names, p, strict=True)), abs=1e-4)
    Image.fromarray(pictures[1]).save(tmp_path / "one.png")
    assert found[1].label in regard("see", imported["vit"], tmp_path / "one.png").out


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        (PIXELS, lambda x: (x / 255 - np.array([0.5, 0.4, 0.3])) / np.array([0.5, 0.2, 0.1])),
        (PIXELS | {"do_normalize": False}, lambda x: x / 255),
        (PIXELS | {"do_rescale": False}, lambda x: (x - np.array([0.5, 0.4, 0.3])) / np.array([0.5, 0.2, 0.1])),
        ({"feature_extractor_type": "ViTFeatureExtractor", "do_resize": False}, lambda x: (x / 255 - 0.5) / 0.5),
        (PIXELS | {"rescale_factor": 1 / 128, "do_normalize": False}, lambda x: x / 128),
    ],
)
def test_pixels_become_the_numbers_that_the_settings_ask_for(tmp_path, settings, number):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    pixels = np.arange(72, dtype=np.uint8).reshape(2, 3, 4, 3) * 3
    found = normalise(pixels.transpose(0, 3, 1, 2), read_normalisation(tmp_path, (8, 12), 3))
    np.testing.assert_allclose(found.transpose(0, 2, 3, 1), number(pixels.astype(np.float64)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"do_center_crop": True}, "do_center_crop: found True, expected False"),
        ({"resample": 3}, "resample: found 3, expected 2"),
        ({"size": {"shortest_edge": 8}}, "size: found {'shortest_edge': 8}, expected the 8 × 12 pixels that config"),
        ({"size": 8}, "size: found 8, expected the 8 × 12 pixels"),
        ({"image_mean": [0.5]}, "image_mean: found [0.5], expected one number for each of 3 channels"),
        ({"image_std": [0.5, 0.0, 0.5]}, "image_std.1: found 0.0"),
        ({"image_processor_type": "DeiTImageProcessor"}, "image_processor_type: found 'DeiTImageProcessor'"),
        (None, "preprocessor_config.json: No such file"),
    ],
)
def test_what_would_be_done_otherwise_to_an_image_is_refused_by_name(published, regard, tmp_path, settings, said):
    folder = shutil.copytree(published["vit"], tmp_path / "bad")
    file = folder / "preprocessor_config.json"
    file.unlink()
    if settings is not None:
        file.write_text(json.dumps(PIXELS | settings))
    regard("import", folder, "--out", tmp_path / "out").refused(said)
    assert not (tmp_path / "out").exists()


def test_cards_say_how_the_models_are_used(imported):
    for name, command in (("bert", "regard fill"), ("bert-classes", "regard classify"), ("vit", "regard see")):
        card = (imported[name] / "README.md").read_text(encoding="utf-8")
        assert f"{command} {name}" in card
    assert "tokeniser" not in card  # of images
