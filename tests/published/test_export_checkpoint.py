"""A model goes back to where transformers reads it, with the same logits, the same words and the same search."""

import json

import pytest
import torch
from published_folders import TEXTS, opened, write_checkpoint

from regard.errors import ModelFormatError, RecipeError
from regard.files import write_manifest
from regard.models.interface import nothing_read
from regard.published import exporting
from regard.published.configs import refuse_gpt2, refuse_marian, refuse_t5
from regard.published.exporting import export_transformers, publisher
from regard.published.importing import import_checkpoint
from regard.recipe.folder import fresh_model, read_model, write_recipe, write_weights
from regard.recipe.models import GptOptions, RecurrentOptions, TransformerOptions
from regard.recipe.recipe import parse
from regard.tasks.translate import Vocabularies
from regard.text.characters import Characters
from regard.text.published import read_byte_level, read_marian, read_t5

FAMILIES = ["gpt2", "t5", "marian"]
every_family = pytest.mark.parametrize("family", FAMILIES)
T5_LIKE = {"positions": "relative", "norm": "rms", "bias": False, "scale_embedding": False}
MARIAN_LIKE = {"positions": "sinusoid-halves", "order": "post"}
SMALL = {"width": 12, "heads": 3, "feedforward": 20, "dropout": 0.0}


@pytest.fixture(scope="module")
def there_and_back(tmp_path_factory):
    """family → the checkpoint, and what came back of it."""
    place = tmp_path_factory.mktemp("round")
    for family in FAMILIES:
        write_checkpoint(place / family, family)
        import_checkpoint(place / family, place / f"ours-{family}", convert=False, say=lambda _: None)
        found = export_transformers(place / f"ours-{family}", place / f"back-{family}")
        assert found.tokeniser
    return {family: (place / family, place / f"back-{family}") for family in FAMILIES}


@torch.no_grad()
def logits(theirs, text):
    ids = torch.tensor([theirs.ids(text)])
    if theirs.model.config.is_encoder_decoder:
        return theirs.model(input_ids=ids, decoder_input_ids=ids).logits
    return theirs.model(ids).logits


@every_family
def test_what_comes_back_computes_and_cuts_as_what_went_in(there_and_back, family):
    before, after = (opened(folder, family) for folder in there_and_back[family])
    for text in TEXTS:
        assert after.ids(text) == before.ids(text)
        torch.testing.assert_close(logits(after, text), logits(before, text), rtol=1e-5, atol=1e-5)
        assert after.tokeniser.decode(after.ids(text)) == before.tokeniser.decode(before.ids(text))
    assert after.model.config.eos_token_id == before.model.config.eos_token_id


@every_family
def test_the_tokeniser_comes_back_as_it_was(there_and_back, family):
    readers = {"gpt2": read_byte_level, "t5": read_t5, "marian": read_marian}
    before, after = (readers[family](folder) for folder in there_and_back[family])
    for one, other in zip(before, after, strict=True) if family == "marian" else [(before, after)]:
        assert one.vocabulary == other.vocabulary
        assert one.encode(" ".join(TEXTS)) == other.encode(" ".join(TEXTS))


def test_names_that_were_added_stay_added(there_and_back, tmp_path):
    from regard.text.publish import write_byte_level

    folder, _ = there_and_back["gpt2"]
    (tmp_path / "old").mkdir()
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / "old" / name).write_bytes((folder / name).read_bytes())
    count = len(json.loads((folder / "vocab.json").read_text()))
    (tmp_path / "old" / "added_tokens.json").write_text(json.dumps({"<tool>": count}))
    before = read_byte_level(tmp_path / "old")
    (tmp_path / "new").mkdir()
    write_byte_level(before, tmp_path / "new")
    assert read_byte_level(tmp_path / "new").vocabulary == before.vocabulary
    assert len(before.encode("<tool>")) == 1


@pytest.mark.parametrize("family", ["t5", "marian"])
def test_search_settings_come_back(there_and_back, family):
    before, after = (json.loads((folder / "generation_config.json").read_text()) for folder in there_and_back[family])
    for key in ("num_beams", "length_penalty", "max_length", "eos_token_id", "pad_token_id"):
        assert after[key] == before[key], key
    assert [after["pad_token_id"]] in after["bad_words_ids"]  # what starts a text is never written


# ---------------------------------------------------------------- models that were trained here
def trained(place, model, task="translate", alphabet="abcdefg", **text):
    """A model directory with random weights and vocabularies of our own."""
    kind = {"kind": task, "context": 9} if task == "language-model" else {"kind": task}
    recipe = parse({"task": kind, "data": {}, "model": model, "text": {"kind": "characters", **text}}, "recipe")
    source, target = Characters(list(alphabet)), Characters(list("abcdefg"))
    words = Vocabularies(target, target) if recipe.text.shared else Vocabularies(source, target)
    made = fresh_model(recipe, words)
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    place.mkdir()
    write_recipe(place, recipe, words)
    write_weights(place, made)
    write_manifest(place, {})
    return place


OWN = {
    "gpt2": ("language-model", {"kind": "gpt", "layers": 2, "max_length": 9, **SMALL}),
    "t5": ("translate", {**T5_LIKE, **SMALL, "encoder_layers": 2, "decoder_layers": 1, "activation": "swiglu"}),
    "marian": ("translate", {**MARIAN_LIKE, **SMALL, "encoder_layers": 1, "decoder_layers": 2}),
}


