"""The page of the service in a real browser, before a real service with a tiny model."""

import urllib.parse
from pathlib import Path

import pytest
from service_pages import (
    TEXT,
    expect,
    opened,
    post,
    rows_of,
    says,
    served,
    shares,
    translated,
    type_in,
    words_of,
)


@pytest.fixture(scope="module")
def service(model):
    """Where the command listens."""
    with served(f"en:de={model}") as address:
        yield address


@pytest.fixture
def page(browser, service):
    with opened(browser, service) as found:
        yield found


# ---------------------------------------------------------------- the laws
def test_what_is_typed_is_translated_with_its_white_space(page, service):
    type_in(page, service)
    type_in(page, service, "abc de. Bcd ea!\n\n  cab")
    expect(page.locator("#count")).to_have_text("22 / 5000")
    page.locator("#source").fill("")
    says(page, "")


def test_a_word_tells_where_it_comes_from_by_every_head(page, service):
    said = type_in(page, service)
    words_of(page).first.click()
    explanation = post(service, "/explain", q=TEXT, target_text=said)
    lit = page.locator("#part-attention p.lit span")
    expect(lit).to_have_count(2)
    for place, share in enumerate(shares(explanation, 0)):
        expect(lit.nth(place)).to_have_attribute("title", f"{int(100 * share + 0.5)} %" if share >= 0.01 else "< 1 %")
    heads = page.locator("#explanation .grids button")
    expect(heads.first).to_be_attached()
    assert heads.count() >= len(explanation["attention"])
    expect(page.locator("#explanation canvas").first).to_be_visible()
    page.get_by_text("Every layer and head").click()
    expect(page.locator("#explanation canvas").first).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#word")).to_be_hidden()


def test_a_chosen_alternative_takes_the_place_of_the_sentence(page, service):
    said = type_in(page, service)
    words_of(page).last.click()
    page.get_by_role("tab", name="Alternatives").click()
    ending = page.locator("#endings button").first
    other = ending.locator("span").first.text_content()
    assert other != said
    ending.click()
    says(page, other)
    expect(page.locator("#word")).to_be_hidden()


def test_another_first_word_is_gone_on_from(page, service):
    said = type_in(page, service)
    explanation = post(service, "/explain", q=TEXT, target_text=said)
    first, step = explanation["target"]["tokens"][0], explanation["steps"][0]
    names = [one["text"].strip("▁") for one in step["alternatives"] if one["id"] != first["id"]]
    other = next(name for name in names if name.isalpha())
    words_of(page).first.click()
    page.get_by_role("tab", name="Alternatives").click()
    page.locator("#openings button").filter(has_text=other).first.click()
    says(page, post(service, "/alternatives", q=TEXT, prefix=other, alternatives=0)["candidates"][0]["text"])


def test_what_is_measured_and_feared_is_shown_gently(page, service):
    """RISE and concerns written by hand into the answer of the service."""

    def answer(route):
        response = route.fetch()
        found = response.json()
        values = [[0.0] * len(found["source"]["tokens"]) for _ in found["target"]["tokens"]]
        rows = rows_of(found["target"], 0)
        for row in rows:
            values[row][rows_of(found["source"], 1)[0]] = 0.25
        found["saliency"] = [{"method": "rise", "values": values, "errors": None, "masks": 10}]
        found["concerns"] = [
            {"kind": "unsure", "message": "Mind this.", "value": 0.1, "source_words": [], "target_words": [0]}
        ]
        for step in found["steps"]:
            step["probability"] = 0.4 if len(rows) == 1 else 0.4 ** (1 / len(rows))
        route.fulfill(response=response, json=found)

    page.route("**/explain", answer)
    type_in(page, service)
    expect(page.locator("#concerns li")).to_have_text("Mind this.")
    expect(words_of(page).first).to_have_attribute("title", "Mind this.")
    expect(words_of(page).first).to_have_class("unsure concern")
    words_of(page).first.click()
    expect(page.locator("#word-sure")).to_have_text("probability 40 %")
    page.get_by_role("tab", name="RISE").click()
    lit = page.locator("#part-rise p.lit span")
    expect(lit.nth(1)).to_have_attribute("title", "0.25")
    expect(lit.nth(0)).to_have_attribute("title", "0.00")
    expect(page.locator("#part-rise .strongest")).to_have_text("Strongest: de 0.25")
    page.keyboard.press("Escape")
    page.locator("#sure").uncheck()
    expect(page.locator("#concerns")).to_be_hidden()


