"""A published folder becomes a model directory that says and scores what transformers says, or one line."""

import itertools
import json
import shutil

import pytest
import torch
import yaml
from published_folders import CLASSES, SEARCH, TEXTS, opened, write_checkpoint
from safetensors.torch import load_file, save_file

from regard.data.pairs import Pair
from regard.decoding.options import SamplingOptions
from regard.engine import load
from regard.errors import ModelFormatError, RecipeError
from regard.files import check_manifest
from regard.generator import load_generator, readable
from regard.published import checkpoint
from regard.published.families import FAMILIES
from regard.published.importing import import_checkpoint
from regard.published.vocabulary import SILENT
from regard.recipe.folder import read_model
from regard.recipe.recipe import parse
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.text.special import BOS, EOS, PAD, UNK

TRANSLATORS = ["t5", "marian"]
WRITERS = ["gpt2", *TRANSLATORS]
every_family = pytest.mark.parametrize("family", CLASSES)  # BERT under either head
every_translator = pytest.mark.parametrize("family", TRANSLATORS)


def test_every_family_has_an_example():
    assert {name.partition("-")[0] for name in CLASSES} == set(FAMILIES) == set(checkpoint.FAMILIES)


# ---------------------------------------------------------------- the same answers
def greedy(theirs, family, ids, limit):
    """Their greedy search without what ours never lets out: the unknown word, and what starts a text."""
    never = [] if family == "gpt2" else [theirs.tokeniser.unk_token_id, theirs.tokeniser.pad_token_id]
    options = {"do_sample": False, "num_beams": 1, "length_penalty": 1.0, "use_cache": False}
    return theirs.write(ids, max_new_tokens=limit, suppress_tokens=never or None, max_length=None, **options)


@every_translator
def test_an_imported_translator_writes_what_transformers_writes(published, imported, family):
    engine, theirs = load(imported[family]), opened(published[family], family)
    search = engine.search.model_copy(update={"beam": 1, "n_best": 1})
    expected = [greedy(theirs, family, theirs.ids(text), search.cap) for text in TEXTS]
    found = engine.translate(TEXTS, search)
    target, order = engine.vocabularies.target, engine.vocabularies.target.order
    assert [one.text for one in found] == [target.decode([order.index(id) for id in ids]) for ids in expected]
    assert engine.write(TEXTS, search) == [one.text for one in found]


@every_translator
@torch.no_grad()
def test_the_score_of_a_pair_is_theirs(published, imported, family):
    engine, theirs = load(imported[family]), opened(published[family], family)
    pairs = [Pair(one, other) for one, other in itertools.pairwise(TEXTS)]
    for pair, found in zip(pairs, engine.score(pairs), strict=True):
        labels = theirs.tokeniser(text_target=pair.target, return_tensors="pt").input_ids
        loss = theirs.model(**theirs.tokeniser(pair.source, return_tensors="pt"), labels=labels).loss
        assert found.tokens == labels.numel()
        assert found.log_probability == pytest.approx(-float(loss) * labels.numel(), rel=1e-5)
    one, other = engine.score([Pair(text, TEXTS[2]) for text in TEXTS[:2]])
    assert abs(one.log_probability - other.log_probability) > 0.01  # the source has an effect


@every_translator
def test_search_is_as_the_checkpoint_asks_for(imported, family):
    search = read_model(imported[family]).recipe.decoding
    assert (search.beam, search.length_penalty) == (SEARCH["num_beams"], SEARCH["length_penalty"])
    assert search.max_length(1) == search.max_length(100) == SEARCH["max_length"] - 1  # they count the start token


def continued(generator, prompt, theirs):
    """The text of their ids after a prompt, as it is streamed: random weights write bytes that make no characters."""
    tokeniser = generator.tokeniser
    before = [EOS, *tokeniser.encode(prompt)][-1]
    return "".join(readable(tokeniser, before, [tokeniser.order.index(id) for id in theirs]))


