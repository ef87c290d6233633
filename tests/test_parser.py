"""A parser at work: trained on trees alone, it gives every sentence a tree, and mostly the right one."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import torch
from toy_trees import toy_trees

from regard import run as running
from regard.data.treebank import read_treebank, unlinearise
from regard.decoding.options import SearchOptions
from regard.errors import DataError, DecodingError, ModelFormatError, RecipeError
from regard.evaluation.trees import read_tree, write_tree
from regard.explainer import Asked, load_explainer
from regard.parser import load_parser
from regard.recipe.folder import read_recipe
from regard.run import Request, run

SETTINGS = (
    "model.width=32",
    "model.heads=4",
    "model.feedforward=64",
    "model.encoder_layers=2",
    "model.decoder_layers=1",
    "model.dropout=0.0",
    "loss.smoothing=0.0",
    "data.batch_tokens=700",
    "training.learning_rate=0.01",
    "training.ema=0.9",
    "training.validations=1",
    "training.threads=1",
    "decoding.beam=2",
    "decoding.cap=70",
)
SENTENCE = "the dog that sings sees a cat ."
TREE = (
    "(TOP (S (NP (NP (XX the) (XX dog)) (SBAR (WHNP (XX that)) (S (VP (XX sings))))) "
    "(VP (XX sees) (NP (XX a) (XX cat))) (XX .)))"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place, trees = tmp_path_factory.mktemp("trees"), toy_trees(250, seed=1)
    known = {" ".join(tree.words) for tree in trees}
    fresh = [tree for tree in toy_trees(300, seed=2) if " ".join(tree.words) not in known][:20]
    for name, part in (("train", trees), ("valid", fresh), ("few", trees[:3])):
        (place / f"{name}.trees").write_text("".join(f"{write_tree(tree)}\n" for tree in part), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def request_of(files):
    return Request(
        trees=(files / "train.trees",),
        valid_trees=(files / "valid.trees",),
        out=files / "model",
        steps=120,
        settings=SETTINGS,
        quiet=True,
    )


@pytest.fixture
def short(files, request_of, tmp_path):
    """A run of which nobody asks that it learns anything."""
    settings = (*SETTINGS, "model.width=16", "model.encoder_layers=1", "training.validations=0", "decoding.cap=20")
    few = files / "few.trees"
    return replace(request_of, trees=(few,), valid_trees=(few,), out=tmp_path / "model", steps=1, settings=settings)


@pytest.fixture(scope="module")
def folder(files, request_of):
    run(request_of)
    return files / "model"


@pytest.fixture(scope="module")
def parser(folder):
    return load_parser(folder)


# ---------------------------------------------------------------- trees
def test_a_toy_language_is_learned(folder):
    found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["validation"]
    assert found["f1"] > 95
    assert (found["well_formed"], found["mismatched"], found["sentences"]) == (100, 0, 20)


def test_a_sentence_gets_its_tree(parser):
    assert [write_tree(tree) for tree in parser.parse([SENTENCE])] == [TREE]


SENTENCES = ["sleeps", "зебра 🦓 東京", "( )", "the " * 60, "a\u3000b \t c", "XX (NP )NP </s>", "x" * 300]


@pytest.mark.parametrize("trained", [True, False])
def test_every_sentence_gets_a_tree_over_its_words_whatever_the_weights(folder, trained):
    parser = load_parser(folder)
    if not trained:
        torch.manual_seed(1)
        with torch.no_grad():
            for weight in parser.folder.model.parameters():
                weight.normal_(0, 1)
        parser.model = parser.folder.model
    for sentence, tree in zip(SENTENCES, parser.parse(SENTENCES, SearchOptions(beam=2 - trained)), strict=True):
        assert tree.words == sentence.split()
        written = write_tree(tree)
        assert write_tree(read_tree(written)) == written
        assert (tree.label, set(tree.tags)) == ("TOP", {"XX"})


def test_blank_lines_stay_blank_and_order_is_kept(parser):
    found = parser.parse(["", SENTENCE, "  \t", "a cat sings ."])
    assert [tree and tree.words for tree in found] == [None, SENTENCE.split(), None, ["a", "cat", "sings", "."]]
    assert parser.parse([]) == []


def test_a_sentence_that_no_tree_fits_is_refused(parser):
    assert len(parser.parse(["the " * 67])[0].words) == 67
    with pytest.raises(DecodingError, match="found 68 words in one sentence, expected at most 67"):
        parser.parse([SENTENCE, "the " * 68])
    with pytest.raises(DecodingError, match="tokens in one sentence, expected at most 10000"):
        parser.parse(["x" * 10_001])


def test_numbered_words_are_learned_parsed_explained_and_begun_with(short, tmp_path):
    asked = replace(short, settings=(*short.settings, "task.numbers=3"))
    run(asked)
    parser = load_parser(asked.out)
    assert parser.grammar.numbers == 3
    sentence = "the ( cat ) sees"
    (tree,) = parser.parse([sentence])
    assert (tree.words, set(tree.tags)) == (sentence.split(), {"XX"})
    (found,) = load_explainer(asked.out).explain(sentence, Asked())
    assert found.source.text == "① the ② -LRB- ③ cat ① -RRB- ② sees"
    assert unlinearise(found.target.text.split(), sentence.split()) == tree
    for name, borrowed in (("begun", {"start": asked.out}), ("words", {"vocabulary": asked.out})):
        own = ("training.validations=0",) if name == "begun" else short.settings
        run(replace(short, **borrowed, settings=own, out=tmp_path / name))
        assert load_parser(tmp_path / name).grammar.numbers == 3
        assert read_recipe(tmp_path / name).task.numbers == 3


# ---------------------------------------------------------------- the directory and the command
def test_a_tree_is_explained_as_the_brackets_that_the_parser_wrote(folder, parser):
    looking = load_explainer(folder)
    best, second = looking.explain(SENTENCE, Asked(n_best=2))
    assert unlinearise(best.target.text.split(), SENTENCE.split()) == parser.parse([SENTENCE])[0]
    assert second.score <= best.score
    assert {block.kind for block in best.attention} == {"encoder", "decoder", "cross"}
    (given,) = looking.explain(SENTENCE, Asked(target=best.target.text))
    assert (given.steps, given.score, given.attention) == (best.steps, best.score, best.attention)
    assert looking.explain("the (dog)", Asked())[0].source.text == "① the ② -LRB-dog-RRB-"
    with pytest.raises(DecodingError, match=r"text 'a a .* words, expected at most 67"):
        looking.explain("a " * 68, Asked())


def test_the_card_tells_how_to_use_it_and_how_good_it_is(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["validation"]
    assert "regard parse model < sentences.txt" in card
    assert f"F1 {facts['f1']:.2f} (precision {facts['precision']:.2f}, recall {facts['recall']:.2f})" in card
    assert "250 of 250 trees" in card
    assert "brackets: 5 labels" in card  # S NP VP SBAR WHNP


def test_the_directory_says_that_words_and_brackets_are_apart(folder):
    assert "shared: false" in (folder / "recipe.yaml").read_text(encoding="utf-8")
    names = {path.name for path in folder.iterdir()}
    assert {"source.model", "target.json"} <= names
    assert not any(name.startswith("shared") for name in names)


def test_the_command_writes_a_tree_a_line(folder, regard):
    found = regard("parse", folder, stdin=f"{SENTENCE}\n\n{SENTENCE}\n".encode())
    assert found.lines == [TREE, "", TREE]
    assert regard("parse", folder, stdin=b"") == replace(found, out="")


def test_the_command_draws(folder, regard, tmp_path):
    picture = tmp_path / "trees.svg"
    found = regard("parse", folder, "--form", "text", "--svg", picture, stdin=b"a cat sings .\n\nthe owl sleeps .\n")
    assert found.lines[:4] == ["S─┬─NP─┬─ a", "  │    └─ cat", "  ├─VP─── sings", "  └────── ."]
    assert [line.split()[-1] for line in found.lines[6:10]] == ["the", "owl", "sleeps", "."]
    words = [mark.text for mark in ET.parse(picture).iter("{http://www.w3.org/2000/svg}text") if mark.text.islower()]
    assert words == ["a", "cat", "sings", "the", "owl", "sleeps"]


def test_as_json_each_line_has_its_constituents(folder, regard, tmp_path):
    (tmp_path / "in.txt").write_text("a cat sings .\n\n", encoding="utf-8")
    regard("parse", folder, "--json", "--input", tmp_path / "in.txt", "--output", tmp_path / "out.jsonl")
    one, blank = map(json.loads, (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines())
    spans = {(found["label"], found["start"], found["end"]) for found in one["constituents"]}
    assert spans == {("TOP", 0, 4), ("S", 0, 4), ("NP", 0, 2), ("VP", 2, 3)}
    assert read_tree(one["tree"]).words == one["text"].split()
    assert blank == {"text": "", "tree": None, "constituents": []}


def test_against_a_treebank_it_reports_what_the_card_says(folder, files, regard, tmp_path):
    out = tmp_path / "parses.trees"
    found = json.loads(regard("parse", folder, "--gold", files / "valid.trees", "--json", "--output", out).out)
    facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["validation"]
    assert found.pop("seconds") > 0
    assert found == facts
    gold, parsed = (read_treebank(path) for path in (files / "valid.trees", out))
    assert [tree.tags for tree in gold] == [tree.tags for tree in parsed]
    told = regard("parse", folder, "--gold", files / "valid.trees", "--beam", "1").out
    assert "EVALB's rules" in told
    assert "20 sentences in" in told
    assert "beam 1" in told


# ---------------------------------------------------------------- refusals
def test_a_parser_does_not_translate_and_a_translator_does_not_parse(folder, model, regard):
    regard("translate", folder, stdin=b"x\n").refused(
        "is a model of the task parse, expected one of the task translate", "regard parse"
    )
    regard("parse", model, stdin=b"x\n").refused(
        "task translate", "expected one of the task parse; use it with regard translate"
    )


def test_what_the_command_cannot_do_is_one_line(folder, files, regard, tmp_path):
    gold = ("parse", folder, "--gold", files / "valid.trees")
    regard(*gold, "--input", files / "x").refused("its own sentences are parsed and scored; leave out --input")
    regard(*gold, "--svg", files / "x").refused("leave out --svg")
    (tmp_path / "plain.txt").write_text("no trees\n", encoding="utf-8")
    regard("parse", folder, "--gold", tmp_path / "plain.txt").refused("plain.txt, line 1", "expected (")
    ended = regard("parse", folder, "--svg", tmp_path / "x.svg", stdin=b"\n")
    assert (ended.code, ended.out) == (1, "\n")
    assert "found no sentence to draw" in ended.err
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": True, "target": True}, "--trees: a treebank teaches a parser; leave out --source"),
        ({"text": True}, "--trees: a treebank teaches a parser; leave out --text"),
        ({"trees": ()}, "--valid-trees: given without --trees"),
        ({"settings": ("model.kind=gpt",)}, "model.kind: gpt cannot parse; use transformer or recurrent"),
        ({"settings": ("task.chains=0",)}, "task.chains: Input should be greater than or equal to 1"),
        ({"settings": ("training.stop_on=bleu",)}, "training.stop_on: bleu, but a parser stops on its loss"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_line(tmp_path, request_of, files, changes, said):
    file = files / "train.trees"
    named = {name: (file,) if name == "text" else file if value is True else value for name, value in changes.items()}
    with pytest.raises(RecipeError, match=said):
        run(replace(request_of, out=tmp_path / "model", **named))
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("train", "valid", "cap", "said"),
    [
        ("(S (A (B (C (D (X x))))))", "(S (X z))", 70, r"task.chains: 4, but .* a chain of 5 .*; set task.chains to 5"),
        ("(S (X y))", "(S (X a) (X b) (X c))", 5, r"a sentence has 3 words, but decoding.cap leaves room for 2"),
        ("The cat sleeps.", "(S (X z))", 70, "line 1: found 'The' outside brackets"),
    ],
)
def test_trees_that_cannot_be_found_are_refused(tmp_path, train, valid, cap, said):
    (tmp_path / "a").write_text(train, encoding="utf-8")
    (tmp_path / "b").write_text(valid, encoding="utf-8")
    request = Request(trees=(tmp_path / "a",), valid_trees=(tmp_path / "b",), out=tmp_path / "model", quiet=True)
    with pytest.raises(DataError, match=said):
        run(replace(request, settings=(*SETTINGS, "text.kind=characters", f"decoding.cap={cap}")))
    assert not (tmp_path / "model").exists()


def test_a_vocabulary_without_brackets_is_refused(tmp_path, short, model, folder):
    with pytest.raises(ModelFormatError, match="its target vocabulary has no brackets"):
        run(replace(short, vocabulary=model))
    run(replace(short, vocabulary=folder))
    for name in ("source.model", "target.json"):
        assert (tmp_path / "model" / name).read_bytes() == (folder / name).read_bytes()


# ---------------------------------------------------------------- other models, and going on
def test_an_attention_rnn_parses_too(short):
    settings = ("text.kind=characters", "model.width=16", "model.embedding=8", "training.threads=1", "decoding.cap=20")
    run(replace(short, preset="bidirectional-gru", settings=settings))
    parser = load_parser(short.out)
    assert parser.folder.recipe.model.kind == "recurrent"
    assert parser.folder.recipe.decoding.length_penalty == 0.3
    for sentence, tree in zip(SENTENCES[:3], parser.parse(SENTENCES[:3]), strict=True):
        assert tree.words == sentence.split()


def test_a_resumed_run_ends_as_one_that_was_never_interrupted(tmp_path, short):
    settings = (*short.settings, "model.dropout=0.2", "training.save_every=2", "loss.source_word_dropout=0.1")
    whole = replace(short, out=tmp_path / "whole", steps=4, settings=settings)
    run(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(replace(whole, out=tmp_path / "part"))
    run(Request(resume=tmp_path / "part", quiet=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "part")]
    assert weights[0] == weights[1]
