"""The frame of a page: one file of HTML that loads nothing and runs no script but its own."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from regard.explaining.markup import text


def document(
    title: str, body: str, styles: Sequence[str] = ("page.css",), scripts: Sequence[str] = ("page.js",)
) -> str:
    """The whole page; a policy in its head holds the browser to it. Styles and scripts are files of this folder."""
    style, script = ("".join(asset(name) for name in names) for names in (styles, scripts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{text(title)}</title>\n<style>{style}</style></head>\n"
        f"<body><main>\n{body}</main>\n<script>{script}</script></body></html>\n"
    )


def asset(name: str) -> str:
    return resources.files("regard.explaining").joinpath(name).read_text(encoding="utf-8")


def section(title: str, body: str) -> str:
    return f"<section><h2>{text(title)}</h2>{body}</section>\n" if body else ""
