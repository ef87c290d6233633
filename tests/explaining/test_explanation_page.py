"""The page of explanations is one file that loads nothing, and the JSON in it is what was explained."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from made_explanations import of_a_language_model, of_an_encoder, translated, without_attention

from regard.explaining.document import asset
from regard.explaining.explain_page import SCRIPTS, explanation_page
from regard.explaining.explanation import Explanation
from regard.serving import assets


class Scripts(HTMLParser):
    """Tags with their attributes in order, and the content of each script."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.inside = [], [], False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag == "script"

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "script"

    def handle_data(self, data):
        if self.inside:
            self.scripts.append(data)


def held(page):
    """The explanations in the page, and those of the other model."""
    content = json.loads(Scripts(page).scripts[0])
    return [[Explanation.from_json(json.dumps(one)) for one in content[key]] for key in ("explanations", "beside")]


def hostile(word):
    """An explanation whose model and words are all the same text."""
    made = translated(
        word, source=((word.replace(" ", "_"), (word,)),), target=((word.replace(" ", "_"), (word,)),) * 2
    )
    return made.model_copy(update={"concerns": (translated().concerns[0].model_copy(update={"message": word}),)})


def test_the_page_holds_the_explanations_themselves():
    several = [translated(), of_a_language_model(), of_an_encoder(), without_attention()]
    assert held(explanation_page(several)) == [several, []]
    assert held(explanation_page([translated()], [translated("other")])) == [[translated()], [translated("other")]]


@pytest.mark.parametrize(
    "word",
    ["</script><script>alert(1)</script>", "<!-- <script>", "]]></style><img src=x onerror=alert(1)>", "&lt;&#60;"],
)
def test_no_text_ends_the_element_that_holds_it(word):
    ours, theirs = explanation_page([hostile(word)]), explanation_page([hostile("word")])
    assert [tag for tag, _ in Scripts(ours).tags] == [tag for tag, _ in Scripts(theirs).tags]
    assert held(ours) == [[hostile(word)], []]


def test_the_page_loads_nothing_and_runs_only_its_own_script():
    page = explanation_page([translated()])
    found = Scripts(page)
    assert [attributes.get("type") for tag, attributes in found.tags if tag == "script"] == ["application/json", None]
    loading = {"src", "href", "srcset", "action", "data", "poster"}
    assert not [name for _, attributes in found.tags for name in attributes if name in loading or name[:2] == "on"]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp|import\(|sendBeacon|WebSocket|eval\(|innerHTML", page)
    assert set(re.findall(r"https?://[^\s\"'<]*", page)) == {"http://www.w3.org/2000/svg"}  # a name, which nobody loads
    digest = base64.b64encode(hashlib.sha256(found.scripts[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page


def test_a_page_names_its_models_once():
    page = explanation_page([translated("a<b"), translated("a<b")], [translated("c"), translated("c")])
    assert "<title>What a&lt;b and c looked at</title>" in page


def test_two_models_must_have_explained_the_same_texts():
    with pytest.raises(AssertionError):
        explanation_page([translated(), translated()], [translated("other")])


def test_a_service_sends_the_script_of_the_page_as_one_file():
    sent = assets.asset("/static/explain_page.js")
    assert sent.status == 200
    assert sent.body.decode() == "".join(asset(name) for name in SCRIPTS)
    assert sent.body.decode() in explanation_page([translated()])
