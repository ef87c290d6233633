"""Explanations as one HTML file that opens without a network: words that light up, maps, heads, alternatives."""

from collections.abc import Sequence

from regard.explaining.document import document
from regard.explaining.explanation import Explanation

STYLES = ("explain_page.css", "explain_frame.css")
SCRIPTS = ("explain_data.js", "explain_map.js", "explain_page.js")  # in this order


def explanation_page(explanations: Sequence[Explanation], beside: Sequence[Explanation] = ()) -> str:
    """The page. `beside` is empty, or holds what another model made of the same texts, one for each."""
    assert explanations, "a page explains something"
    assert len(beside) in (0, len(explanations)), "two models, the same texts"
    models = dict.fromkeys(one.model for one in (*explanations, *beside))
    body = (
        '<div class="explanations-here"></div>\n'
        f'<script type="application/json" class="explanations">{data(explanations, beside)}</script>\n'
        "<noscript><p>This page draws its maps by JavaScript, which is switched off here.</p></noscript>\n"
    )
    return document(f"What {' and '.join(models)} looked at", body, STYLES, SCRIPTS)


def data(explanations: Sequence[Explanation], beside: Sequence[Explanation]) -> str:
    """JSON in which no text can end the element that holds it: a "<" stands only in strings, where it is \\u003c."""
    mine, theirs = (",".join(one.to_json() for one in several) for several in (explanations, beside))
    return f'{{"explanations":[{mine}],"beside":[{theirs}]}}'.replace("<", "\\u003c")
