"""`regard explain`: a heat map for people, everything as JSON, a picture, and one line for what cannot be explained."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from regard.explainer import Asked, load_explainer
from regard.explaining.explanation import Explanation
from regard.explaining.heatmap import svg, terminal
from regard.explaining.view import Which, by_words, view
from regard.run import Request, run

SMALL = (
    "text.kind=characters",
    "data.batch_tokens=256",
    "model.width=8",
    "model.embedding=8",
    "training.validations=1",
    "training.threads=1",
    "decoding.cap=8",
)


@pytest.fixture(scope="module")
def explained(model):
    (found,) = load_explainer(model).explain("abc de", Asked())
    return found


@pytest.fixture(scope="module")
def of_the_lineup(tmp_path_factory, corpus):
    """The folder of a preset that has hardly learned anything."""

    def train(preset):
        out = tmp_path_factory.mktemp("lineup") / preset
        files = {"source": corpus / "train.source", "target": corpus / "train.target"}
        run(Request(**files, preset=preset, out=out, steps=2, settings=SMALL, quiet=True))
        return out

    return train


def test_people_see_texts_map_and_expectations(regard, model, explained):
    said = regard("explain", model, "abc de")
    assert (said.code, said.err) == (0, "")
    seen = view(explained, Which())
    assert said.lines[0] == "source  abc de"
    assert said.lines[1] == f"output  {explained.target.text}"
    assert f"\n{seen.title}: rows look at columns\n" in said.out
    assert terminal(seen.weights, seen.columns, seen.rows) in said.out
    rows = [line for line in said.lines if re.match(r" *\S+  [01]\.\d\d   ", line)]
    assert [float(row.split()[1]) for row in rows] == [round(step.probability, 2) for step in explained.steps]


def test_json_is_the_whole_explanation(regard, model, explained):
    said = regard("explain", model, "abc de", "--json")
    assert Explanation.from_json(said.out) == explained
    few = regard("explain", model, "abc de", "--json", "--alternatives", 1)
    assert [len(step["alternatives"]) for step in json.loads(few.out)["steps"]] == [1] * len(explained.steps)


def test_every_line_of_stdin_is_explained_in_order(regard, model):
    lines = ("abc de", "edc ba", "a")
    said = regard("explain", model, "--json", stdin="".join(f"{line}\n" for line in lines).encode())
    assert [json.loads(line)["source"]["text"] for line in said.lines] == list(lines)
    assert said.lines == [regard("explain", model, line, "--json").lines[0] for line in lines]
    people = regard("explain", model, stdin=b"abc de\na\n")
    assert people.out == regard("explain", model, "abc de").out + "\n\n" + regard("explain", model, "a").out


def test_layer_head_kind_and_words_choose_the_map(regard, model, explained):
    for kind in ("encoder", "decoder", "cross"):
        said = regard("explain", model, "abc de", "--kind", kind, "--layer", 1, "--head", 3)
        seen = view(explained, Which(kind, 1, 3))
        assert f"{kind} attention, layer 1, head 3" in said.out
        assert terminal(seen.weights, seen.columns, seen.rows) in said.out
    words = by_words(explained, view(explained, Which()))
    said = regard("explain", model, "abc de", "--words")
    assert terminal(words.weights, words.columns, words.rows) in said.out
    assert "╭ abc" in said.out


def test_a_picture_holds_the_map(regard, model, explained, tmp_path):
    said = regard("explain", model, "abc de", "--head", 2, "--svg", tmp_path / "map.svg")
    assert said.code == 0
    drawn = (tmp_path / "map.svg").read_text(encoding="utf-8")
    seen = view(explained, Which(head=2))
    assert drawn == svg(seen.weights, seen.columns, seen.rows) + "\n"
    ET.fromstring(drawn)
    both = regard("explain", model, "abc de", "--head", 2, "--svg", tmp_path / "other.svg", "--json")
    assert Explanation.from_json(both.out) == explained
    assert (tmp_path / "other.svg").read_text(encoding="utf-8") == drawn


def test_a_given_output_and_the_n_best_are_explained(regard, model):
    said = regard("explain", model, "ab", "--target", "BA", "--json")
    assert json.loads(said.out)["target"]["text"] == "BA"
    best = [json.loads(line) for line in regard("explain", model, "ab", "--n-best", 3, "--json").lines]
    translated = regard("translate", model, "--n-best", 3, stdin=b"ab\n").lines
    assert [one["target"]["text"] for one in best] == translated
    assert [one["score"] for one in best] == sorted((one["score"] for one in best), reverse=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("",), ("text", "nothing to explain")),
        (("  ",), ("text", "nothing to explain")),
        (("a" * 600,), ("601 tokens", "at most 512", "split")),
        (("ab", "--target", ""), ("target", "nothing to explain")),
        (("ab", "--layer", "7"), ("layer 7", "layers 1;")),
        (("ab", "--head", "9"), ("head 9", "heads 1, 2, 3 and 4")),
        (("ab", "--head", "2", "--json"), ("--head", "--json")),
        (("ab", "--words", "--json"), ("--words", "--json")),
        (("ab", "--svg", "map.png"), ("map.png", ".svg")),
        (("ab", "--svg", "map.svg", "--n-best", "2"), ("--svg", "one map")),
        (("ab", "--target", "AB", "--n-best", "2"), ("--n-best 2", "--target")),
    ],
)
def test_what_cannot_be_explained_is_one_line(regard, model, arguments, words):
    regard("explain", model, *arguments).refused(*words)


def test_lines_of_stdin_that_cannot_be_explained_are_named(regard, model):
    ended = regard("explain", model, "--json", stdin=b"ab\n\ncd\n")
    assert ended.code == 1
    assert "stdin, line 2: text: found nothing" in ended.err
    regard("explain", model, stdin=b"").refused("stdin: found no text")
    regard("explain", model, "--svg", "map.svg", stdin=b"ab\n").refused("--svg", "one TEXT")
    asked = regard("explain", model, "--target", "AB", stdin=b"ab\n")
    assert (asked.code, "TEXT" in asked.err) == (2, True)


def test_a_model_without_attention_says_so_and_still_gives_probabilities(regard, of_the_lineup, tmp_path):
    plain = of_the_lineup("rnn")
    regard("explain", plain, "ab").refused("rnn", "without attention", "JSON")
    regard("explain", plain, "ab", "--svg", tmp_path / "map.svg").refused("without attention")
    assert not list(tmp_path.iterdir())
    found = Explanation.from_json(regard("explain", plain, "ab", "--json").out)
    assert found.attention == ()
    assert found.steps


def test_a_recurrent_model_has_one_layer_and_one_head(regard, of_the_lineup):
    model = of_the_lineup("bidirectional-gru")
    assert "cross attention, layer 1, head 1: rows look at columns" in regard("explain", model, "ab").out
    regard("explain", model, "ab", "--kind", "encoder").refused("kind encoder", "which has cross;")


def test_a_folder_that_is_no_model_is_refused(regard, tmp_path):
    regard("explain", tmp_path / "nowhere", "ab").refused("nowhere", "no such model")
