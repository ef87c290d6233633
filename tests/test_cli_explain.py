"""`regard explain`: a heat map for people, everything as JSON, a picture, and one line for what cannot be explained."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from regard.explainer import Asked, load_explainer
from regard.explaining.explain_page import explanation_page
from regard.explaining.explanation import Explanation
from regard.explaining.heatmap import svg, terminal
from regard.explaining.heatmap_png import png
from regard.explaining.view import Which, by_words, saliency_view, view
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
    said = regard("explain", model, "abc de", "--head", 2, "--out", tmp_path / "map.svg")
    assert (said.code, said.out, said.err) == (0, "", "")
    drawn = (tmp_path / "map.svg").read_text(encoding="utf-8")
    seen = view(explained, Which(head=2))
    assert drawn == svg(seen.weights, seen.columns, seen.rows) + "\n"
    ET.fromstring(drawn)
    assert regard("explain", model, "abc de", "--head", 2, "--out", tmp_path / "MAP.PNG").code == 0
    assert (tmp_path / "MAP.PNG").read_bytes() == png(seen.weights, seen.columns, seen.rows)


def test_a_file_of_json_is_what_json_says(regard, model, explained, tmp_path):
    assert regard("explain", model, "abc de", "--out", tmp_path / "one.json").out == ""
    assert Explanation.from_json((tmp_path / "one.json").read_text(encoding="utf-8")) == explained


FULL = ("--map", "rise", "--masks", 300, "--check")  # what a page has by itself


def test_a_page_holds_every_line_and_what_another_model_makes_of_it(regard, model, of_the_lineup, tmp_path):
    other, out = of_the_lineup("rnn"), tmp_path / "page.html"
    said = regard("explain", model, "--beside", other, "--out", out, stdin=b"abc de\nedc\nedc\n")
    assert (said.code, said.out, said.err) == (0, "", "")
    lines = ("abc de", "edc", "edc")
    mine, theirs = (
        [regard("explain", one, line, "--json", *FULL).lines[0] for line in lines] for one in (model, other)
    )
    both = [[Explanation.from_json(line) for line in several] for several in (mine, theirs)]
    assert out.read_text(encoding="utf-8") == explanation_page(*both)
    best = regard("explain", model, "abc de", "--n-best", 2, "--out", out)
    assert best.code == 0
    assert out.read_text(encoding="utf-8").count('"format":1') == 2


def test_a_page_has_rise_and_a_check_unless_it_is_plain(regard, model, explained, tmp_path):
    def page(*options):
        said = regard("explain", model, "abc de", "--target", "EEEE EEEE EEEE", *options, "--out", tmp_path / "a.html")
        assert said.code == 0
        return (tmp_path / "a.html").read_text(encoding="utf-8")

    def of(*options):
        said = regard("explain", model, "abc de", "--target", "EEEE EEEE EEEE", *options, "--json")
        return explanation_page([Explanation.from_json(said.out)], [])

    assert "says 'EEEE' 3 times in a row" in page()
    assert page() == of(*FULL)
    assert page("--masks", 40) == of("--map", "rise", "--masks", 40, "--check")
    assert page("--map", "rollout") == of("--map", "rollout", "--check")
    assert page("--plain") == of()
    assert page("--plain", "--map", "rollout") == of("--map", "rollout")
    assert page("--plain", "--check") == of("--check")


def test_a_given_output_and_the_n_best_are_explained(regard, model):
    said = regard("explain", model, "ab", "--target", "BA", "--json")
    assert json.loads(said.out)["target"]["text"] == "BA"
    best = [json.loads(line) for line in regard("explain", model, "ab", "--n-best", 3, "--json").lines]
    translated = regard("translate", model, "--n-best", 3, stdin=b"ab\n").lines
    assert [one["target"]["text"] for one in best] == translated
    assert [one["score"] for one in best] == sorted((one["score"] for one in best), reverse=True)


# ---------------------------------------------------------------- what the output depends on
def test_maps_are_drawn_in_the_order_asked_and_judged_beside_chance(regard, model):
    asked = ("explain", model, "abc de", "--map", "rollout", "--map", "rise", "--masks", 60, "--faithful")
    said, found = regard(*asked), Explanation.from_json(regard(*asked, "--json").out)
    assert [one.method for one in found.saliency] == ["rollout", "rise"]
    maps = [saliency_view(found, one, None) for one in found.saliency]
    drawn = [said.out.index(terminal(one.weights, one.columns, one.rows)) for one in maps]
    assert drawn == sorted(drawn)
    rollout, rise = found.saliency
    table = [line.split() for line in said.lines if re.match(r"(rollout|rise|random) +\d", line)]
    assert table == [
        [name, f"{one.deletion:.3f}", f"{one.insertion:.3f}"]
        for name, one in (("rollout", rollout.faithful), ("rise", rise.faithful), ("random", rise.chance))
    ]


def test_judged_without_a_name_are_all_and_the_map_of_attention_stays(regard, model, explained):
    said = regard("explain", model, "abc de", "--faithful", "--masks", 60)
    seen = view(explained, Which())
    assert f"{seen.title}: rows look at columns" in said.out
    names = [line.split()[0] for line in said.lines if re.match(r"[a-z]+ +\d\.\d+ +\d\.\d+$", line)]
    assert names == ["rise", "attention", "rollout", "gradient", "random"]


def test_what_had_been_written_before_and_words_are_drawn_too(regard, model):
    asked = ("explain", model, "abc de", "--map", "rollout")
    (found,) = Explanation.from_json(regard(*asked, "--json").out).saliency
    whole = Explanation.from_json(regard(*asked, "--json").out)
    before = saliency_view(whole, found, "decoder")
    assert terminal(before.weights, before.columns, before.rows) in regard(*asked, "--kind", "decoder").out
    words = by_words(whole, saliency_view(whole, found, None))
    assert terminal(words.weights, words.columns, words.rows) in regard(*asked, "--words").out


def test_a_check_names_what_is_wrong(regard, model):
    odd = regard("explain", model, "abc de", "--target", "EEEE EEEE EEEE", "--check")
    assert "check   repetition: says 'EEEE' 3 times in a row" in odd.lines
    found = Explanation.from_json(
        regard("explain", model, "abc de", "--target", "EEEE EEEE EEEE", "--check", "--json").out
    )
    assert "repetition" in [one.kind for one in found.concerns]
    assert found.saliency == ()
    measured = f"check   dependence on the source {found.dependence:.2f}, confidence {found.confidence:.2f}"
    assert measured in odd.lines
    assert "check" not in regard("explain", model, "abc de").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ab", "--masks", "50"), ("--masks 50", "--map rise")),
        (("ab", "--plain", "--masks", "50", "--out", "a.html"), ("--masks 50", "--map rise")),
        (("ab", "--plain"), ("--plain", "--out FILE.html")),
        (("ab", "--plain", "--out", "a.svg"), ("--plain", "--out FILE.html")),
        (("ab", "--map", "rollout", "--masks", "50"), ("--masks 50", "--map rise")),
        (("ab", "--map", "rollout", "--layer", "1"), ("--layer", "--map")),
        (("ab", "--map", "rollout", "--kind", "encoder"), ("--kind encoder", "cross or decoder")),
        (("ab", "--map", "attention", "--kind", "decoder"), ("kind decoder", "map attention")),
        (("ab", "--map", "rollout", "--map", "rise", "--out", "map.svg"), ("--out", "one --map")),
        (("",), ("text", "nothing to explain")),
        (("  ",), ("text", "nothing to explain")),
        (("a" * 600,), ("601 tokens", "at most 512", "split")),
        (("ab", "--target", ""), ("target", "nothing to explain")),
        (("ab", "--layer", "7"), ("layer 7", "layers 1;")),
        (("ab", "--head", "9"), ("head 9", "heads 1, 2, 3 and 4")),
        (("ab", "--head", "2", "--json"), ("--head", "--json")),
        (("ab", "--words", "--json"), ("--words", "--json")),
        (("ab", "--out", "map.bmp", "--head", "2"), ("map.bmp", ".html, .svg, .png, .json")),
        (("ab", "--out", "map.svg", "--n-best", "2"), ("map.svg", "one output", "--n-best")),
        (("ab", "--out", "page.html", "--head", "2"), ("--head", "page.html")),
        (("ab", "--out", "page.html", "--json"), ("--json", "page.html")),
        (("ab", "--beside", "other"), ("--beside", "--out FILE.html")),
        (("ab", "--beside", "other", "--out", "a.svg"), ("--beside", "a.svg", ".html")),
        (("ab", "--beside", "other", "--out", "a.html", "--n-best", "2"), ("--beside", "--n-best 2")),
        (("ab", "--beside", "nowhere", "--out", "a.html"), ("nowhere", "no such model")),
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
    regard("explain", model, "--out", "map.svg", stdin=b"ab\n").refused("--out", "one TEXT")
    asked = regard("explain", model, "--target", "AB", stdin=b"ab\n")
    assert (asked.code, "TEXT" in asked.err) == (2, True)


def test_a_model_without_attention_says_so_and_still_gives_probabilities(regard, of_the_lineup, tmp_path):
    plain = of_the_lineup("rnn")
    regard("explain", plain, "ab").refused("rnn", "without attention", "--map rise", "JSON")
    regard("explain", plain, "ab", "--out", tmp_path / "map.svg").refused("without attention")
    assert not list(tmp_path.iterdir())
    assert regard("explain", plain, "ab", "--out", tmp_path / "page.html").code == 0
    found = Explanation.from_json(regard("explain", plain, "ab", "--json").out)
    assert found.attention == ()
    assert found.steps


def test_a_model_without_attention_has_a_map_by_rise(regard, of_the_lineup, tmp_path):
    plain = of_the_lineup("rnn")
    asked = ("explain", plain, "ab c", "--map", "rise", "--masks", 40)
    said = regard(*asked)
    assert said.code == regard(*asked, "--out", tmp_path / "map.svg").code == 0
    assert "rise, the probability that a token loses without another: rows depend on columns" in said.out
    assert [line.split(":")[0] for line in said.err.splitlines()] == ["rise, source", "rise, output"]
    found = Explanation.from_json(regard(*asked, "--json").out)
    seen = saliency_view(found, found.saliency[0], None)
    assert terminal(seen.weights, seen.columns, seen.rows) in said.out
    assert (tmp_path / "map.svg").read_text(encoding="utf-8") == svg(seen.weights, seen.columns, seen.rows) + "\n"
    for method in ("attention", "rollout", "gradient"):
        regard("explain", plain, "ab", "--map", method).refused(f"map {method}", "without attention", "rise")


def test_a_recurrent_model_has_one_layer_and_one_head(regard, of_the_lineup):
    model = of_the_lineup("bidirectional-gru")
    assert "cross attention, layer 1, head 1: rows look at columns" in regard("explain", model, "ab").out
    regard("explain", model, "ab", "--kind", "encoder").refused("kind encoder", "which has cross;")


def test_a_folder_that_is_no_model_is_refused(regard, tmp_path):
    regard("explain", tmp_path / "nowhere", "ab").refused("nowhere", "no such model")
