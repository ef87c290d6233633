"""Whole texts keep their white space, pages their tags, and each sentence is what it is by itself."""

# ruff: noqa: ARG002

import pytest

from regard.aligner import Aligner
from regard.decoding.options import SearchOptions
from regard.documents import ByAttention, say, translate_html, translate_text
from regard.errors import DecodingError, ModelFormatError
from regard.text.html import by_place


class Shouting:
    """As much of an engine as texts need."""

    def __init__(self):
        self.search, self.asked = SearchOptions(), []

    def write(self, texts, search=None):
        self.asked += texts
        return [text.upper() for text in texts]

    def translate(self, texts, search=None, prefixes=None, required=None): ...
    def sample(self, texts, options, seed): ...
    def score(self, pairs): ...
    def spells(self, phrase): ...
    def fits(self, text, required, search=None): ...


def test_a_text_is_translated_sentence_by_sentence_and_put_back():
    engine, text = Shouting(), "  One. Two by two!\n\n\t- one.\r\n***\n \N{GRINNING FACE} \n"
    assert translate_text(engine, text, language="en") == text.upper()
    assert engine.asked == ["One.", "Two by two!", "- one."]
    assert translate_text(engine, "") == ""
    assert translate_text(engine, " \n ") == " \n "


def test_a_sentence_that_comes_twice_is_translated_once():
    engine = Shouting()
    assert say(engine, ["a", "b", "a", "!", ""], None) == ["A", "B", "A", "!", ""]
    assert engine.asked == ["a", "b"]


def test_a_page_keeps_its_tags_around_the_linked_words():
    page = '<p>one <b>two</b> three</p><pre>one</pre><p title="t">Four. Five.</p>'
    found = translate_html(
        Shouting(), page, align=lambda source, _: [(i, len(source) - 1 - i) for i in range(len(source))]
    )
    assert found == '<p>ONE <b>TWO</b> THREE</p><pre>one</pre><p title="t">FOUR. FIVE.</p>'
    assert translate_html(Shouting(), "one <i>two</i>") == "ONE <i>TWO</i>"
    assert translate_html(Shouting(), "plain text.") == translate_text(Shouting(), "plain text.")


# ---------------------------------------------------------------- which words stand for which
class Speaking(Shouting):
    def write(self, texts, search=None):
        return [{"a red house": "una casa roja"}[text] for text in texts]


class ByHand(Aligner):
    """red = roja, house = casa."""

    def __init__(self, links=((0, 0), (1, 2), (2, 1))):
        self.links, self.asked = links, []

    def place(self, pair):
        self.asked.append((pair.source, pair.target))
        if self.links is None:
            raise DecodingError("too long")
        return frozenset(self.links)


PAGE = '<p>a <b>red</b> <a href="x">house</a></p>'


def test_what_is_bold_in_the_source_is_bold_in_the_translation(monkeypatch, tmp_path):
    aligner = ByHand()
    monkeypatch.setattr("regard.documents.load_aligner", lambda _: aligner)
    found = translate_html(Speaking(), PAGE, align=ByAttention(tmp_path))
    assert found == '<p>una <a href="x">casa</a> <b>roja</b></p>'
    assert aligner.asked == [("a red house", "una casa roja")]


@pytest.mark.parametrize("links", [(), None], ids=["no links", "too long"])
def test_where_a_model_cannot_say_places_count(monkeypatch, tmp_path, links):
    monkeypatch.setattr("regard.documents.load_aligner", lambda _: ByHand(links))
    words = ["a", "red", "house"], ["una", "casa", "roja"]
    assert ByAttention(tmp_path)(*words) == by_place(*words)


def test_a_model_without_attention_aligns_by_place_and_a_page_without_tags_asks_none(monkeypatch, tmp_path):
    opened = []

    def refuse(path):
        opened.append(path)
        raise ModelFormatError("looks at no word")

    monkeypatch.setattr("regard.documents.load_aligner", refuse)
    align = ByAttention(tmp_path)
    assert translate_html(Speaking(), "<p>a red house</p>", align=align) == "<p>una casa roja</p>"
    assert opened == []
    assert translate_html(Speaking(), PAGE, align=align) == translate_html(Speaking(), PAGE)
    assert align(["x"], ["x"]) == [(0, 0)]
    assert opened == [tmp_path]