@every_family
@torch.no_grad()
def test_a_model_of_our_own_has_the_same_logits_there(tmp_path, regard, family):
    from published_folders import CLASSES, transformers

    task, model = OWN[family]
    folder = trained(tmp_path / "model", model, task)
    ended = regard("export", folder, "--to", "transformers", "--out", tmp_path / "out")
    assert ended.code == 0
    assert "without a tokeniser" in ended.out
    theirs = getattr(transformers, CLASSES[family]).from_pretrained(tmp_path / "out").eval()
    ours = read_model(folder, task).model.eval()
    tokens = torch.tensor([[2, 4, 9, 5, 3], [2, 7, 7, 10, 3]])
    if family == "gpt2":
        found, expected = theirs(tokens).logits, ours.decoder(tokens, ours.decoder.begin(nothing_read(2)))[0]
    else:
        found = theirs(input_ids=tokens, decoder_input_ids=tokens).logits
        expected = ours(tokens, torch.ones_like(tokens, dtype=torch.bool), tokens)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert (theirs.config.eos_token_id, theirs.config.vocab_size) == (3, 11)


def test_two_vocabularies_of_one_size_are_two_embeddings_there(tmp_path):
    from published_folders import transformers

    folder = trained(tmp_path / "model", OWN["marian"][1], alphabet="hijklmn", shared=False)
    export_transformers(folder, tmp_path / "out")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "out").eval()
    ours = read_model(folder).model.eval()
    tokens = torch.tensor([[4, 9, 5, 3]])
    with torch.no_grad():
        found = theirs(input_ids=tokens, decoder_input_ids=tokens).logits
        expected = ours(tokens, torch.ones_like(tokens, dtype=torch.bool), tokens)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (GptOptions(positions="rotary"), "model.positions: found rotary, but GPT-2.* has learned"),
        (GptOptions(attention="linear"), "model.attention: found linear"),
        (GptOptions(head_width=7), "model.head_width: found 7"),
        (GptOptions(output_bias=True), "model.output_bias: found a trained one"),
        (GptOptions(tie_output=False), "model.output_bias: found a trained one"),
        (GptOptions(activation="swiglu"), "model.activation: found swiglu, .* relu or gelu"),
        (TransformerOptions(experts=4, **T5_LIKE), "model.experts: found 4, but T5.* has none"),
        (TransformerOptions(**T5_LIKE | {"bias": True}), "model.bias: found true, but T5.* has false"),
        (TransformerOptions(), "model.positions: found sinusoid, but Marian.* has sinusoid-halves"),
        (TransformerOptions(**MARIAN_LIKE, norm_epsilon=0.1), "model.norm_epsilon: found 0.1, but Marian.* has 1e-05"),
        (TransformerOptions(**MARIAN_LIKE, head_width=3), "model.head_width: found 3"),
    ],
)
def test_what_a_family_cannot_have_is_refused_by_name(options, said):
    with pytest.raises(RecipeError, match=said):
        publisher(options).refuse(options)


def test_what_a_family_can_have_is_let_through():
    refuse_gpt2(GptOptions(output_bias="silent", activation="gelu-tanh"))
    refuse_t5(TransformerOptions(**T5_LIKE, head_width=3, output_bias="silent"))
    refuse_marian(TransformerOptions(**MARIAN_LIKE, output_bias=True))


def test_a_family_that_nobody_publishes_is_refused():
    with pytest.raises(RecipeError, match=r"model.kind: found recurrent"):
        publisher(RecurrentOptions())


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (OWN["marian"][1], "vocabularies of 6 and 11 entries, but Marian has one size"),
        (OWN["t5"][1], "model.share_embeddings: found false, but T5"),
    ],
)
def test_two_vocabularies_that_do_not_fit_are_refused(tmp_path, regard, model, said):
    folder = trained(tmp_path / "model", model, alphabet="xy", shared=False)
    regard("export", folder, "--to", "transformers", "--out", tmp_path / "out").refused(said)
    assert not (tmp_path / "out").exists()


def test_options_of_other_exports_are_refused(regard, tmp_path):
    model = trained(tmp_path / "model", SMALL)
    to = ("--to", "transformers", "--out", tmp_path / "out")
    regard("export", model, *to, "--quantise", "int8").refused("--quantise int8: has no effect")
    regard("export", model, *to, "--from-code", "en").refused("--from-code, --to-code: have an effect only")
    regard("export", model, *to).refused("model.positions: found sinusoid, but Marian")


def test_what_is_there_already_is_left_alone(there_and_back, tmp_path, regard):
    folder = trained(tmp_path / "model", OWN["gpt2"][1], "language-model")
    before = sorted(there_and_back["gpt2"][1].iterdir())
    regard("export", folder, "--to", "transformers", "--out", there_and_back["gpt2"][1]).refused("already exists")
    assert sorted(there_and_back["gpt2"][1].iterdir()) == before


def test_weights_that_their_model_has_no_place_for_are_refused(there_and_back, tmp_path, monkeypatch):
    """A bias that only we have can be trained by an older Regard; it may not be lost in silence."""
    folder = read_model(there_and_back["gpt2"][0].parent / "ours-gpt2", "language-model")
    with torch.no_grad():
        folder.model.decoder.output.bias[7] = 1.0
    monkeypatch.setattr(exporting, "read_model", lambda *_: folder)
    with pytest.raises(
        ModelFormatError, match=r"'decoder.output.bias' was trained, and the published model has no place"
    ):
        export_transformers(folder.path, tmp_path / "out")
