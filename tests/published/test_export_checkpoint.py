"""A model goes back to where transformers reads it, with the same logits, the same words and the same search."""

import json

import pytest
import torch
from published_folders import CLASSES, TEXTS, opened, transformers, write_checkpoint

from regard.data.image_lexicon import ImageLexicon
from regard.data.labels import Labels
from regard.data.pixels import Normalisation
from regard.errors import ModelFormatError, RecipeError
from regard.files import write_manifest
from regard.models.interface import nothing_read
from regard.published import exporting
from regard.published.configs import refuse_bert, refuse_gpt2, refuse_marian, refuse_t5, refuse_vit
from regard.published.exporting import export_transformers
from regard.published.publishers import publisher
from regard.recipe.folder import fresh_model, read_model, write_recipe, write_weights
from regard.recipe.models import BertOptions, GptOptions, RecurrentOptions, TransformerOptions, VitOptions
from regard.recipe.opening import open_any
from regard.recipe.reading import fresh_classifier, fresh_masked
from regard.recipe.recipe import parse
from regard.recipe.seeing import fresh_image_classifier
from regard.tasks.classify import Classes
from regard.tasks.translate import Vocabularies
from regard.text.characters import Characters
from regard.text.published import read_byte_level, read_marian, read_t5, read_wordpiece

WRITERS = ["gpt2", "t5", "marian"]
every_writer = pytest.mark.parametrize("family", WRITERS)
every_reader_of_text = pytest.mark.parametrize("family", [*WRITERS, "bert", "bert-classes"])
T5_LIKE = {"positions": "relative", "norm": "rms", "bias": False, "scale_embedding": False}
MARIAN_LIKE = {"positions": "sinusoid-halves", "order": "post"}
SMALL = {"width": 12, "heads": 3, "feedforward": 20, "dropout": 0.0}


@pytest.fixture(scope="module")
def there_and_back(published, imported, tmp_path_factory):
    """family → the checkpoint, and what came back of it."""
    place = tmp_path_factory.mktemp("back")
    for family, folder in imported.items():
        assert export_transformers(folder, place / family).tokeniser
    return {family: (published[family], place / family) for family in CLASSES}


@torch.no_grad()
def logits(theirs, text):
    ids = torch.tensor([theirs.ids(text)])
    if theirs.model.config.is_encoder_decoder:
        return theirs.model(input_ids=ids, decoder_input_ids=ids).logits
    return theirs.model(ids).logits


def test_an_untied_bert_comes_back_as_it_went_in(regard, tmp_path):
    before = write_checkpoint(tmp_path / "untied", "bert", tie_word_embeddings=False)
    assert regard("import", before, "--out", tmp_path / "ours").code == 0
    assert regard("export", tmp_path / "ours", "--to", "transformers", "--out", tmp_path / "back").code == 0
    one, other = opened(before, "bert"), opened(tmp_path / "back", "bert")
    table, head = other.model.get_input_embeddings().weight, other.model.get_output_embeddings().weight
    assert not torch.equal(table, head)
    for text in TEXTS:
        torch.testing.assert_close(logits(other, text), logits(one, text), rtol=1e-5, atol=1e-5)


@every_reader_of_text
def test_what_comes_back_computes_and_cuts_as_what_went_in(there_and_back, family):
    before, after = (opened(folder, family) for folder in there_and_back[family])
    for text in TEXTS:
        assert after.ids(text) == before.ids(text)
        torch.testing.assert_close(logits(after, text), logits(before, text), rtol=1e-5, atol=1e-5)
        assert after.tokeniser.decode(after.ids(text)) == before.tokeniser.decode(before.ids(text))
    assert after.model.config.eos_token_id == before.model.config.eos_token_id


