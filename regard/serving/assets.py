"""The pages and what they are made of: files of the package, read when they are asked for."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from regard.explaining.document import asset as shared
from regard.explaining.explain_page import SCRIPTS
from regard.serving.http import HttpResponse
from regard.serving.problems import Problem

MEDIA = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}
PAGES = {"/": "index.html", "/docs": "docs.html"}
EXPLAINING = ("page.css", "explain_page.js", "explain_page.css")  # that pages of files have too
SCRIPT = "explain_page.js"  # goes out with the others that such a page has
# Nothing comes from elsewhere, nothing goes elsewhere.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (("Content-Security-Policy", POLICY), ("Cache-Control", "no-cache"), ("Referrer-Policy", "no-referrer"))


def asset(path: str) -> HttpResponse:
    """One of the files that are there; a path leads nowhere else."""
    name = PAGES.get(path) or path.removeprefix("/static/")
    found, kind = known().get(name), name.rpartition(".")[2]
    if found is None or kind not in MEDIA:
        raise Problem(404, "Not found")
    content = "".join(map(shared, SCRIPTS)).encode() if name == SCRIPT else found.read_bytes()
    return HttpResponse(200, content, MEDIA[kind], HEADERS)


def known() -> dict[str, Traversable]:
    """What may be asked for, by name."""
    own = {file.name: file for file in files("regard.serving").joinpath("static").iterdir()}
    others = [file for file in files("regard.explaining").iterdir() if file.name in EXPLAINING]
    return {**{file.name: file for file in others}, **own}
