"""A service of tiny models in a process of its own, and what tests do with its page in a browser."""

import json
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect
expect.set_options(timeout=20_000)  # milliseconds: a busy machine is slow
EN_DE = {"source": "en", "target": "de"}
TEXT = "abc de"


@contextmanager
def served(*arguments):
    """Where `regard serve` listens with these models and options."""
    command = [sys.executable, "-m", "regard", "serve", *map(str, arguments), "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("serving at http://127.0.0.1:")
        yield line.split()[-1]
        process.kill()


@contextmanager
def opened(browser, service, *, width=1280, address="/"):
    """A page that says nothing on the console that is wrong, and asks nobody else for anything."""
    context, troubles = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="light"), []
    page = context.new_page()
    page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda asked: troubles.append(asked.url) if not ours(asked.url, service) else None)
    page.goto(service + address)
    yield page
    context.close()
    assert troubles == []


def ours(address, service):
    return address == service or address.startswith((service + "/", "data:", "blob:"))


def post(service, path, **fields):
    request = urllib.request.Request(
        service + path, json.dumps({**EN_DE, **fields}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def translated(service, text):
    return post(service, "/translate", q=text)["translatedText"]


def says(page, text):
    """The page comes to show this translation, to the character."""
    expect(page.locator("#output")).to_have_js_property("textContent", text)


def type_in(page, service, text=TEXT):
    page.locator("#source").fill(text)
    said = translated(service, text)
    says(page, said)
    return said


def words_of(page):
    return page.locator("#output").get_by_role("button")


def rows_of(side, place):
    return [i for i, token in enumerate(side["tokens"]) if place in token["words"]]


def agreeing(explanation):
    """By a plain loop: the layer in whose mean map most tokens of both sides choose each other."""
    layers = {}
    for block in explanation["attention"]:
        if block["kind"] == "cross":
            layers.setdefault(block["layer"], []).append(block["weights"])

    def score(layer):
        rows = [[sum(cell) for cell in zip(*row, strict=True)] for row in zip(*layers[layer], strict=True)]
        columns = list(zip(*rows, strict=True))
        chosen = [column.index(max(column)) for column in columns]
        return sum(chosen[row.index(max(row))] == q for q, row in enumerate(rows))

    return max(layers, key=lambda layer: (score(layer), layer))


def shares(explanation, place):
    """By a plain loop: the mean over the heads of that layer and the word's tokens, by source word, as shares."""
    layer, found = agreeing(explanation), [0.0] * len(explanation["source"]["words"])
    for block in explanation["attention"]:
        for row in rows_of(explanation["target"], place) if (block["kind"], block["layer"]) == ("cross", layer) else ():
            for value, token in zip(block["weights"][row], explanation["source"]["tokens"], strict=True):
                for word in token["words"]:
                    found[word] += value
    return [value / sum(found) for value in found]
