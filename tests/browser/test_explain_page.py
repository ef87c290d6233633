"""In a real browser, the page of explanations shows the numbers of its JSON, to the pointer and to the keys."""

import json
import math
import re

import pytest
from made_explanations import SOURCE, TARGET, of_a_language_model, of_an_encoder, translated, without_attention

from regard.explaining.explain_page import explanation_page
from regard.explaining.film import Frame, Still
from regard.explaining.page import Contents, report
from regard.explaining.view import Which, by_words, view

GROUPS = {"source": [[0], [1], [2, 3], [4]], "target": [[0], [1], [2, 3], [4], [5]]}  # the tokens of each word


@pytest.fixture
def opened(browser, tmp_path):
    """opened(html, width) is the page in a browser that notes what goes wrong and what it asks for."""
    pages = []

    def open_page(html, width=1280, **context):
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        page = browser.new_context(viewport={"width": width, "height": 900}, **context).new_page()
        page.troubles = []
        page.on("console", lambda said: page.troubles.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith("file:") else page.troubles.append(asked.url))
        page.goto((tmp_path / "page.html").as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        assert page.troubles == []
        page.context.close()


def words(page, side):
    return page.locator(f".line.{side} .word")


def numbers(page, side):
    """What stands below the words of a line."""
    return [text.replace("−", "-") for text in words(page, side).locator("small").all_text_contents()]


def shown(values):
    return [f"{value:.2f}" if abs(value) >= 0.005 else "" for value in values]


def merged(matrix, row, column):
    """What a plain loop makes of pieces: Σ over the columns of a word, mean over its rows."""
    return sum(matrix[q][k] for q in row for k in column) / len(row)


def test_words_light_up_by_the_chosen_map_with_its_numbers(opened):
    made = translated()
    page = opened(explanation_page([made]))
    rise = made.saliency[0]

    # RISE comes first if it is there; the first word of the output is looked at.
    assert page.locator("select[name=map]").input_value() == "rise"
    values = [merged(rise.values, [0], column) for column in GROUPS["source"]]
    errors = [merged(rise.errors, [0], column) for column in GROUPS["source"]]
    assert numbers(page, "source") == [f"{v:.2f} ± {e:.2f}" for v, e in zip(values, errors, strict=True)]
    assert "against" in words(page, "source").nth(3).get_attribute("class")
    words(page, "target").nth(1).hover()
    assert numbers(page, "source")[3].endswith("± ?")

    # A method, then a head from the grid: each is what the JSON has, joined to words.
    page.locator("select[name=map]").select_option("attention")
    words(page, "target").nth(2).click()
    attention = made.saliency[1].values
    assert numbers(page, "source") == shown(merged(attention, [2, 3], column) for column in GROUPS["source"])
    assert words(page, "target").nth(2).get_attribute("aria-pressed") == "true"
    page.locator(".grids button", has_text="2.1").first.click()
    assert [page.locator(f"select[name={name}]").input_value() for name in ("map", "layer", "head")] == [
        "cross",
        "2",
        "1",
    ]
    seen = by_words(made, view(made, Which("cross", 2, 1)))
    assert numbers(page, "source") == shown(seen.weights[2].tolist())

    # The other way round: a source word, and the output words that look at it.
    words(page, "source").nth(1).click()
    assert numbers(page, "target") == shown(seen.weights[:, 1].tolist())
    assert page.locator(".readout").text_content().count("→") == 1
    page.locator("select[name=layer]").select_option("1")
    seen = by_words(made, view(made, Which("cross", 1)))
    assert numbers(page, "target") == shown(seen.weights[:, 1].tolist())


def test_pieces_of_words_and_maps_within_a_text(opened):
    made = translated(saliency=False)
    page = opened(explanation_page([made]))
    assert page.locator("select[name=layer]").input_value() == str(
        re.search(r"layer (\d)", view(made, Which()).title)[1]
    )
    page.get_by_label("pieces").check()
    words(page, "target").nth(3).click()
    assert numbers(page, "source") == shown(view(made, Which()).weights[3].tolist())
    page.locator("select[name=map]").select_option("encoder")
    words(page, "source").nth(2).click()
    assert numbers(page, "source") == shown(view(made, Which("encoder")).weights[2].tolist())
    page.locator("select[name=map]").select_option("decoder")
    words(page, "target").nth(4).click()
    read = view(made, Which("decoder")).weights[4].tolist()
    assert numbers(page, "target") == [*shown(read[1:]), ""]  # the start token is no word of the output
    assert f"<s>\u2069 {read[0]:.3f}" in page.locator(".readout").text_content()


def test_keys_reach_every_word_and_every_cell(opened):
    made = translated(saliency=False)
    page = opened(explanation_page([made]))
    words(page, "target").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert words(page, "target").nth(1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.closest('.line').className") == "line source"
    assert words(page, "target").nth(1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert page.locator(".word[aria-pressed=true]").count() == 0
    seen = by_words(made, view(made, Which()))
    page.locator(".large canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    reading = page.locator(".large figcaption output").text_content()
    assert reading == f"\u2068Mann\u2069 ← \u2068man\u2069  {float(seen.weights[1, 1]):.3f}"
    box = page.locator(".large canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 8)
    assert page.locator(".large figcaption output").text_content().startswith("\u2068</s>\u2069 ← ")


def test_alternatives_concerns_and_confidence_are_those_of_the_json(opened):
    made = translated()
    page = opened(explanation_page([made]))
    words(page, "target").nth(1).click()
    bars = page.locator(".others li")
    assert bars.locator(".p").all_text_contents() == ["0.600", "0.050"]
    assert page.locator(".others .written bdi").all_text_contents() == ["▁Mann"]
    assert page.locator(".others h4").text_content().endswith("probability 0.050, rank 7")
    words(page, "target").nth(2).click()  # of two pieces
    expected = [f"{one.probability:.3f}" for step in made.steps[2:4] for one in step.alternatives]
    assert bars.locator(".p").all_text_contents() == expected
    widths = bars.locator(".bar i").evaluate_all("bars => bars.map(bar => bar.style.width)")
    assert [f"{float(width[:-1]) / 100:.3f}" for width in widths] == expected
    assert page.locator(".concerns li").all_text_contents() == [f"{one.kind} {one.message}" for one in made.concerns]
    assert page.locator(".concerned .form").all_text_contents() == ["A", "Mann"]
    kinds = words(page, "target").evaluate_all("all => all.map(w => w.className.match(/sure|fair|doubted/)[0])")
    assert kinds == ["sure", "doubted", "fair", "fair", "fair"]


def test_several_sentences_of_two_models_stand_beside_each_other_and_stack_on_a_phone(opened):
    mine = [translated(), translated(source=SOURCE[::-1]), translated(concerns=False)]
    theirs = [translated("other", target=TARGET[::-1]), translated("other"), without_attention()]
    page = opened(explanation_page(mine, theirs), color_scheme="light")
    assert page.locator(".sentences button").count() == 3
    assert "⚑ unsure, untranslated" in page.locator(".sentences button").first.text_content()
    first, second = (page.locator("article.explained").nth(i).bounding_box() for i in (0, 1))
    assert first["x"] + first["width"] <= second["x"]
    page.locator(".sentences button").nth(1).click()
    assert [text.split()[0] for text in page.locator(".facts").all_text_contents()] == ["tiny", "other"]
    assert page.locator("article").first.locator(".line.source .form").first.text_content() == "sings"
    page.locator(".sentences button").nth(2).click()
    assert page.locator("article").nth(1).locator("canvas").count() == 0
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="dark").click()
    assert page.evaluate(background) == "rgb(18, 22, 28)"
    page.set_viewport_size({"width": 390, "height": 800})
    first, second = (page.locator("article.explained").nth(i).bounding_box() for i in (0, 1))
    assert first["y"] + first["height"] <= second["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


LONG = (
    "In the afternoon a group of young people sits on the steps in front of the old cathedral and listens to a man who "
    "plays an extraordinarily beautiful melody on his accordion while tourists with umbrellas and cameras pass by "
    "without stopping because it has begun to rain and everybody hurries home as quickly as possible , she said ."
)


def sixty():
    """Sixty words on either side, of every length, with as many tokens and the end."""
    words = (LONG.split() * 2)[:60]
    return tuple((word, (f"▁{word}",)) for word in words), tuple((word[::-1], (f"▁{word[::-1]}",)) for word in words)


def boxes(page, selector):
    """The rectangles of the letters, not of the elements that they may leave."""
    return page.locator(selector).evaluate_all(
        """all => all.map(element => {
          const range = document.createRange();
          range.selectNodeContents(element);
          const box = element.ownerSVGElement ? element.getBoundingClientRect() : range.getBoundingClientRect();
          return [box.left, box.top, box.right, box.bottom];
        })"""
    )


def inside(box, room):
    """Within a pixel."""
    return all(
        room[start] - 1 <= box[start] and box[start] + box[size] <= room[start] + room[size] + 1
        for start, size in (("x", "width"), ("y", "height"))
    )


def overlapping(found):
    """Pairs that share more than a hair's breadth."""
    return [
        (one, other)
        for i, one in enumerate(found)
        for other in found[:i]
        if min(one[2], other[2]) - max(one[0], other[0]) > 0.5 and min(one[3], other[3]) - max(one[1], other[1]) > 0.5
    ]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_two_labels_of_a_sentence_of_sixty_words_overlap(opened, width):
    source, target = sixty()
    page = opened(explanation_page([translated(source=source, target=target, concerns=False)]), width)
    names = [boxes(page, f".map .{line} span bdi") for line in ("before", "above")]
    assert [len(line) for line in names] == [61, 61]
    for found in (names[0], names[1], boxes(page, ".curves text"), boxes(page, ".word .form")):
        assert len(found) >= 61
        assert not overlapping(found)
        assert all(right - left > 1 and bottom - top > 1 for left, top, right, bottom in found)
    # Each name stands at its own row or column of cells, which are large enough to be read and pointed at.
    cells = page.locator(".map canvas").bounding_box()
    side = cells["width"] / 61
    assert side >= 14
    for i in range(61):
        assert abs((names[0][i][1] + names[0][i][3]) / 2 - (cells["y"] + (i + 0.5) * side)) < 2
        assert abs((names[1][i][0] + names[1][i][2]) / 2 - (cells["x"] + (i + 0.5) * side)) < 2


@pytest.mark.parametrize("width", [390, 1280])
def test_a_sentence_of_sixty_words_scrolls_inside_and_says_so(opened, width):
    source, target = sixty()
    page = opened(explanation_page([translated(source=source, target=target, concerns=False)]), width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert words(page, "target").count() == 61
    assert page.locator(".curves path").count() <= 400
    assert page.locator(".hint:visible").all_text_contents() == [
        "There is more of the map: scroll inside it ↔ ↕",
        "There are more words: scroll the lines sideways ↔",
    ]
    # What the keys reach comes into sight, and the names stay there.
    page.locator(".map canvas").focus()
    for _ in range(60):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
    box, name = page.locator(".map").bounding_box(), page.locator(".map .before .read").bounding_box()
    assert (
        page.locator(".map .before .read").text_content() == page.locator(".map .above .read").text_content() == "</s>"
    )
    assert inside(name, box)
    # A word brings its own curves into sight.
    words(page, "target").nth(59).focus()
    label = page.locator(".curves [data-place='target/59']").bounding_box()
    assert inside(label, page.locator(".curves").bounding_box())


@pytest.mark.parametrize("width", [390, 900, 1280])
@pytest.mark.parametrize("count", [3, 12, 25, 60])
def test_nothing_is_cut_and_nothing_stays_blank_beside_the_map(opened, width, count):
    source, target = (side[:count] for side in sixty())
    page = opened(explanation_page([translated(source=source, target=target, concerns=False)]), width)
    room, large, others = (page.locator(place).bounding_box() for place in (".pair", ".large", ".others"))
    beside = others["y"] < large["y"] + large["height"]
    filled = others["x"] + others["width"] if beside else large["x"] + large["width"]
    if beside or count > 25:
        assert room["x"] + room["width"] - filled <= 0.1 * room["width"]
    assert others["width"] >= 240
    whole = page.locator(".grids").bounding_box()
    for button in page.locator(".grids details[open] .heads button").all():
        box = button.bounding_box()
        assert inside(box, whole)
        assert button.evaluate("button => button.scrollWidth <= button.clientWidth")


def test_numbers_are_told_in_words(opened):
    page = opened(explanation_page([translated().model_copy(update={"dependence": 0.634})]))
    each = math.exp(-4.25 / 6)
    facts = page.locator(".facts").text_content()
    assert f"gave each token a probability of {each:.2f} on average" in facts
    assert "the source explains 0.63 of that" in facts
    page.locator(".legend summary").click()
    meanings = dict(zip(*(page.locator(f".legend {tag}").all_text_contents() for tag in ("dt", "dd")), strict=True))
    assert list(meanings) == ["underline", "log p", "score", "map", "entropy", "± and hatched", "deletion, insertion"]
    assert f"Here e to the −4.25 is {math.exp(-4.25):.2g}." in meanings["log p"]
    page.locator(".grids button", has_text="2.1").first.click()
    wide = f"looks at about {math.exp(2.1):.1f} of 5 tokens at a time (entropy 2.10 nats)"
    assert page.locator(".note").text_content() == f"This head {wide}."
    assert wide in page.locator(".grids button", has_text="2.1").first.get_attribute("title")
    page.locator(".grids button", has_text="1.2").first.click()
    assert page.locator(".note").text_content().endswith("; diagonal: mostly at what stands equally far along.")


def test_models_that_only_write_only_read_or_do_not_attend_show_what_they_have(opened):
    page = opened(explanation_page([of_a_language_model(), of_an_encoder(), without_attention()]))
    assert page.locator(".line").count() == 1
    assert page.locator("select[name=map]").input_value() == "decoder"
    assert page.locator(".others li").count() == 2
    # By a method, what it had written before; and as another page would show it.
    given = json.loads(of_a_language_model().to_json())
    back = [[round(0.3 - 0.1 * q + 0.05 * k, 2) for k in range(5)] for q in range(5)]
    nothing = dict.fromkeys(("errors", "previous_errors", "masks", "faithful", "chance"))
    given["saliency"] = [{"method": "rise", "values": [[]] * 5, "previous": back, **nothing}]
    page.evaluate("given => { Regard.explanation(document.querySelector('article'), given); }", given)
    assert page.locator("select[name=map]").input_value() == "rise/previous"
    words(page, "target").nth(1).click()
    read = [[1], [2], [3, 4]]  # by words, and behind the start token
    assert numbers(page, "target") == [*shown(merged(back, [1], places) for places in read), ""]
    page.locator(".sentences button").nth(1).click()
    assert page.locator(".line.target").count() == 0
    made = of_an_encoder()
    words(page, "source").nth(1).click()
    assert numbers(page, "source") == shown(by_words(made, view(made, Which())).weights[1].tolist())
    page.locator(".sentences button").nth(2).click()
    assert "no attention" in page.locator(".note").text_content()
    words(page, "target").nth(1).click()
    assert page.locator(".others .p").all_text_contents() == ["0.600", "0.050"]


def test_a_film_runs_from_its_first_frame_to_its_last(opened):
    def frame(step, weight):
        picture = Still(source=("a", "</s>"), target=("x",), layers=(((weight, 1 - weight),),))
        return Frame(step=step, layer=1, pictures=(picture,))

    page = opened(report(Contents("t", film=[frame(0, 0.5), frame(10, 0.25), frame(20, 0.125)])))
    which, slider = page.locator(".film .which"), page.locator(".film input")
    assert which.text_content() == "step 20, layer 1"
    outline = page.locator(".film .large .links .edge")
    assert outline.get_attribute("d").startswith("M1.")  # 0.875 is in the second column
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert which.text_content() == "step 10, layer 1"
    assert page.locator(".film .value").text_content() == "strongest: 0.75"
    page.locator(".film button[data-weights]").first.click()
    assert slider.input_value() == "0"
    assert outline.get_attribute("d").startswith("M0.")  # of equal ones the first
    page.locator(".play").click()
    page.get_by_text("step 20, layer 1", exact=True).wait_for()
    assert page.locator(".play").text_content() == "play"
    assert slider.input_value() == "2"
