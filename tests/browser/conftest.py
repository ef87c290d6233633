"""A real browser for the tests of pages."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")  # the first on the path
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(
    scope="module"
)  # while Playwright is open, this thread has a running event loop: others start their own
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"needs Chromium or Chrome, and there is none on the path: {', '.join(NAMES)}")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()