def test_an_imported_gpt2_goes_on_as_transformers_does(published, imported):
    generator, theirs = load_generator(imported["gpt2"]), opened(published["gpt2"], "gpt2")
    for prompt in ["", *TEXTS]:
        # A document begins after the end of the one before.
        expected = greedy(theirs, "gpt2", [theirs.tokeniser.eos_token_id, *theirs.ids(prompt)], 12)
        found = "".join(generator.generate(prompt, SamplingOptions(top_k=1), limit=12, seed=1))
        assert found == continued(generator, prompt, expected)


@torch.no_grad()
def test_the_score_of_a_text_is_that_of_gpt2(published, imported):
    generator, theirs = load_generator(imported["gpt2"]), opened(published["gpt2"], "gpt2")
    end = theirs.tokeniser.eos_token_id
    for text in TEXTS:
        ids = torch.tensor([[end, *theirs.ids(text), end]])
        found = generator.score(text)
        assert found.tokens == ids.shape[1] - 1
        assert found.log_probability == pytest.approx(
            -float(theirs.model(ids, labels=ids).loss) * found.tokens, rel=1e-5
        )


def test_what_only_we_have_is_never_said_and_never_trained(imported):
    for family in WRITERS:
        folder = read_model(imported[family], "language-model" if family == "gpt2" else "translate")
        bias, order = folder.model.decoder.output.bias, folder.vocabularies.target.order
        fillers = [id for id, theirs in enumerate(order) if theirs == -1]
        assert fillers == ([PAD, UNK, BOS] if family == "gpt2" else [PAD])
        assert bias[fillers].tolist() == [SILENT] * len(fillers)
        assert torch.zeros(2).index_fill(0, torch.tensor([0]), SILENT).softmax(0)[0] == 0  # not even the smallest float
        assert bias.requires_grad == (family == "marian")  # the others have no such bias: it could not go back


def test_a_marian_has_one_embedding_and_two_tokenisers(imported):
    folder = read_model(imported["marian"])
    assert sorted(path.name for path in imported["marian"].glob("*.spm")) == ["source.spm", "target.spm"]
    assert folder.model.encoder.entrance.embedding.table is folder.model.decoder.entrance.embedding.table
    assert folder.vocabularies.source.encode(">>fra<<") != folder.vocabularies.target.encode(">>fra<<")


@pytest.mark.parametrize(
    ("family", "chosen"),
    [
        ("gpt2", {"tie_word_embeddings": False, "activation_function": "relu"}),
        ("t5", {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu", "num_decoder_layers": 1}),
        ("marian", {"share_encoder_decoder_embeddings": False, "scale_embedding": False}),
    ],
)
def test_other_shapes_of_a_family_write_what_transformers_writes(tmp_path, family, chosen):
    folder = write_checkpoint(tmp_path / family, family, **chosen)
    import_checkpoint(folder, tmp_path / "out", convert=False, say=lambda _: None)
    theirs = opened(folder, family)
    if family == "gpt2":
        generator, text = load_generator(tmp_path / "out"), TEXTS[0]
        expected = greedy(theirs, family, [theirs.tokeniser.eos_token_id, *theirs.ids(text)], 8)
        found = "".join(generator.generate(text, SamplingOptions(top_k=1), limit=8, seed=1))
        assert found == continued(generator, text, expected)
        return
    engine = load(tmp_path / "out")
    search = engine.search.model_copy(update={"beam": 1, "cap": 8, "max_extra": 8})
    target = engine.vocabularies.target
    expected = [greedy(theirs, family, theirs.ids(text), 8) for text in TEXTS]
    assert engine.write(TEXTS, search) == [target.decode([target.order.index(id) for id in ids]) for ids in expected]


# ---------------------------------------------------------------- commands
@every_translator
def test_commands_use_an_imported_translator(imported, regard, tmp_path, family):
    ended = regard("translate", imported[family], stdin="\n".join(TEXTS).encode())
    assert (ended.code, ended.lines) == (0, load(imported[family]).write(TEXTS))
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in TEXTS))
    files = ("--source", tmp_path / "texts", "--target", tmp_path / "texts", "--json")
    assert json.loads(regard("evaluate", imported[family], *files).out)["sentences"] == len(TEXTS)


