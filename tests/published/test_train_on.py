"""A published model is trained on: a run begins with its weights and its words, and its end can go back again."""

import numpy as np
import pytest
import torch
from bars import bars
from published_folders import CLASSES, LABELS, opened

from regard.errors import RecipeError
from regard.published.exporting import export_transformers
from regard.published.importing import import_checkpoint
from regard.published.vocabulary import NONE
from regard.recipe.folder import WEIGHTS, read_recipe
from regard.recipe.opening import open_any
from regard.run import Request, begin, run
from regard.tasks.classify import Classes
from regard.training.tensors import read_tensors, weights

QUICK = ("data.batch_tokens=200", "data.max_tokens=40", "training.threads=1", "training.saves=1")
STILL = (*QUICK, "training.validations=1", "training.learning_rate=1e-12")  # so that one step changes nothing
WORDS = ("cat", "dog", "mat", "Hund", "Katze", "Matte")


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    """NAME → something for it to learn from."""
    place = tmp_path_factory.mktemp("texts")
    lines = [f"the {one} sat on the {other}" for one in WORDS for other in WORDS]
    text, labelled, images = place / "text.txt", place / "labelled.tsv", place / "bars.npz"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = [f"{line}\t{sorted(LABELS)[number % 3]}\n" for number, line in enumerate(lines)]
    labelled.write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    pictures, labels = bars(30)
    np.savez(images, images=pictures, labels=labels)
    pairs, plain = {"source": text, "target": text}, {"text": (text,)}
    files = {"t5": pairs, "marian": pairs, "gpt2": plain, "bert": {**plain, "masked": True}, "vit": {"images": images}}
    files["bert-classes"] = {"labelled": labelled}
    return {name: {**given, "steps": 1, "quiet": True, "settings": STILL} for name, given in files.items()}


@pytest.mark.parametrize("name", CLASSES)
def test_a_run_that_moves_nothing_ends_with_the_weights_of_the_checkpoint(imported, requests, tmp_path, name):
    run(Request(**requests[name], start=imported[name], out=tmp_path / "m"))
    found, expected = (read_tensors(folder / WEIGHTS) for folder in (tmp_path / "m", imported[name]))
    assert found.keys() == expected.keys()
    order = [LABELS.index(label) for label in sorted(LABELS)]  # classes that were learned from stand in their order
    for key, tensor in expected.items():
        if key.startswith("output."):
            if name == "vit":
                continue  # other classes
            tensor = tensor[order]
        torch.testing.assert_close(found[key], tensor, rtol=0, atol=1e-6, msg=key)
    before, after = (read_recipe(folder) for folder in (imported[name], tmp_path / "m"))
    assert (after.task, after.text, after.decoding) == (before.task, before.text, before.decoding)


@pytest.mark.parametrize("name", CLASSES)
def test_what_was_trained_on_goes_back_with_its_words(imported, requests, tmp_path, name):
    """What only we have, such as rows of ids that they lack, was not trained: nothing is lost on the way."""
    asked = requests[name] | {"settings": (*QUICK, "training.validations=1", "training.learning_rate=0.01"), "steps": 2}
    run(Request(**asked, start=imported[name], out=tmp_path / "m"))
    before, after = (read_tensors(folder / WEIGHTS) for folder in (imported[name], tmp_path / "m"))
    assert any(not torch.equal(before[key], after[key]) for key in before if before[key].shape == after[key].shape)
    assert export_transformers(tmp_path / "m", tmp_path / "back").tokeniser
    if name == "vit":
        theirs, ours = opened(tmp_path / "back", name).model, open_any(tmp_path / "m").model
        pixels = torch.randn(2, 3, 8, 12, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            torch.testing.assert_close(theirs(pixels).logits, ours(pixels), rtol=1e-4, atol=1e-4)
        assert theirs.config.id2label == {0: "0", 1: "1"}
        return
    import_checkpoint(tmp_path / "back", tmp_path / "again", convert=False, say=lambda _: None)
    again, order = read_tensors(tmp_path / "again" / WEIGHTS), order_in(open_any(tmp_path / "m").lexicon)
    theirs = [row for row, id in enumerate(order) if id != NONE]
    for key, tensor in after.items():
        rows = theirs if len(tensor) == len(order) else range(len(tensor))
        torch.testing.assert_close(again[key][rows], tensor[rows], rtol=1e-5, atol=1e-6, msg=key)


def order_in(lexicon):
    """Their id of each of our ids."""
    return (lexicon.tokeniser if isinstance(lexicon, Classes) else lexicon.target).order


def test_a_published_t5_learns_on_from_plain_text(imported, requests, tmp_path):
    """With the sentinels of its own vocabulary standing for what is left out."""
    asked = requests["gpt2"] | {"denoise": True, "settings": (*STILL, "task.context=32")}
    run(Request(**asked, start=imported["t5"], out=tmp_path / "m"))
    found, expected = (read_tensors(folder / WEIGHTS) for folder in (tmp_path / "m", imported["t5"]))
    assert found.keys() == expected.keys()
    for key, tensor in expected.items():
        torch.testing.assert_close(found[key], tensor, rtol=0, atol=1e-6, msg=key)
    assert read_recipe(tmp_path / "m").task.kind == "denoise"


def test_a_classifier_begins_with_a_published_encoder(imported, requests, tmp_path):
    request = Request(**requests["bert-classes"], start=imported["bert"], out=tmp_path / "m")
    _, prepared = begin(request)
    theirs = read_tensors(imported["bert"] / WEIGHTS)
    encoder = [key for key in theirs if key.startswith("encoder.")]
    assert len(encoder) > 20
    for key in encoder:
        assert torch.equal(weights(prepared.model)[key], theirs[key]), key
    assert prepared.recipe.text.kind == "published"


@pytest.mark.parametrize(
    ("name", "setting", "said"),
    [
        ("gpt2", "task.start=bos", "task.start: bos, but the model in .* has eos; leave it out"),
        ("gpt2", "text.kind=bpe", "text.kind: bpe, but the vocabulary of .* has published"),
        ("t5", "model.norm=layer", "model.norm: layer, but the model in .* has rms"),
        ("marian", "model.positions=rotary", "model.positions: rotary, but the model in .* has sinusoid-halves"),
        ("vit", "data.images.channels=1", "data.images.channels: 1, but the model in .* has 3"),
        ("bert", "task.context=64", "model.max_length: 40 learned positions, but task.context asks for 64"),
    ],
)
def test_what_a_checkpoint_cannot_be_is_refused_by_name(imported, requests, tmp_path, name, setting, said):
    asked = requests[name] | {"settings": (*STILL, setting)}
    with pytest.raises(RecipeError, match=said):
        run(Request(**asked, start=imported[name], out=tmp_path / "m"))
    assert not (tmp_path / "m").exists()
