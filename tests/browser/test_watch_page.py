"""`regard watch` in a real browser: a run directory that the test writes grows, and the page follows it."""

import json
import re
import subprocess
import sys

import pytest

from regard.evaluation.samples import Sample
from regard.files import write_atomically
from regard.training.events import Finished, Started, Stepped, Stopped, Validated, to_json

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect
expect.set_options(timeout=20_000)  # milliseconds: a busy machine is slow


def step(number):
    """Losses 10/1, 10/2, … at steps 10, 20, …"""
    return Stepped(10 * number, 0, 10 / number, 0.001, 1.0, 500, 1000.0 * number, number / 10, 6.0 * number, 61.0)


def validation(number, bleu, *outputs):
    samples = tuple(Sample(f"a <b> {i}", output, f"expected {i}") for i, output in enumerate(outputs))
    return Validated(10 * number, 6.0 * number, {"loss": 3.0, "bleu": bleu}, True, samples)


def film(*frames):
    """Frames of (step, layer)."""
    maps = [[[0.1, 0.8, 0.1], [0, 0, 1]], [[1, 0, 0], [1, 0, 0]]]
    picture = {"source": ["▁A", "▁man", "</s>"], "target": ["▁Mann", "</s>"], "layers": maps}
    return "".join(json.dumps({"step": step, "layer": layer, "pictures": [picture]}) + "\n" for step, layer in frames)


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "en-de"
    folder.mkdir()
    (folder / "recipe.yaml").write_text("model:\n  heads: 4  # <b>\n", encoding="utf-8")
    return folder


@pytest.fixture
def page(browser, run):
    """The page of the run; nothing wrong on the console, and nobody else asked."""
    command, troubles = [sys.executable, "-m", "regard", "watch", str(run), "--port", "0"], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("watching at http://127.0.0.1:")
        context = browser.new_context(viewport={"width": 390, "height": 900}, color_scheme="dark")
        found, address = context.new_page(), line.split()[-1]
        found.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
        found.on("pageerror", lambda error: troubles.append(str(error)))
        found.on(
            "request", lambda one: troubles.append(one.url) if not one.url.startswith((address, "data:")) else None
        )
        found.goto(address)
        yield found
        context.close()
        process.terminate()
        assert process.wait(timeout=30) == 0
    assert troubles == []