@every_family
def test_inspect_shows_an_imported_model(imported, regard, family):
    found = json.loads(regard("inspect", imported[family], "--json").out)
    if family == "vit":
        assert found["images"] == {"rows": 8, "columns": 12, "channels": 3, "labels": 4}
    else:
        assert found["vocabulary"]["kind"] == "published"
    assert found["recipe"]["data"]["corpora"] == []
    assert f"{found['parameters']:,} parameters" in regard("inspect", imported[family]).out


def test_the_command_says_what_it_made_and_how_it_is_used(published, regard, tmp_path):
    ended = regard("import", published["gpt2"], "--out", tmp_path / "out")
    size = sum(p.numel() for p in opened(published["gpt2"], "gpt2").model.parameters())
    # Three rows more, for special ids that they do not have.
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        f"{tmp_path / 'out'}: gpt2, {size + 3 * 12:,} parameters, from {published['gpt2']}; use it with regard generate"
    ]
    written = regard("generate", tmp_path / "out", "--prompt", "the cat", "--tokens", 5, "--top-k", 1)
    assert written.out.startswith("the cat")


def test_the_card_and_the_manifest_say_where_it_came_from(published, imported):
    card = (imported["t5"] / "README.md").read_text(encoding="utf-8")
    told = check_manifest(imported["t5"])["imported"]
    assert (told["family"], told["from"], sorted(told["files"])) == ("t5", "t5", ["config.json", "model.safetensors"])
    assert all(digest in card for digest in told["files"].values())
    assert "regard translate t5" in card
    assert str(published["t5"].parent) not in card


def test_a_long_wait_is_announced(published, tmp_path):
    said = []
    import_checkpoint(published["gpt2"], tmp_path / "out", convert=False, say=said.append)
    assert said[0].startswith("reading gpt2: 0.")


def test_a_pickle_is_converted_only_when_asked(published, imported, regard, tmp_path):
    folder = shutil.copytree(published["t5"], tmp_path / "old")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    regard("import", folder, "--out", tmp_path / "out").refused("a pickle", "regard import --convert-pickle")
    assert not (tmp_path / "out").exists()
    assert regard("import", folder, "--out", tmp_path / "out", "--convert-pickle").code == 0
    one, other = (load_file(path / "model.safetensors") for path in (imported["t5"], tmp_path / "out"))
    assert all(torch.equal(one[name], other[name]) for name in one | other)


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_a_pickle_of_an_encoder_is_refused_as_well(published, regard, tmp_path, family):
    folder = shutil.copytree(published[family], tmp_path / "old")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    regard("import", folder, "--out", tmp_path / "out").refused("a pickle", "regard import --convert-pickle")


def test_pickles_in_parts_make_one_model_and_each_holds_what_the_index_says(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "convert_pickle", lambda source, target: shutil.copy(source, target))
    one, two = (f"pytorch_model-0000{part}-of-00002.bin" for part in (1, 2))
    save_file({"a": torch.ones(2), "b": torch.ones(2)}, tmp_path / one)
    save_file({"c": torch.ones(2)}, tmp_path / two)

    def indexed(**places):
        (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
        return checkpoint.read_pickles(tmp_path)

    assert sorted(indexed(a=one, b=one, c=two)) == ["a", "b", "c"]
    with pytest.raises(ModelFormatError, match=r"00002.bin: no tensor 'd', by what pytorch_model.bin.index.json says"):
        indexed(a=one, b=one, c=two, d=two)
    with pytest.raises(ModelFormatError, match="expected the plain name of a bin file"):
        indexed(a=f"../{one}")


def test_a_part_that_was_not_downloaded_is_named(published, regard, tmp_path):
    folder = shutil.copytree(published["vit"], tmp_path / "old")
    (folder / "model.safetensors").unlink()
    places = {"weight_map": {"vit.embeddings.cls_token": "pytorch_model-00001-of-00002.bin"}}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(places))
    ended = regard("import", folder, "--out", tmp_path / "out", "--convert-pickle")
    ended.refused("pytorch_model-00001-of-00002.bin: no such file")


