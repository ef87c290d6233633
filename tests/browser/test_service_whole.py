"""The page before a real service of three tiny models: two of one direction, one of the other, and a run to watch."""

import re
import time
import urllib.request
from pathlib import Path

import pytest
from service_pages import (
    TEXT,
    agreeing,
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
from tiny_runs import TINY

from regard.evaluation.judgements import read_judgements
from regard.run import Request, run

LONG = "cab de " * 30


@pytest.fixture(scope="module")
def models(tmp_path_factory, corpus):
    """en-de, another en-de that learned less, and de-en; each looks at its source with two layers."""
    folder = tmp_path_factory.mktemp("served")
    settings = (*TINY, "model.decoder_layers=2", "training.validations=3")
    for name, sides, steps in (
        ("one", ("source", "target"), 120),
        ("two", ("source", "target"), 30),
        ("back", ("target", "source"), 120),
    ):
        source, target = (corpus / f"train.{side}" for side in sides)
        run(Request(source=source, target=target, out=folder / name, steps=steps, settings=settings, quiet=True))
    return folder


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    return tmp_path_factory.mktemp("judged") / "judged.jsonl"


@pytest.fixture(scope="module")
def service(models, judged):
    directions = (f"en:de={models / 'one'}", f"en:de={models / 'two'}", f"de:en={models / 'back'}")
    with served(*directions, "--judgements", judged, "--watch", models / "one") as address:
        yield address


@pytest.fixture
def page(browser, service):
    with opened(browser, service) as found:
        yield found


def streams(page):
    """The texts that are asked to be translated, as they go out."""
    asked = []
    page.on("request", lambda one: asked.append(one.post_data_json["q"]) if one.url.endswith("/stream") else None)
    return asked


def until(true, seconds=20.0):
    due = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < due
        time.sleep(0.05)


def given_up(service):
    """Explanations whose asker went away, and how many texts workers are at."""
    with urllib.request.urlopen(service + "/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = re.search(r'requests_total\{route="/explain",status="499"\} (\d+)', text)
    return int(found[1]) if found else 0, int(re.search(r"running_texts (\d+)", text)[1])


def follow_terms(page):
    page.locator("#terms summary").click()
    page.locator("#glossary").get_by_role("button", name="Add").click()
    page.get_by_label("Source term").fill("de")
    page.get_by_label("Target term").fill("EEE")


# ---------------------------------------------------------------- typing
def test_languages_are_swapped_and_what_was_said_is_said_back(page, service):
    said = type_in(page, service)
    page.get_by_role("button", name="Swap the languages").click()
    expect(page.locator("#from")).to_have_value("de")
    expect(page.locator("#to")).to_have_value("en")
    expect(page.locator("#source")).to_have_value(said)
    says(page, post(service, "/translate", q=said, source="de", target="en")["translatedText"])
    page.get_by_role("button", name="Swap the languages").click()
    expect(page.locator("#from")).to_have_value("en")


def test_a_text_is_sent_once_the_keys_rest(page, service):
    expect(page.locator("#from")).to_have_value("en")
    asked = streams(page)
    page.locator("#source").press_sequentially(TEXT, delay=20)
    says(page, translated(service, TEXT))
    assert asked == [TEXT]


def test_the_answer_to_an_older_text_is_not_waited_for(page, service):
    expect(page.locator("#from")).to_have_value("en")
    asked, failed = streams(page), []
    page.on("requestfailed", lambda one: failed.append((one.post_data_json["q"], one.failure)))
    page.route("**/stream", lambda route: None if len(asked) == 1 else route.continue_())  # the first is never answered
    page.locator("#source").fill("cab")
    expect(page.locator("#output")).to_have_attribute("aria-busy", "true")
    page.locator("#source").fill(TEXT)
    says(page, translated(service, TEXT))
    assert asked == ["cab", TEXT]
    assert failed == [("cab", "net::ERR_ABORTED")]
    expect(page.locator("#output")).to_have_attribute("aria-busy", "false")


# ---------------------------------------------------------------- without a mouse
CONTROLS = """() => {
  const shown = [...document.querySelectorAll("button, select, textarea, input, summary, a[href]")]
    .filter(one => one.checkVisibility() && !one.disabled && one.tabIndex >= 0);
  window.controls = shown;
  return shown.map(one => (one.getAttribute("aria-label") || [...(one.labels || [])].map(l => l.textContent).join(" ")
    || one.textContent || one.title || "").trim());
}"""
FOCUSED = "() => window.controls.indexOf(document.activeElement)"


def all_reached(page):
    """Every control that is seen has a name that can be read out, and the Tab key comes to each of them."""
    names = page.evaluate(CONTROLS)
    assert all(names), names
    page.evaluate("() => { document.activeElement.blur(); window.getSelection().removeAllRanges(); }")
    reached = set()
    for _ in range(len(names) + 10):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(FOCUSED))
    assert set(range(len(names))) <= reached, [names[place] for place in set(range(len(names))) - reached]
    return names


def test_every_control_has_a_name_and_is_reached_by_keys(page, service):
    type_in(page, service)
    for place in ("#terms summary", "#file summary"):
        if page.locator(place).count():
            page.locator(place).first.press("Enter")
    assert len(all_reached(page)) > 8
    words_of(page).first.press("Enter")
    page.get_by_role("tab", name="Attention").press("ArrowLeft")
    ending = page.locator("#endings button").first
    expect(ending).to_be_visible()
    all_reached(page)
    wanted = ending.text_content().split()
    ending.press("Enter")
    expect(page.locator("#output")).to_have_attribute("aria-busy", "false")
    assert words_of(page).all_text_contents()[: len(wanted)] == wanted


def test_a_comparison_is_made_by_keys(page):
    page.get_by_role("button", name="Compare").press("Enter")
    page.locator("#compared").fill(TEXT)
    page.get_by_role("button", name="Translate with both").press("Enter")
    expect(page.locator("#verdict")).to_be_visible()
    assert {"A is better", "Equal", "B is better"} <= set(all_reached(page))


# ---------------------------------------------------------------- a word
def test_attention_begins_with_the_layer_that_aligns_best(page, service):
    said = type_in(page, service)
    explanation = post(service, "/explain", q=TEXT, target_text=said)
    assert {block["layer"] for block in explanation["attention"] if block["kind"] == "cross"} == {1, 2}
    for place in range(len(said.split())):
        words_of(page).nth(place).click()
        expect(page.locator("#layer")).to_have_text(
            f": layer {agreeing(explanation)}, which aligns best, the mean of its heads"
        )
        lit = page.locator("#part-attention p.lit span")
        for i, share in enumerate(shares(explanation, place)):
            expect(lit.nth(i)).to_have_attribute("title", f"{int(100 * share + 0.5)} %" if share >= 0.01 else "< 1 %")
    expect(page.locator("#explanation select[name=layer]")).to_have_value(str(agreeing(explanation)))


def test_a_word_shows_the_source_words_that_it_is_linked_to(page, service):
    text = "abc de cab"
    said = type_in(page, service, text)
    (links,) = post(service, "/align", q=[text], s=[said])["alignments"]
    assert sorted(target for _, target in links) == list(range(len(said.split())))
    page.locator("#output button").first.click()
    page.get_by_role("tab", name="Alignment").click()
    for place, word in enumerate(said.split()):
        words_of(page).nth(place).click()
        (source,) = (one for one, target in links if target == place)
        expect(page.locator("#part-alignment p.lit").first.locator(".link")).to_have_text([text.split()[source]])
        expect(page.locator("#part-alignment .written .link")).to_have_text([word])
        near = [said.split()[j] for i, j in links if i == source and j != place]
        expect(page.locator("#part-alignment .written .near")).to_have_text(near)
        expect(page.locator("#part-alignment .strongest")).to_have_text(f"{word} ↔ {text.split()[source]}")


def test_what_rise_measures_is_what_the_service_says(page, service):
    said = type_in(page, service)
    words_of(page).first.click()
    page.get_by_role("tab", name="RISE").click()
    found = post(service, "/explain", q=TEXT, target_text=said, method="rise", check=True)
    (map_,) = found["saliency"]
    rows = rows_of(found["target"], 0)
    for word in range(2):
        columns = rows_of(found["source"], word)
        value = sum(map_["values"][row][column] for row in rows for column in columns) / len(rows)
        errors = sum(map_["errors"][row][column] for row in rows for column in columns)
        title = page.locator("#part-rise p.lit span").nth(word)
        expect(title).to_have_attribute("title", re.compile("±"))
        shown = [float(part) for part in title.get_attribute("title").split(" ± ")]
        assert shown == pytest.approx([value, errors / len(rows)], abs=0.0051)


def test_an_error_that_is_not_known_for_one_piece_is_not_known_for_the_word(page, service):
    def spoilt(route):
        answer = route.fetch()
        found = answer.json()
        for map_ in found.get("saliency") or ():
            row, column = rows_of(found["target"], 0)[-1], rows_of(found["source"], 1)[0]
            map_["errors"][row][column] = None
        route.fulfill(response=answer, json=found)

    page.route("**/explain", spoilt)
    type_in(page, service)
    words_of(page).first.click()
    page.get_by_role("tab", name="RISE").click()
    lit = page.locator("#part-rise p.lit span")
    expect(lit.nth(0)).to_have_attribute("title", re.compile(r"± \d"))
    expect(lit.nth(1)).to_have_attribute("title", re.compile(r"\d ± \?$"))


def test_what_nobody_waits_for_is_given_up(page, service):
    type_in(page, service, LONG)
    words_of(page).first.click()
    expect(page.locator("#layer")).not_to_be_empty()
    before, _ = given_up(service)
    for more, leave in enumerate((lambda: page.keyboard.press("Escape"), lambda: page.locator("#source").fill("")), 1):
        with page.expect_request("**/explain"):
            words_of(page).first.click()
            page.get_by_role("tab", name="RISE").click()
        until(lambda: given_up(service)[1] == 1)
        leave()
        until(lambda wanted=before + more: given_up(service) == (wanted, 0))
        if more == 1:
            page.locator("#tab-attention").evaluate("tab => tab.click()")


def test_another_word_of_the_sentence_goes_on_with_what_is_measured(page, service):
    type_in(page, service, LONG[:56])
    asked = []
    page.on("request", lambda one: asked.append(one.post_data_json) if one.url.endswith("/explain") else None)
    words_of(page).first.click()
    page.get_by_role("tab", name="RISE").click()
    before, _ = given_up(service)
    words_of(page).nth(1).click()
    expect(page.locator("#part-rise p.lit sub").first).to_be_visible()
    assert len([one for one in asked if one.get("method") == "rise"]) == 1
    assert given_up(service)[0] == before


def test_terms_are_followed_where_a_sentence_is_written_anew(page, service):
    follow_terms(page)
    page.locator("#source").fill(TEXT)
    expect(page.locator("#output")).to_contain_text("EEE")
    words_of(page).first.click()
    page.get_by_role("tab", name="Alternatives").click()
    endings = page.locator("#endings button")
    expect(endings.first).to_be_visible()
    assert all("EEE" in text for text in endings.all_text_contents())
    opening = page.locator("#openings button").first
    prefix = opening.locator("span").first.text_content()
    opening.click()
    wanted = post(service, "/alternatives", q=TEXT, prefix=prefix, alternatives=0, glossary={"de": "EEE"})
    says(page, wanted["candidates"][0]["text"])
    assert "EEE" in wanted["candidates"][0]["text"]


# ---------------------------------------------------------------- files
def test_a_file_follows_the_terms_and_its_way_is_shown(page, service):
    follow_terms(page)
    page.locator("#files summary").click()
    sent = {"name": "long.txt", "mimeType": "text/plain", "buffer": f"{TEXT}\n".encode() + b"\n" * 150_000}
    page.locator("#file").set_input_files(sent)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 50_000}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    page.get_by_role("button", name="Translate the file").click()
    bar = page.locator("#progress")
    expect(bar).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    seen = set()
    until(lambda: seen.add(bar.evaluate("bar => bar.value")) or len([one for one in seen if 0 < one < 1]) >= 2)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download the translation").click()
    found = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert found.rstrip() == post(service, "/translate", q=TEXT, glossary={"de": "EEE"})["translatedText"]
    assert "EEE" in found
    expect(bar).to_be_hidden()


