"""Whole texts keep their white space, pages their tags, and each sentence is what it is by itself."""

# ruff: noqa: ARG002

from regard.decoding.options import SearchOptions
from regard.documents import say, translate_html, translate_text


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