# ---------------------------------------------------------------- what is refused
def changed(folder, place, **config):
    """A copy of a checkpoint with other values in its config."""
    copy = shutil.copytree(folder, place)
    content = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(content | config))
    return copy


@pytest.mark.parametrize(
    ("family", "config", "said"),
    [
        ("gpt2", {"n_positions": 10**30}, "asks for a max_length of 1,000,000"),
        ("gpt2", {"vocab_size": 9_999_999}, "vocab_size: found 9,999,999, but no tensor has more than"),
        ("gpt2", {"n_inner": 10**6}, "describes a model of 5"),
        ("t5", {"d_ff": 10**12}, "asks for a feedforward of 1,000,000,000,000, but the weights hold"),
        ("t5", {"num_layers": 10**4}, "num_layers: found 10000, expected less than or equal to 1000"),
        ("t5", {"num_layers": 9, "d_model": 30_000}, "describes a model of"),
        ("marian", {"max_position_embeddings": 10**9}, "asks for a max_length of 1,000,000,000"),
        ("marian", {"max_position_embeddings": 10**6}, "describes a model of"),
        ("marian", {"encoder_ffn_dim": 21, "decoder_ffn_dim": 21}, "fc1.weight' is (20, 12), expected (21, 12)"),
        ("gpt2", {"n_layer": 3}, "no tensor 'transformer.h.2.attn.c_attn.bias'"),
        ("gpt2", {"n_layer": 1}, "unknown tensor 'transformer.h.1.attn.c_attn.bias'"),
        ("gpt2", {"eos_token_id": 5}, "the id of EOS is 5, but the tokeniser has it at 0"),
        ("t5", {"eos_token_id": 7}, "the id of </s> is 7, but the tokeniser has it at 1"),
        ("gpt2", {"model_type": "llama"}, "model_type: found llama, expected one of gpt2"),
        ("gpt2", {"model_type": "vit"}, "the weights are those of gpt2, but config.json is that of vit; copy"),
        ("gpt2", {"model_type": "t5"}, "the weights are those of gpt2, but config.json is that of t5; copy"),
        ("t5", {"model_type": "marian"}, "the weights are those of t5, but config.json is that of marian"),
        ("marian", {"model_type": "bert"}, "the weights are those of marian, but config.json is that of bert"),
        ("bert", {"vocab_size": 9_999_999}, "vocab_size: found 9,999,999, but no tensor has more than"),
        ("bert", {"max_position_embeddings": 10**9}, "asks for a max_length of 1,000,000,000"),
        ("bert", {"intermediate_size": 10**6}, "describes a model of"),
        ("bert", {"intermediate_size": 21}, "intermediate.dense.weight' is (20, 12), expected (21, 12)"),
        ("bert", {"num_hidden_layers": 3}, "no tensor 'bert.encoder.layer.2.attention.output.LayerNorm.bias'"),
        ("bert", {"num_hidden_layers": 1}, "unknown tensor 'bert.encoder.layer.1."),
        ("bert", {"pad_token_id": 3}, "the id of PAD is 3, but the tokeniser has it at 0"),
        ("bert", {"is_decoder": True}, "is_decoder: found True, expected False"),
        ("bert", {"model_type": "vit"}, "the weights are those of bert, but config.json is that of vit"),
        ("bert-classes", {"id2label": {"0": "a", "1": "b"}}, "'classifier.weight' is (3, 12), expected (2, 12)"),
        ("bert-classes", {"id2label": {"0": "a"}}, "id2label: found 1 class, expected two or more"),
        ("bert-classes", {"problem_type": "multi_label_classification"}, "problem_type: found"),
        ("vit", {"image_size": 4 * 10**9}, "image_size: found 4,000,000,000 × 4,000,000,000, but no tensor holds"),
        ("vit", {"patch_size": 10**9, "image_size": 10**9}, "asks for a patch of 1,000,000,000"),
        ("vit", {"image_size": [8, 16]}, "preprocessor_config.json: size: found"),
        ("vit", {"num_channels": 2}, "num_channels: found 2, expected 1 (grey) or 3 (colour)"),
        ("vit", {"num_hidden_layers": 3}, "no tensor 'vit.encoder.layer.2."),
        ("vit", {"num_hidden_layers": 1}, "unknown tensor 'vit.encoder.layer.1."),
        ("vit", {"id2label": {"0": "a", "1": "b"}}, "'classifier.weight' is (4, 12), expected (2, 12)"),
        ("vit", {"model_type": "bert"}, "the weights are those of vit, but config.json is that of bert"),
    ],
)
def test_a_config_that_does_not_fit_is_refused_in_one_line(published, regard, tmp_path, family, config, said):
    folder = changed(published[family], tmp_path / "bad", **config)
    regard("import", folder, "--out", tmp_path / "out").refused(said)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("vocab.json", "{", "vocab.json: not"),
        ("vocab.json", '{"a": 0}', "vocab.json: no '<|endoftext|>' among its 1 names"),
        ("merges.txt", "a b c\n", "merges.txt: merge 1"),
        ("model.safetensors", "nothing", "not readable as safetensors"),
        ("config.json", "[]", "no named values in it"),
    ],
)
def test_a_damaged_file_is_refused_by_name(published, regard, tmp_path, file, content, said):
    folder = shutil.copytree(published["gpt2"], tmp_path / "bad")
    (folder / file).write_text(content)
    regard("import", folder, "--out", tmp_path / "out").refused(said)
    assert not (tmp_path / "out").exists()


