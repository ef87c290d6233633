"""Who may ask: keys that a request brings in a field, or as browsers and programs bring them in a header."""

import base64
import hmac
from collections.abc import Sequence
from hashlib import sha256

from regard.serving.fields import Fields
from regard.serving.http import HttpRequest
from regard.serving.problems import Problem

ASK = (("WWW-Authenticate", 'Basic realm="regard", charset="UTF-8"'),)  # has a browser ask for name and password


def admit(keys: Sequence[str], request: HttpRequest, fields: Fields, *, shown: bool) -> None:
    """Compares all keys in a time that says nothing of them. `shown`: to a person, who can still be asked for one."""
    given = sha256(brought(request, fields).encode()).digest()
    known = [hmac.compare_digest(given, sha256(key.encode()).digest()) for key in keys]  # all, always
    if not any(known):
        raise Problem(401, "Invalid API key", headers=ASK) if shown else Problem(403, "Invalid API key")


def brought(request: HttpRequest, fields: Fields) -> str:
    """The field `api_key`, else what follows Bearer, else the password that a browser was told."""
    given = fields.values.get("api_key")
    if isinstance(given, str):
        return given
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except ValueError:  # no base64, or no UTF-8
        return ""
