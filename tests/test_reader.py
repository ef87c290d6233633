"""Encoders at work: trained on a toy language, they fill its holes, sort its texts, and begin where another ended."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_texts import FOOD, SETTINGS, records, sentences, write_records

from regard import run as module
from regard.errors import DataError, DecodingError, ModelFormatError, RecipeError, TrainingError
from regard.reader import load_classifier, load_embedder, load_filler, with_holes
from regard.recipe.folder import WEIGHTS
from regard.run import Request, begin, reopen, run
from regard.text.bytes import Bytes
from regard.text.characters import Characters
from regard.text.learn import learn
from regard.text.options import TextOptions
from regard.training.tensors import read_tensors, weights


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("reading")
    (place / "text.txt").write_text("\n".join(sentences(400, 1)), encoding="utf-8")
    write_records(place / "train.tsv", records(300, 2))
    write_records(place / "valid.tsv", records(40, 3))
    return place


@pytest.fixture(scope="module")
def reader(place):
    settings = (*SETTINGS, "task.context=14", "task.share=0.3", "training.optimiser=muon")
    run(
        Request(text=(place / "text.txt",), masked=True, out=place / "reader", steps=140, settings=settings, quiet=True)
    )
    return place / "reader"


@pytest.fixture(scope="module")
def sorter(place):
    request = Request(labelled=place / "train.tsv", valid_labelled=place / "valid.tsv", out=place / "sorter", steps=50)
    run(replace(request, settings=SETTINGS, quiet=True))
    return place / "sorter"


@pytest.fixture(scope="module")
def filler(reader):
    return load_filler(reader)


# ---------------------------------------------------------------- holes in a text
def test_a_hole_is_one_mask_between_the_tokens_that_stand_there_without_it():
    tokeniser = learn(["der hund und die katze. und der kater!"] * 9, TextOptions(), 1)
    mask, encode = len(tokeniser), tokeniser.encode

    def after(text):
        """The ids of a text that goes on: without the space that `encode` puts before it."""
        return encode("der" + text)[len(encode("der")) :]

    for hole in ("[MASK]", "▢"):
        assert with_holes(tokeniser, f"der {hole} und") == [*encode("der"), mask, *after(" und")]
        assert with_holes(tokeniser, f"der {hole}.") == [*encode("der"), mask, *after(".")]
        assert with_holes(tokeniser, f"{hole} und") == [mask, *after(" und")]
        assert with_holes(tokeniser, f"der {hole}{hole}!") == [*encode("der"), mask, mask, *after("!")]
        assert with_holes(tokeniser, hole) == [mask]
    assert with_holes(tokeniser, "der ▁ kater") == encode("der ▁ kater")  # a text's own ▁ is no hole


def test_a_hole_in_characters_or_bytes_is_one_of_them():
    characters, raw = Characters(list("abc ")), Bytes()
    assert with_holes(characters, "a ▢b") == [*characters.encode("a "), len(characters), *characters.encode("b")]
    assert with_holes(raw, "ä▢b") == [*raw.encode("ä"), len(raw), *raw.encode("b")]


# ---------------------------------------------------------------- filling
@pytest.mark.parametrize("eater", FOOD)
def test_it_fills_in_what_its_language_has_there(filler, eater):
    ((best, *_),) = filler.fill(f"die {eater} frisst [MASK] .")
    assert best.text == FOOD[eater]
    assert best.probability > 0.5


@torch.no_grad()
def test_guesses_are_the_likeliest_tokens_that_can_be_written(filler):
    text, size = "die ▢ frisst [MASK] .", len(filler.tokeniser)
    holes = filler.fill(text, top=10_000)
    tokens = torch.tensor([[2, *with_holes(filler.tokeniser, text), 3]])
    logits = filler.model(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens))[tokens == size]
    assert len(holes) == 2
    for guesses, row in zip(holes, logits, strict=True):
        p = row[4:size].softmax(-1)
        assert [guess.probability for guess in guesses] == pytest.approx(
            p.sort(descending=True).values.tolist(), rel=1e-4
        )
        assert guesses[0].piece == filler.tokeniser.name(4 + int(p.argmax()))


@pytest.mark.parametrize(
    ("text", "said"), [("", "no hole"), ("die katze", "no hole"), ("▢ a" * 9, "read 14 at a time")]
)
def test_a_text_that_cannot_be_filled_is_refused(filler, text, said):
    with pytest.raises(DecodingError, match=said):
        filler.fill(text)


def test_the_commands_that_fill(reader, regard):
    plain = regard("fill", reader, "eine kuh frisst [MASK] .", "--top", "2")
    assert plain.out.startswith("gras 0.")
    assert plain.out.count("\n") == 1
    found = json.loads(regard("fill", reader, "eine kuh ▢ gras .", "--json").out)
    assert found["holes"][0][0]["text"] == "frisst"
    assert found["holes"][0][0]["piece"] == "▁frisst"
    regard("fill", reader, "eine kuh").refused("no hole", "[MASK]")


def test_the_card_says_how_many_are_named(reader):
    card = (reader / "README.md").read_text(encoding="utf-8")
    scores = json.loads((reader / "manifest.json").read_text(encoding="utf-8"))["validation"]
    assert f"{scores['accuracy']:.2f} % of hidden tokens named" in card
    assert "regard fill reader" in card


# ---------------------------------------------------------------- vectors
def test_a_vector_depends_on_its_text_alone_and_order_is_kept(reader):
    embedder = load_embedder(reader)
    texts = ["die katze frisst fisch .", "gras", "eine kuh", ""]
    together = embedder.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        torch.testing.assert_close(embedder.embed([text])[0], vector)
    torch.testing.assert_close(embedder.embed(texts[::-1]), together.flip(0))
    assert together[3].eq(0).all()
    assert not together[:3].eq(0).all(1).any()


@torch.no_grad()
def test_a_vector_is_the_mean_over_the_tokens_of_its_text(reader):
    embedder = load_embedder(reader)
    ids = embedder.folder.tokeniser.encode("jede maus frisst")
    tokens = torch.tensor([[2, *ids, 3]])
    inside = embedder.folder.encoder(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens))
    torch.testing.assert_close(embedder.embed(["jede maus frisst"])[0], inside[0, 1:-1].mean(0))


def test_the_command_writes_vectors_as_lines_or_as_an_array(reader, sorter, regard, tmp_path):
    lines = b"die katze\n\ngras\n"
    text = regard("embed", reader, stdin=lines).lines
    assert regard("embed", reader, "--output", tmp_path / "v.npy", stdin=lines).out == ""
    found = np.load(tmp_path / "v.npy")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.array([json.loads(line) for line in text], dtype=np.float32), rtol=1e-5)
    assert len(regard("embed", sorter, stdin=lines).lines) == 3
    regard("embed", reader, "--output", tmp_path / "w.npy").refused("found no line")


# ---------------------------------------------------------------- sorting
def test_it_sorts_what_it_has_not_seen(sorter, place):
    unseen = records(100, 4)
    found = load_classifier(sorter).classify([text for text, _ in unseen])
    right = sum(decision.label == label for decision, (_, label) in zip(found, unseen, strict=True))
    assert right > 95
    assert all(sum(decision.probabilities.values()) == pytest.approx(1) for decision in found)
    assert all(decision.probability == max(decision.probabilities.values()) for decision in found)
    assert load_classifier(sorter).classify([]) == []


def test_the_command_writes_a_label_for_each_line_and_keeps_blank_ones_blank(sorter, regard):
    found = regard("classify", sorter, stdin=b"rot katze alt\n\nneu zange gut\n")
    assert found.out == "tier\n\nwerkzeug\n"
    label, p = regard("classify", sorter, "--scores", stdin=b"rot katze alt\n").lines[0].split("\t")
    assert label == "tier"
    assert 0.5 < float(p) <= 1
    lines = [json.loads(line) for line in regard("classify", sorter, "--json", stdin=b"zange\n\n").lines]
    assert lines[0]["label"] == "werkzeug"
    assert lines[0]["probabilities"].keys() == {"tier", "werkzeug"}
    assert lines[1]["label"] is None


def test_of_labelled_texts_it_counts_what_is_right(sorter, regard, tmp_path):
    rows = [("hammer rot alt", "werkzeug"), ("kuh rot alt", "tier"), ("maus neu", "werkzeug")]
    file = write_records(tmp_path / "test.tsv", rows)
    found = json.loads(regard("classify", sorter, "--labelled", file, "--json").out)
    assert found["accuracy"] == pytest.approx(200 / 3)
    assert found["labels"] == ["tier", "werkzeug"]
    assert found["confusion"] == [[1, 0], [1, 1]]
    lines = regard("classify", sorter, "--labelled", file).lines
    assert lines[0].startswith("accuracy 66.67 %")
    assert [line.split() for line in lines[-2:]] == [["tier", "1", "0"], ["werkzeug", "1", "1"]]
    other = tmp_path / "test.jsonl"
    other.write_text('{"satz": "kuh rot", "art": "tier"}\n', encoding="utf-8")
    columns = ("--text-column", "satz", "--label-column", "art")
    assert regard("classify", sorter, "--labelled", other, *columns).lines[0].startswith("accuracy 100.00 %")
    write_records(file, [("hammer", "pflanze")])
    regard("classify", sorter, "--labelled", file).refused("found label 'pflanze'", "known are 'tier', 'werkzeug'")


def test_what_cannot_be_sorted_is_refused(sorter):
    classifier = load_classifier(sorter)
    with pytest.raises(DecodingError, match="text 2 is empty"):
        classifier.classify(["katze", " "])
    with pytest.raises(DecodingError, match="found pairs, but this model learned from single texts"):
        classifier.classify(["katze"], ["hund"])


def test_pairs_of_texts_are_learned_and_read_with_a_tab_between_them(tmp_path, regard):
    rows = [("rot alt"[: 3 + 4 * (i % 2)], text, label) for i, (text, label) in enumerate(records(300, 5))]
    file = write_records(tmp_path / "pairs.csv", [], ())
    file.write_text("eins,zwei,art\n" + "".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    columns = {"text_column": "eins", "second_column": "zwei", "label_column": "art"}
    run(Request(labelled=file, **columns, out=tmp_path / "m", steps=50, settings=SETTINGS, quiet=True))
    assert regard("classify", tmp_path / "m", stdin=b"rot\tkatze alt\nrot\tzange\n").lines == ["tier", "werkzeug"]
    assert regard("classify", tmp_path / "m", "--labelled", file).lines[0].startswith(("accuracy 9", "accuracy 100"))
    regard("classify", tmp_path / "m", stdin=b"rot\tkatze\nrot\n").refused("stdin, line 2", "expected two texts")
    classifier = load_classifier(tmp_path / "m")
    with pytest.raises(DecodingError, match="found single texts, but this model learned from pairs"):
        classifier.classify(["rot"])
    with pytest.raises(DecodingError, match="2 texts and 1 second texts"):
        classifier.classify(["rot", "rot"], ["alt"])


def test_long_texts_are_cut_and_the_report_says_how_many(tmp_path, place):
    settings = (*SETTINGS, "data.max_tokens=4", "text.kind=characters")
    run(Request(labelled=place / "train.tsv", out=tmp_path / "m", steps=2, settings=settings, quiet=True))
    notes = json.loads((tmp_path / "m" / "data.json").read_text(encoding="utf-8"))["notes"]
    assert notes[0].startswith("cut after 4 tokens: ")
    assert notes[0] in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- beginning where another ended
@pytest.fixture(scope="module")
def started(reader, place):
    request = Request(labelled=place / "train.tsv", start=reader, out=place / "started", steps=20, quiet=True)
    return replace(request, settings=("training.learning_rate=0.003", "training.threads=1"))


def encoder_of(tensors):
    return {name: tensor for name, tensor in tensors.items() if name.startswith("encoder.")}


def test_a_start_is_exactly_the_encoder_and_the_vocabulary_of_the_other(started, reader, tmp_path):
    folder, prepared = begin(replace(started, out=tmp_path / "m"))
    ours, theirs = weights(prepared.model), read_tensors(reader / WEIGHTS)
    assert encoder_of(ours).keys() == encoder_of(theirs).keys()
    for name, tensor in encoder_of(theirs).items():
        assert torch.equal(ours[name], tensor), name
    assert ours.keys() - encoder_of(ours).keys() == {
        "pooler.dense.weight",
        "pooler.dense.bias",
        "output.weight",
        "output.bias",
    }
    assert (folder / "shared.model").read_bytes() == (reader / "shared.model").read_bytes()
    note = json.loads((folder / "data.json").read_text(encoding="utf-8"))["start"]
    assert note["model"] == str(reader)
    assert prepared.recipe.model.width == 32


def test_a_run_killed_before_its_first_checkpoint_begins_with_the_same_weights_again(started, tmp_path):
    folder, prepared = begin(replace(started, out=tmp_path / "m"))
    again = reopen(folder)[1]
    for name, tensor in weights(prepared.model).items():
        assert torch.equal(weights(again.model)[name], tensor), name
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    data["start"]["weights"] = "0" * 64
    (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(TrainingError, match="changed since this run began with it"):
        reopen(folder)


def test_a_resumed_run_ends_as_one_that_was_never_interrupted(started, tmp_path):
    settings = (*started.settings, "training.save_every=5", "model.dropout=0.2", "loss.source_word_dropout=0.2")
    whole = replace(started, out=tmp_path / "whole", steps=10, settings=settings)
    run(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(replace(whole, out=tmp_path / "part"))
    run(Request(resume=tmp_path / "part", quiet=True))
    assert (tmp_path / "whole" / WEIGHTS).read_bytes() == (tmp_path / "part" / WEIGHTS).read_bytes()


def test_a_masked_model_can_begin_with_a_classifier(sorter, place, tmp_path):
    request = Request(text=(place / "text.txt",), masked=True, start=sorter, out=tmp_path / "m", quiet=True)
    _, prepared = begin(replace(request, settings=("task.context=8",)))
    for name, tensor in encoder_of(read_tensors(sorter / WEIGHTS)).items():
        assert torch.equal(weights(prepared.model)[name], tensor), name


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": ("model.width=16",)}, "model.width: 16, but the model in .* has 32; leave it out"),
        ({"settings": ("model.positions=alibi",)}, "model.positions: alibi, but the model in .* has rotary"),
        ({"settings": ("text.kind=bytes",)}, "text.kind: bytes, but the vocabulary"),
        ({"vocabulary": "reader"}, "brings its model and its vocabulary; leave out --vocabulary"),
    ],
)
def test_another_encoder_or_vocabulary_than_that_of_the_start_is_refused_by_name(
    started, reader, tmp_path, changes, said
):
    changes = {name: reader if value == "reader" else value for name, value in changes.items()}
    with pytest.raises(RecipeError, match=said):
        run(replace(started, out=tmp_path / "m", **changes))
    assert not (tmp_path / "m").exists()


# ---------------------------------------------------------------- what does not go together
def test_models_of_other_tasks_are_refused_with_the_command_that_uses_them(reader, sorter, model, regard):
    for load, folder, said in (
        (load_filler, sorter, "of the task classify, expected one of the task masked; use it with regard classify"),
        (load_classifier, reader, "use it with regard fill"),
        (load_embedder, model, "use it with regard translate"),
    ):
        with pytest.raises(ModelFormatError, match=said):
            load(folder)
    regard("translate", reader, stdin=b"x\n").refused("is a model of the task masked", "use it with regard fill")
    regard("train", "--labelled", "x.tsv", "--start", model, "--out", "y").refused(
        "expected one of the task masked or classify to begin with"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"masked": True}, "--masked: hides tokens of plain text"),
        ({"valid_labelled": "train.tsv"}, "--valid-labelled: given without --labelled"),
        ({"label_column": "x"}, "--label-column: given without --labelled"),
        (
            {"labelled": "train.tsv", "source": "train.tsv", "target": "train.tsv"},
            "teach a classifier; leave out --source",
        ),
        ({"labelled": "train.tsv", "settings": ("model.kind=gpt",)}, "model.kind: gpt cannot classify; use bert"),
        ({"labelled": "train.tsv", "settings": ("text.shared=false",)}, "task classify has one vocabulary"),
        (
            {"labelled": "train.tsv", "settings": ("loss.target_word_dropout=0.1",)},
            "has no meaning for the task classify",
        ),
        ({"labelled": "train.tsv", "settings": ("data.max_tokens=2",)}, "leaves no room between start and end"),
        ({"labelled": "train.tsv", "second_column": "b", "settings": ("model.segments=1",)}, "no column 'b'"),
        (
            {"labelled": "train.tsv", "settings": ("model.positions=learned", "model.max_length=9")},
            "9 learned positions, but data.max_tokens asks for 256",
        ),
        ({"text": "train.tsv", "masked": True, "settings": ("loss.rdrop=5",)}, "loss.rdrop: 5 has no meaning"),
        (
            {"text": "train.tsv", "masked": True, "settings": ("model.positions=learned", "model.max_length=9")},
            "task.context asks for 128",
        ),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_line(place, tmp_path, options, said):
    files = ("labelled", "valid_labelled", "source", "target")
    named = {name: place / value if name in files else value for name, value in options.items()}
    if "text" in named:
        named["text"] = (place / named["text"],)
    with pytest.raises((RecipeError, DataError), match=said):
        run(Request(out=tmp_path / "m", quiet=True, **named))
    assert not (tmp_path / "m").exists()


def test_pairs_need_two_segments(tmp_path):
    file = write_records(tmp_path / "pairs.tsv", [("a", "b", "x"), ("c", "d", "y")], ("text", "other", "label"))
    settings = ("model.segments=1", "data.valid_size=1")
    request = Request(labelled=file, second_column="other", out=tmp_path / "m", settings=settings, quiet=True)
    with pytest.raises(RecipeError, match=r"model\.segments: 1"):
        run(request)


def test_a_label_that_only_the_validation_has_is_refused(place, tmp_path):
    other = write_records(tmp_path / "valid.tsv", [("rose", "pflanze")])
    with pytest.raises(DataError, match=r"valid\.tsv: found label 'pflanze', which training does not have"):
        run(Request(labelled=place / "train.tsv", valid_labelled=other, out=tmp_path / "m", quiet=True))
