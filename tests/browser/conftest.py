"""A real browser for the tests of pages."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(
    scope="module"
)  # while Playwright is open, this thread has a running event loop: others start their own
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs Chromium, and there is none on the path")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()