@torch.no_grad()
def test_what_comes_back_sees_as_what_went_in(there_and_back):
    before, after = (opened(folder, "vit").model for folder in there_and_back["vit"])
    pixels = torch.randn(3, 3, 8, 12, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(after(pixels).logits, before(pixels).logits, rtol=1e-5, atol=1e-5)
    one, other = (transformers.ViTImageProcessorPil.from_pretrained(folder) for folder in there_and_back["vit"])
    picture = torch.randint(256, (21, 17, 3), generator=torch.Generator().manual_seed(1)).to(torch.uint8).numpy()
    found, expected = (reads(picture, return_tensors="pt").pixel_values for reads in (other, one))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("family", ["bert-classes", "vit"])
def test_the_names_of_classes_come_back(there_and_back, family):
    before, after = (opened(folder, family).model.config.id2label for folder in there_and_back[family])
    expected = dict(before) if family == "bert-classes" else {**before, 3: "crane (3)"}  # two cranes, told apart
    assert after == expected


@every_reader_of_text
def test_the_tokeniser_comes_back_as_it_was(there_and_back, family):
    readers = {"gpt2": read_byte_level, "t5": read_t5, "marian": read_marian}
    before, after = (readers.get(family, read_wordpiece)(folder) for folder in there_and_back[family])
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
    return written(place, recipe, words, fresh_model(recipe, words))


def written(place, recipe, lexicon, model):
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    place.mkdir()
    write_recipe(place, recipe, lexicon)
    write_weights(place, model)
    write_manifest(place, {})
    return place


OWN = {
    "gpt2": ("language-model", {"kind": "gpt", "layers": 2, "max_length": 9, **SMALL}),
    "t5": ("translate", {**T5_LIKE, **SMALL, "encoder_layers": 2, "decoder_layers": 1, "activation": "swiglu"}),
    "marian": ("translate", {**MARIAN_LIKE, **SMALL, "encoder_layers": 1, "decoder_layers": 2}),
}


@every_writer
@torch.no_grad()
def test_a_model_of_our_own_has_the_same_logits_there(tmp_path, regard, family):
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


BERT_LIKE = {"kind": "bert", "order": "post", "layers": 2, "max_length": 9, "segments": 3, **SMALL}
LETTERS = Characters(list("abcdefg"))
GREY = ImageLexicon(
    size=(6, 9), channels=1, normalisation=Normalisation(mean=(0.25,), std=(0.5,)), labels=("one", "two", "three")
)
READING = {  # task → model section, lexicon, how a fresh model is made
    "masked": (BERT_LIKE, Vocabularies(LETTERS, LETTERS), lambda recipe, words: fresh_masked(recipe, words.target)),
    "masked, untied": (
        BERT_LIKE | {"tie_output": False},
        Vocabularies(LETTERS, LETTERS),
        lambda recipe, words: fresh_masked(recipe, words.target),
    ),
    "classify": (BERT_LIKE, Classes(LETTERS, Labels(("x", "y", "z")), pairs=False), fresh_classifier),
    "classify-images": ({"kind": "vit", "layers": 2, "patch": 3, **SMALL}, GREY, fresh_image_classifier),
}


@pytest.mark.parametrize("task", READING)
@torch.no_grad()
def test_a_reader_of_our_own_has_the_same_logits_there(tmp_path, regard, task):
    model, lexicon, fresh = READING[task]
    task = task.removesuffix(", untied")
    kind = {"kind": task, "context": 9} if task == "masked" else {"kind": task}
    data = {"max_tokens": 9}
    recipe = parse({"task": kind, "data": data, "model": model, "text": {"kind": "characters"}}, "recipe")
    folder = written(tmp_path / "model", recipe, lexicon, fresh(recipe, lexicon))
    ended = regard("export", folder, "--to", "transformers", "--out", tmp_path / "out")
    assert ended.code == 0
    assert ("without a tokeniser" in ended.out) == (task != "classify-images")
    ours = open_any(folder).model.eval()
    if task == "classify-images":
        theirs = transformers.ViTForImageClassification.from_pretrained(tmp_path / "out").eval()
        pixels = torch.randn(2, 1, 6, 9, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(theirs(pixels).logits, ours(pixels), rtol=1e-5, atol=1e-5)
        return
    name = "BertForMaskedLM" if task == "masked" else "BertForSequenceClassification"
    theirs = getattr(transformers, name).from_pretrained(tmp_path / "out").eval()
    tokens = torch.tensor([[2, 4, 9, 11, 3], [2, 7, 3, 0, 0]])  # 11 is the mask, 0 padding
    real, segments = tokens != 0, torch.tensor([[0, 0, 1, 1, 1], [0, 2, 2, 0, 0]])
    found = theirs(input_ids=tokens, attention_mask=real.long(), token_type_ids=segments).logits
    expected = ours(tokens, real, segments)
    if task == "masked":
        found, expected = found[real], expected[real]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert theirs.config.vocab_size == 12


def test_two_vocabularies_of_one_size_are_two_embeddings_there(tmp_path):
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
        (BertOptions(), "model.order: found pre, but BERT.* has post; train such a model"),
        (BertOptions(order="post", positions="rotary"), "model.positions: found rotary, but BERT.* has learned"),
        (BertOptions(order="post", output_bias=False), "model.output_bias: found false, but BERT.* has true"),
        (BertOptions(order="post", head_width=3), "model.head_width: found 3"),
        (VitOptions(order="post"), "model.order: found post, but ViT.* has pre; train such a model"),
        (VitOptions(norm="rms"), "model.norm: found rms, but ViT.* has layer"),
        (VitOptions(attention="linear"), "model.attention: found linear, but ViT.* has full"),
        (VitOptions(activation="geglu"), "model.activation: found geglu, but ViT"),
    ],
)
def test_what_a_family_cannot_have_is_refused_by_name(options, said):
    with pytest.raises(RecipeError, match=said):
        publisher(options).refuse(options)


def test_what_a_family_can_have_is_let_through():
    refuse_gpt2(GptOptions(output_bias="silent", activation="gelu-tanh"))
    refuse_t5(TransformerOptions(**T5_LIKE, head_width=3, output_bias="silent"))
    refuse_marian(TransformerOptions(**MARIAN_LIKE, output_bias=True))
    refuse_bert(BertOptions(order="post", activation="gelu-tanh", dropout=0.3, tie_output=False))
    refuse_vit(VitOptions(activation="silu", norm_epsilon=1e-3))


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


def test_weights_that_their_model_has_no_place_for_are_refused(imported, tmp_path, monkeypatch):
    """A bias that only we have can be trained by an older Regard; it may not be lost in silence."""
    folder = open_any(imported["gpt2"])
    with torch.no_grad():
        folder.model.decoder.output.bias[7] = 1.0
    monkeypatch.setattr(exporting, "open_any", lambda _: folder)
    with pytest.raises(
        ModelFormatError, match=r"'decoder.output.bias' was trained, and the published model has no place"
    ):
        export_transformers(folder.path, tmp_path / "out")
