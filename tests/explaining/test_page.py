"""The report is one harmless file: it loads nothing, runs only its own script, and shows text as text."""

import base64
import hashlib
import math
import re
from html.parser import HTMLParser

import pytest
import torch

from regard.explaining.film import Frame, Still
from regard.explaining.page import Contents, CurvePoint, Example, Picture, Score, report
from regard.explaining.record import Attention

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """The page as a browser would take it apart: tags in order, text by tag, attributes."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.texts, self.attributes = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag):
        return [data for place, data in self.texts if place == tag]

    def named(self, name):
        return [value for _, found, value in self.attributes if found == name]


def attentions(layers, heads, q, k):
    generator = torch.Generator().manual_seed(0)
    return tuple(
        Attention(f"decoder.layers.{i}.cross", "cross", i, torch.rand(heads, q, k, generator=generator).softmax(-1))
        for i in range(layers)
    )


def contents(word, heads=3):
    return Contents(
        title=word,
        summary=word,
        facts={word: word},
        scores=(Score(word, 12.345, word), Score("BLEU", float("nan"))),
        curve=(CurvePoint(1, 0.5, 3.0), CurvePoint(2, 1.0, 2.0, {"loss": 2.5, word: 40.0})),
        examples=(Example(word, word, word, True), Example(word, word, "other", False)),
        pictures=(Picture(word, (word, "b", "c", "</s>"), (word, "y"), attentions(2, heads, 2, 4)),),
        film=[still(step, word) for step in (0, 20, 1000)],
        commands={word: word},
    )


def still(step, word):
    weights = ((0.5, 0.25, 0.25), (0.1 + step / 5000, 0.4 - step / 5000, 0.5))
    picture = Still(source=(word, "b", "</s>"), target=(word, "</s>"), layers=(weights[::-1], weights))
    return Frame(step=step, layer=2 if step else 1, pictures=(picture, picture))


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)' x=\"",
    "&lt;b&gt; &amp;",
    "]]><!-- </style>",
    "\x00\x1b[2J\ud800\x85",
    "{{7*7}} \\u0022 ${1}",
]


@pytest.mark.parametrize("word", HOSTILE)
def test_text_cannot_change_the_structure_of_the_page(word):
    harmless, hostile = Reader(report(contents("word"))), Reader(report(contents(word)))
    assert hostile.tags == harmless.tags
    assert [(tag, name) for tag, name, _ in hostile.attributes] == [(tag, name) for tag, name, _ in harmless.attributes]
    assert hostile.open == []


@pytest.mark.parametrize("word", HOSTILE[:5])
def test_text_is_shown_as_it_was_given(word):
    page = Reader(report(contents(word)))
    assert page.all("title") == [word]
    assert page.all("dd") == [word]
    assert page.all("td")[:3] == [word] * 3
    assert page.all("pre") == [word]
    assert page.all("bdi") == [word]


def test_text_that_html_cannot_hold_still_makes_a_file():
    page = report(contents("a\ud800b\x00c"))
    assert page.encode("utf-8")
    assert Reader(page).all("title") == ["a�b�c"]


def test_the_page_loads_nothing():
    page = Reader(report(contents("word")))
    loading = {"src", "href", "srcset", "action", "data", "poster", "xlink:href", "background"}
    assert not [name for _, name, _ in page.attributes if name in loading]
    assert not {"link", "iframe", "object", "embed", "img", "base", "form"} & set(page.tags)
    assert not re.search(
        r"url\(|@import|fetch\(|XMLHttp|import\(|sendBeacon|WebSocket|eval\(|innerHTML", report(contents("a"))
    )


def test_the_policy_allows_the_script_of_the_page_and_no_other():
    page = Reader(report(contents("word")))
    (script,) = page.all("script")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [value for value in page.named("content") if "default-src" in value]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"


def test_no_element_carries_a_script_or_a_style_of_its_own():
    assert not [
        name for _, name, _ in Reader(report(contents("word"))).attributes if name[:2] == "on" or name == "style"
    ]


def test_scores_have_two_decimals_and_a_score_that_is_no_number_has_none():
    shown = Reader(report(Contents("t", scores=[Score("a", 12.345), Score("b", float("nan")), Score("c", 1234567.8)])))
    assert shown.all("b") == ["12.35", "–", "1,234,568"] or shown.all("b") == ["12.34", "–", "1,234,568"]


def test_examples_say_in_words_whether_they_are_right():
    page = Reader(report(contents("word")))
    assert [value for value in page.all("td") if value[0] in "✓✗"] == ["✓ right", "✗ wrong"]


def test_validation_loss_is_drawn_beside_training_loss_and_other_scores_alone():
    curve = [CurvePoint(i, i / 2, 1.0 / i, {"loss": 2.0 / i, "exact_match": float(i)}) for i in (1, 2)]
    page = report(Contents("t", curve=curve))
    figures = re.findall(r"<figure.*?</figure>", page)
    assert [re.findall(r'class="line s(\d)"', one) for one in figures] == [["0", "1"], ["0"]]
    assert "step 2 · 1.0 min · exact match 2" in figures[1]


def test_a_curve_of_validation_alone_has_no_training_line():
    page = report(Contents("t", curve=[CurvePoint(3, 1.5, None, {"loss": 2.0})]))
    assert re.findall(r"min · (\w+) 2<", page) == ["validation"]


def test_every_layer_and_head_has_its_place_and_the_large_map_is_their_mean():
    picture = contents("word").pictures[0]
    page = Reader(report(contents("word")))
    names = [value for tag, name, value in page.attributes if (tag, name) == ("button", "aria-label")]
    rows = [[f"layer {i}, mean", *(f"layer {i}, head {h}" for h in (1, 2, 3))] for i in (1, 2)]
    frames = ["step 0, layer 2", "step 20, layer 2", "step 1,000, layer 2"]
    assert names == ["mean of all heads", *rows[0], *rows[1], *frames, *frames]
    mean = (picture.attentions[0].weights.sum(0) + picture.attentions[1].weights.sum(0)) / 6
    maps = [[int(v or 0) / 1000 for v in value.split(",")] for value in page.named("data-weights")]
    torch.testing.assert_close(torch.tensor(maps[0]), mean.flatten(), atol=5.1e-4, rtol=0)
    torch.testing.assert_close(torch.tensor(maps[7]), picture.attentions[1].weights[1].flatten(), atol=5.1e-4, rtol=0)


def test_one_map_alone_leaves_nothing_to_choose():
    one = Picture("a", tuple("abcd"), tuple("xy"), attentions(1, 1, 2, 4))
    page = Reader(report(Contents("t", pictures=[one])))
    assert "button" not in page.tags
    assert len(page.named("data-weights")) == 1


def test_an_empty_part_leaves_no_trace():
    assert Reader(report(Contents("only a title"))).all("h2") == []
    film = "Attention in the course of training"
    assert Reader(report(contents("word"))).all("h2") == ["Scores", "Learning", "Examples", "Attention", film, "Try it"]
    assert Reader(report(Contents("t", film=[still(0, "word")]))).all("h2") == []


def test_a_film_outlines_what_each_output_token_gives_most():
    """Row 0 gives most to column 0; row 1 to column 2 and, in the last frame, to column 0."""
    last = still(20, "word").model_copy(update={"step": 40})
    weights = ((0.5, 0.25, 0.25), (0.8, 0.1, 0.1))
    picture = last.pictures[0].model_copy(update={"layers": (weights[::-1], weights)})
    page = report(Contents("t", film=[still(0, "word"), last.model_copy(update={"pictures": (picture,)})]))
    found = [
        [(math.floor(float(x)), math.floor(float(y))) for x, y in re.findall(r"M(\S+) ([\d.]+)h", path)]
        for path in re.findall(r'<g class="links".*?<path class="edge"[^>]* d="([^"]*)"', page)
    ]
    assert found == [[(0, 0), (0, 1)], [(0, 0), (2, 1)], [(0, 0), (0, 1)]]  # large, then small
    assert "Outlined, and orange in the small maps: the alignment" in page


def test_a_film_has_a_small_map_for_each_frame_and_the_last_one_large():
    page = Reader(report(Contents("t", film=[still(step, "word") for step in (0, 20, 1000)])))
    maps = [[int(v or 0) / 1000 for v in value.split(",")] for value in page.named("data-weights")]
    assert maps[:3] == [[0.5, 0.25, 0.25, x, y, 0.5] for x, y in ((0.1, 0.4), (0.104, 0.396), (0.3, 0.2))]
    assert [value for _, name, value in page.attributes if name == "aria-pressed"] == ["false", "false", "true"] * 2
    sliders = [value for tag, name, value in page.attributes if (tag, name) == ("input", "value")]
    assert sliders == ["2", "2"]
    # 0.5 and 0.5 are the largest of their rows and of their columns: 2 · 2 / (2 + 3)
    assert page.all("output")[0] == "step 1,000 · layer 2 · agreement 0.800"
