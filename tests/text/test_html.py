"""Pages: every tag comes back as it was and where it belongs, whatever the words between them become."""

import random
from html.parser import HTMLParser

import pytest

from regard.text.html import by_place, translate_page
from regard.text.markup import tokens_of


class Tags(HTMLParser):
    """Every tag with its attributes and what it is in, independently of what is tested."""

    def __init__(self, page):
        super().__init__()
        self.around, self.found, self.other = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tuple(self.around), tag, tuple(attrs)))
        if tag not in ("br", "img"):
            self.around.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tuple(self.around), tag, tuple(attrs)))

    def handle_endtag(self, tag):
        assert self.around.pop() == tag

    def handle_comment(self, data):
        self.found.append((tuple(self.around), "comment", data))


def translated(page, said, links=None, language="en"):
    """The page, where `said` has the translation of each sentence that is asked for."""
    asked = []

    def translate(sentences):
        asked.extend(sentences)
        return [said[sentence] for sentence in sentences]

    found = translate_page(page, translate, (lambda *_: links) if links else by_place, language)
    assert asked == list(said)
    return found


@pytest.mark.parametrize(
    ("page", "said", "links", "expected"),
    [
        (
            '<p class="x">The <b>red</b> house.</p>',
            {"The red house.": "La maison rouge."},
            [(0, 0), (1, 2), (2, 1)],
            '<p class="x">La maison <b>rouge</b>.</p>',
        ),
        (
            "<p><i>white</i> <b>house</b></p>",
            {"white house": "casa blanca"},
            [(0, 1), (1, 0)],
            "<p><b>casa</b> <i>blanca</i></p>",
        ),
        (
            'See <a href="?a=1&amp;b">the <em>new</em> page</a>.',
            {"See the new page.": "Siehe die neue Seite."},
            [(0, 0), (1, 1), (2, 2), (3, 3)],
            'Siehe <a href="?a=1&amp;b">die <em>neue</em> Seite</a>.',
        ),
        ("<b>All of it</b>", {"All of it": "Alles"}, None, "<b>Alles</b>"),
        (
            "Use <code>a &lt; b</code> now.",
            {"Use now.": "Jetzt benutzen."},
            [(0, 1), (1, 0)],
            "Jetzt benutzen <code>a &lt; b</code>.",
        ),
        ("<code>x</code> is good", {"is good": "ist gut"}, None, "<code>x</code> ist gut"),
        ("one<br>two", {"one": "eins", "two": "zwei"}, None, "eins<br>zwei"),
        ("<li>A&amp;B\n  C</li>", {"A&B C": "A & C"}, None, "<li>A &amp; C</li>"),
        ("<i>One. Two.</i> Three.", {"One.": "1.", "Two.": "2.", "Three.": "3."}, None, "<i>1. 2.</i> 3."),
        ("<p>a <b>b<p>c</b>", {"a": "x", "b": "y", "c": "z"}, None, "<p>x <b>y<p>z</b>"),
        (
            "<title>T</title><script>if (a<b) {}</script>",
            {"T": "U"},
            None,
            "<title>U</title><script>if (a<b) {}</script>",
        ),
        ('<p translate="no">No</p> <img alt="x">yes', {"yes": "ja"}, None, '<p translate="no">No</p> <img alt="x">ja'),
        ("<!-- a --><hr>—<pre>\n x</pre>&nbsp;", {}, None, "<!-- a --><hr>—<pre>\n x</pre>&nbsp;"),
        ("一。二。", {"一。": "One.", "二。": "Two."}, None, "One. Two."),
    ],
)
def test_pages_by_hand(page, said, links, expected):
    assert translated(page, said, links) == expected


FRAGMENTS = [
    "one",
    "two ",
    " three.",
    " Four. ",
    "<b>",
    "</b>",
    "<a href='x>'>",
    "</a>",
    "<i>",
    "</i>",
    "<p>",
    "</p>",
    "&amp;",
]
FRAGMENTS += [
    "<br>",
    "<!-- c -->",
    "<code>x <b> y</code>",
    "\n",
    "<",
    ">",
    "&",
    "</",
    "<!",
    "<script>a</b></script>",
    "é日。",
]


@pytest.mark.parametrize("seed", range(5))
def test_joined_the_tokens_are_the_page_and_no_piece_of_markup_is_lost_however_broken(seed):
    rng = random.Random(seed)
    for _ in range(60):
        page = "".join(rng.choice(FRAGMENTS) for _ in range(rng.randrange(16)))
        tokens = tokens_of(page)
        assert "".join(token.raw for token in tokens) == page
        found = translate_page(page, lambda sentences: ["w"] * len(sentences), by_place)
        marks = sorted(token.raw for token in tokens if token.kind != "text")
        assert sorted(token.raw for token in tokens_of(found) if token.kind != "text") == marks


def well_formed(rng, depth=0):
    parts = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(["word", "word", "stop", "point", "inline", "block"])
        if kind == "word" or depth > 3:
            parts.append(rng.choice(["alpha ", "beta", " gamma ", "Delta, "]))
        elif kind == "stop":
            parts.append(rng.choice([". ", "! ", ".\n"]))
        elif kind == "point":
            parts.append(rng.choice(["<br>", "<!-- note -->", '<img src="a">', "<code>x</code>"]))
        else:
            tag = rng.choice(["b", "i", "a"] if kind == "inline" else ["div", "td"])
            parts.append(f'<{tag} id="{rng.randrange(100)}">{well_formed(rng, depth + 1)}</{tag}>')
    return "".join(parts)


@pytest.mark.parametrize("seed", range(40))
def test_tags_attributes_and_nesting_stay_whatever_the_words_and_links_become(seed):
    rng = random.Random(seed)
    page = well_formed(rng)

    def translate(sentences):
        return [" ".join(rng.choice(["x", "yy,", "z."]) for _ in range(rng.randint(0, 6))) for _ in sentences]

    def align(source, target):
        return [(rng.randrange(len(source)), rng.randrange(len(target))) for _ in range(3)] if target else []

    found = translate_page(page, translate, align, "en")
    assert sorted(Tags(found).found, key=str) == sorted(Tags(page).found, key=str)


def test_text_alone_becomes_what_the_plain_text_becomes():
    page = "First one. Then, é: “another”! "
    assert (
        translate_page(page, lambda some: [s[::-1] for s in some], by_place, "en") == ".eno tsriF !”rehtona“ :é ,nehT "
    )


def test_the_same_words_leave_the_page_as_it_is():
    page = '<div>A <b>red</b> and <i><a href="x">blue</a> house</i>. <b>Two</b> more!</div>\n<p>End</p>'
    straight = translate_page(page, list, lambda source, _: [(i, i) for i in range(len(source))], "en")
    assert straight == page


def test_without_an_alignment_equal_words_and_places_count():
    assert by_place(["a", "b", "c"], ["x", "a", "z"]) == [(0, 1), (1, 1), (2, 2)]
    assert by_place([], ["a"]) == by_place(["a"], []) == []
    assert by_place(["a"], ["b", "c"]) == [(0, 0)]


def test_a_page_of_endless_tags_is_kept_too():
    page = "<b>" * 3000 + "word" + "</b>" * 3000
    assert translate_page(page, list, by_place) == page
