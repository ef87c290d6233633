"""What a client is told when its request cannot be answered: a status, one line, and nothing of how we are built."""

import json
from collections.abc import Sequence

from regard.serving.http import HttpResponse

BUSY = (429, 503, 504)  # it may be different in a moment
MOMENT = 1  # seconds that such a client is told to wait


class Problem(Exception):  # noqa: N818
    """`text` is for people; the texts of LibreTranslate are kept, since clients compare them."""

    def __init__(self, status: int, text: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers

    def response(self) -> HttpResponse:
        return json_response({"error": self.text}, self.status, self.headers)


def json_response(value: object, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> HttpResponse:
    again = [("Retry-After", str(MOMENT))] if status in BUSY else []
    body = json.dumps(value, ensure_ascii=False).encode()
    return HttpResponse(status, body, "application/json", [*headers, *again])


def refuse(status: int, reason: str) -> HttpResponse:
    """What the connection itself refuses, said in the same form."""
    kind = "Slowdown" if status == 503 else "Invalid request"
    return Problem(status, f"{kind}: {reason}").response()