def test_settings_of_search_that_cannot_be_are_refused(published, regard, tmp_path):
    folder = shutil.copytree(published["t5"], tmp_path / "bad")
    (folder / "generation_config.json").write_text('{"num_beams": 1000}')
    regard("import", folder, "--out", tmp_path / "out").refused("generation_config.json: num_beams: found 1000")


@pytest.mark.parametrize("family", ["marian", "bert", "bert-classes", "vit"])
def test_a_tensor_of_another_model_and_a_missing_one_are_refused_by_name(published, regard, tmp_path, family):
    folder = shutil.copytree(published[family], tmp_path / "bad")
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"extra.weight": torch.ones(2)}, folder / "model.safetensors")
    regard("import", folder, "--out", tmp_path / "out").refused("unknown tensor 'extra.weight'")
    first = min(name for name in tensors if "encoder" in name)
    save_file({name: tensor for name, tensor in tensors.items() if name != first}, folder / "model.safetensors")
    regard("import", folder, "--out", tmp_path / "out").refused(f"no tensor '{first}'")
    assert not (tmp_path / "out").exists()


def test_what_is_there_already_is_left_alone(published, imported, regard):
    before = check_manifest(imported["t5"])
    regard("import", published["t5"], "--out", imported["t5"]).refused("already exists")
    assert check_manifest(imported["t5"]) == before


def test_a_folder_that_is_not_there_is_said_to_be_none(regard, tmp_path):
    regard("import", tmp_path / "none", "--out", tmp_path / "out").refused("no such folder")


# ---------------------------------------------------------------- recipes of published models
def test_a_published_vocabulary_is_not_learned():
    with pytest.raises(RecipeError, match=r"text.kind: published is a vocabulary that came with its weights"):
        learn(["a b"], TextOptions(kind="published"), 1)


def test_a_language_model_starts_documents_as_its_recipe_says():
    tree = {"data": {}, "task": {"kind": "language-model"}}
    assert parse(tree, "recipe").task.start_id == BOS
    assert parse({**tree, "task": {"kind": "language-model", "start": "eos"}}, "recipe").task.start_id == EOS


def test_a_recipe_of_an_imported_model_is_a_recipe(imported):
    for folder in imported.values():
        assert parse(yaml.safe_load((folder / "recipe.yaml").read_text()), "recipe.yaml")