def test_a_file_goes_and_comes_back_translated(page, service):
    page.locator("#files summary").click()
    sent = {"name": "a note.txt", "mimeType": "text/plain", "buffer": b"abc de\n\ncab\n"}
    page.locator("#file").set_input_files(sent)
    page.get_by_role("button", name="Translate the file").click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download the translation").click()
    found = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert found == f"{translated(service, 'abc de')}\n\n{translated(service, 'cab')}\n"
    assert waiting.value.suggested_filename == "a_note.de.txt"
    expect(page.locator("#progress")).to_be_hidden()


def test_the_theme_changes_and_is_remembered(page):
    def paper():
        return page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")

    assert paper() == "rgb(255, 255, 255)"
    page.locator("#theme").click()
    assert paper() == "rgb(18, 22, 28)"
    page.reload()
    assert paper() == "rgb(18, 22, 28)"


def test_terms_are_followed_and_kept_in_the_browser(page, service):
    page.locator("#terms summary").click()
    page.locator("#glossary").get_by_role("button", name="Add").click()
    page.get_by_label("Source term").fill("de")
    page.get_by_label("Target term").fill("EEE")
    page.locator("#source").fill(TEXT)
    expect(page.locator("#output")).to_contain_text("EEE")
    says(page, post(service, "/translate", q=TEXT, glossary={"de": "EEE"})["translatedText"])
    page.reload()
    expect(page.locator("#output")).to_contain_text("EEE")
    page.locator("#terms summary").click()
    page.get_by_role("button", name="Delete").click()
    says(page, translated(service, TEXT))


def test_a_link_holds_languages_and_text_and_markup_stays_text(browser, service):
    text = "abc <img src=x onerror=alert(1)> de & %s"
    with opened(browser, service, address=f"/#source=en&target=de&q={urllib.parse.quote(text)}") as page:
        says(page, translated(service, text))
        assert page.locator("#source").input_value() == text
        assert page.locator("img").count() == 0
        page.locator("#source").fill("cab")
        says(page, translated(service, "cab"))
        assert page.url.endswith("#source=en&target=de&q=cab")


def test_everything_can_be_reached_by_keys(page, service):
    type_in(page, service, "abc de ab")
    buttons = words_of(page)
    page.locator("#source").focus()
    page.keyboard.press("Tab")
    expect(buttons.first).to_be_focused()
    page.keyboard.press("End")
    expect(buttons.last).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Attention")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Alternatives")).to_be_focused()
    expect(page.locator("#part-others")).to_be_visible()
    page.keyboard.press("Escape")
    expect(buttons.first).to_be_focused()
    expect(page.locator("#word")).to_be_hidden()


def test_two_models_are_compared_without_their_names(page, service):
    """The service here has one model: what two would say is written by hand."""
    expect(page.locator("[data-view=comparing]")).to_be_hidden()
    told = []

    def settings(route):
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "compare": True})

    def prefer(route):
        told.append(route.request.post_data_json)
        route.fulfill(json={"success": True})

    page.route("**/frontend/settings", settings)
    page.route("**/compare", lambda route: route.fulfill(json={"outputs": ["eins", "zwei"], "token": "t"}))
    page.route("**/prefer", prefer)
    page.reload()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#translating")).to_be_hidden()
    page.get_by_label("Text for both models").fill(TEXT)
    for name, better in (("B is better", 1), ("Equal", None)):
        page.get_by_role("button", name="Translate with both").click()
        expect(page.locator("#output-a")).to_have_text("eins")
        expect(page.locator("#output-b")).to_have_text("zwei")
        page.get_by_role("button", name=name).click()
        expect(page.locator("#compare-state")).to_have_text("Noted. Thank you.")
        assert told[-1] == {"token": "t", "better": better}


def test_too_much_text_is_not_sent(page):
    page.locator("#source").fill("a" * 5001)
    expect(page.locator("#state")).to_contain_text("1 characters too many: at most 5000")


def test_nothing_leans_out_of_a_phone(browser, service):
    with opened(browser, service, width=390) as page:
        type_in(page, service, "abc de. " + "cab " * 12)
        words_of(page).first.click()
        expect(page.locator("#explanation canvas").first).to_be_visible()
        for part in ("#files", "#terms"):
            page.locator(f"{part} summary").click()
        page.locator("#glossary").get_by_role("button", name="Add").click()
        for tab in ("Attention", "Alignment", "RISE", "Alternatives"):
            page.get_by_role("tab", name=tab).click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