def append(run, *events):
    with (run / "training.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(one if isinstance(one, str) else to_json(one) + "\n" for one in events)


def chart(page, title):
    return page.locator(".chart").filter(has=page.get_by_role("img", name=f"{title} by step", exact=True))


def dots(page, title, line):
    return chart(page, title).locator(f".line.s{line} circle")


def test_the_page_follows_a_run_from_before_its_first_event_to_its_figures(page, run):
    expect(page.locator("#state")).to_have_text("waiting for the first event")
    expect(page.locator("#name")).to_have_text("en-de")
    expect(page.locator("#recipe pre")).to_have_text("model:\n  heads: 4  # <b>")

    append(run, Started(1234, 100, None, None, None), step(1), step(2))
    expect(page.locator("#state")).to_have_text("learning")
    expect(page.locator("#left")).to_have_text("step 20 · epoch 1 · 20 % · 12s so far · 1m01s left")
    expect(dots(page, "loss", 0)).to_have_count(2)
    expect(chart(page, "loss").locator("output")).to_have_text("step 20 · 12s · training 5")

    append(run, step(4), "{ torn\n", validation(4, 20.5, "x", "y"), '{"event": "Stepped"')
    expect(dots(page, "loss", 0)).to_have_count(3)
    expect(dots(page, "loss", 1)).to_have_count(1)
    expect(dots(page, "validation bleu", 0)).to_have_count(1)
    expect(page.locator("#damaged")).to_have_text("1 line could not be read")
    sample = page.locator(".sample").nth(1)
    expect(sample.locator("dt")).to_have_text(["source", "step 40", "reference"])
    expect(sample.locator("dd")).to_have_text(["a <b> 1", "y", "expected 1"])
    # 1500 tokens took 0.5 + 0.25 + 0.125 seconds.
    expect(chart(page, "tokens per second").locator("output")).to_contain_text("tokens per second 1714")

    # A resumed run writes its log anew, up to the step it goes on from.
    kept = [
        Started(1234, 100, None, None, None),
        step(1),
        Started(1234, 100, None, None, 10),
        Stopped(10, "interrupted"),
    ]
    write_atomically(run / "training.jsonl", "".join(to_json(one) + "\n" for one in kept))
    expect(page.locator("#state")).to_contain_text("interrupted at step 10")
    expect(dots(page, "loss", 0)).to_have_count(1)
    expect(page.locator("#damaged")).to_be_hidden()
    expect(page.locator("#samples")).to_be_hidden()

    write_atomically(run / "film.jsonl", film((0, 2), (10, 1)))
    expect(page.locator("#strip button")).to_have_count(2)
    expect(page.locator("#step")).to_have_text("step 10")
    page.locator("#strip button").first.click()
    expect(page.locator("#step")).to_have_text("step 0")
    expect(page.locator("#large .names text")).to_have_text(["▁A", "▁man", "</s>", "▁Mann", "</s>"])
    expect(page.locator("#filmed")).to_have_text("layer 1")  # that of the last frame
    expect(page.locator("#large .names ~ g > g:not(.links) path")).to_have_count(3)  # shades of 0.1, 0.8 and 1
    linked = page.locator("#large .links .edge")
    expect(linked).to_have_attribute("d", re.compile(r"^M1\.\d+ 0\.\d+h[^M]*M2\.\d+ 1\.\d+h[^M]*$"))
    write_atomically(run / "film.jsonl", film((0, 2), (10, 1), (20, 2)))
    expect(page.locator("#filmed")).to_have_text("layer 2")
    expect(linked).to_have_attribute("d", re.compile(r"^M0\.\d+ 0\.\d+h[^M]*M0\.\d+ 1\.\d+h[^M]*$"))

    done = Finished(20, 1.0, 99.0, 3.0, {"loss": 3.0}, "last")
    append(run, Started(1234, 100, None, None, 10), step(2), Stopped(20, "done"), done)
    expect(page.locator("#state")).to_have_text("finished: 20 steps in 1m39s")
    (run / "report.html").write_text("<!doctype html><title>report</title>", encoding="utf-8")
    write_atomically(run / "manifest.json", json.dumps({"validation": {"bleu": {"score": 41.12, "signature": "s"}}}))
    expect(page.locator("#figures .tile").filter(has_text="bleu").locator("b")).to_have_text("41.12")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("link", name="Report").click()
    expect(page).to_have_title("report")


def test_samples_are_followed_and_what_they_were_before_is_a_click_away(page, run):
    append(run, Started(1234, 100, None, None, None), step(1), validation(1, 1.0, "eins"), validation(2, 2.0, "eins"))
    expect(page.locator(".sample dd.now")).to_have_text(["eins"])
    expect(page.locator(".sample details")).to_have_count(0)
    append(run, validation(3, 3.0, "zwei"))
    expect(page.locator(".sample dd.now")).to_have_text(["zwei"])
    page.get_by_text("earlier").click()
    append(run, validation(4, 4.0, "drei"))
    expect(page.locator(".sample dd.now")).to_have_text(["drei"])
    expect(page.locator(".sample details dt")).to_have_text(["step 10", "step 30"])  # stays open
    expect(page.locator(".sample details dd")).to_have_text(["eins", "zwei"])
    expect(page.locator(".sample details dd").first).to_be_visible()
    expect(page.get_by_role("link", name="Training")).to_have_attribute("aria-current", "page")
    expect(page.locator("#service")).to_be_hidden()