# ---------------------------------------------------------------- two models, and a run
def test_what_a_person_prefers_is_what_rank_reads(page, service, judged, regard):
    page.get_by_role("button", name="Compare").click()
    texts = ("abc de", "cab", "eda bc")
    for text, name in zip(texts, ("A is better", "Equal", "B is better"), strict=True):
        page.get_by_label("Text for both models").fill(text)
        page.get_by_role("button", name="Translate with both").click()
        expect(page.locator("#verdict")).to_be_visible()
        outputs = [page.locator(f"#output-{side}").text_content() for side in "ab"]
        assert translated(service, text) in outputs
        page.get_by_role("button", name=name).click()
        expect(page.locator("#compare-state")).to_have_text("Noted. Thank you.")
    found = read_judgements(judged)
    assert [one.source for one in found] == list(texts)
    ended = regard("rank", "--report", judged)
    assert ended.code == 0
    assert all(name in ended.out for name in ("one", "two"))
    assert not any(name in page.content() for name in (">one<", ">two<"))


def test_the_run_is_a_second_view_and_leads_back(page, service):
    page.get_by_role("link", name="Training").click()
    expect(page.locator("#name")).to_have_text("one")
    expect(page.locator("#state")).to_contain_text("finished: 120 steps")
    expect(page.locator(".sample")).to_have_count(4)
    expect(page.locator("#strip button").first).to_be_visible()
    expect(page.locator("#recipe")).to_be_hidden()  # it names files
    page.get_by_role("link", name="Translate").click()
    type_in(page, service)


def test_every_view_fits_a_phone(browser, service):
    with opened(browser, service, width=390) as page:
        for view in ("Compare", "Translate"):
            page.get_by_role("button", name=view, exact=True).click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("link", name="Training").click()
        expect(page.locator(".sample").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_address_with_a_slash_too_many_or_too_few_leads_to_the_page(browser, models):
    with served(f"en:de={models / 'one'}", "--prefix", "/mt") as address:
        with opened(browser, address, address="") as page:
            assert page.url == f"{address}/"
            page.locator("#source").fill(TEXT)
            expect(page.locator("#output")).not_to_be_empty()
        with opened(browser, address, address="/docs/") as page:
            assert page.url == f"{address}/docs"
            expect(page.get_by_role("heading", name="POST /translate", exact=True)).to_be_visible()
