"""The published description is true: whatever it allows, and whatever it does not, gets an answer that it describes."""

import asyncio
import json
import string
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shouting import EN_DE, application

from regard.explaining.explanation import Explanation
from regard.serving.app import Settings
from regard.serving.comparing import Comparisons
from regard.serving.http import HttpRequest
from regard.serving.limits import TextLimits
from regard.serving.openapi import specification

LIMITS = TextLimits(seconds=20.0, characters=200, texts=4)
SPEC = specification(LIMITS, "")
MODELS = (("small", "en", "de", ""), ("large", "en", "de", "?"))
OPERATIONS = [(path, method) for path, methods in SPEC["paths"].items() for method in methods]
KINDS = {
    "string": str,
    "number": int | float,
    "integer": int,
    "object": dict,
    "array": list,
    "boolean": bool,
    "null": type(None),
}
WORD = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def handle(tmp_path_factory):
    """Answers a request, by a service without a port."""
    loop, folder, kept = asyncio.new_event_loop(), tmp_path_factory.mktemp("kept"), []
    given = Settings(suggestions=kept.append, comparisons=Comparisons(folder / "judged"))
    context = application(settings=given, limits=LIMITS, models=MODELS)
    app = loop.run_until_complete(context.__aenter__())

    async def whole(request):
        response = await app.handle(request)
        if not isinstance(response.body, bytes):
            return response, b"".join([part async for part in response.body])
        return response, response.body

    yield lambda request: loop.run_until_complete(asyncio.wait_for(whole(request), 30))
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()


def fits(value, schema):
    """Whether the value is as the schema has it; of the vocabulary, what the description uses."""
    if "$ref" in schema:
        return fits(value, SPEC["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "oneOf" in schema:
        return sum(fits(value, one) for one in schema["oneOf"]) == 1
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if "const" in schema:
        return value == schema["const"]
    kind = KINDS[schema["type"]]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        present = all(name in value for name in schema.get("required", []))
        if not schema.get("additionalProperties", True) and set(value) - set(known):
            return False
        return present and all(fits(value[name], known[name]) for name in value if name in known)
    return not isinstance(value, list) or "items" not in schema or all(fits(one, schema["items"]) for one in value)


def values(schema):
    """Values that are as the schema has them."""
    if "oneOf" in schema:
        return st.one_of([values(one) for one in schema["oneOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if isinstance(schema["type"], list):
        return st.none() | WORD
    simple = {
        "string": WORD,
        "integer": st.integers(schema.get("minimum", 0), schema.get("maximum", 10)),
        "boolean": st.booleans(),
        "null": st.none(),
        "array": st.lists(WORD, max_size=3),
        "object": st.dictionaries(WORD, WORD, max_size=3),
    }
    return simple[schema["type"]]


GOOD = {**EN_DE, "q": "a dog", "s": "ein Hund", "file": "a dog"}


def bodies(schema):
    """Objects as described, some of which can be answered; and such with something else in the place of something."""
    known, required = schema["properties"], schema["required"]
    optional = {name: values(one) for name, one in known.items() if name not in required}
    plain = {name: st.just(GOOD[name]) if name in GOOD else values(known[name]) for name in required}
    codes = {name: st.sampled_from(["en", "de", "auto", "zz"]) for name in EN_DE if name in required}
    formal = st.fixed_dictionaries({name: values(known[name]) for name in required} | codes, optional=optional)
    odd = st.dictionaries(st.sampled_from(sorted(known)) | WORD, ANYTHING, max_size=4)
    answerable = st.fixed_dictionaries(plain, optional=optional)
    return answerable | formal | st.builds(lambda one, other: {**one, **other}, formal | answerable, odd)


def form(body):
    plain = {
        key: json.dumps(value) if isinstance(value, dict) else value for key, value in body.items() if value is not None
    }
    return urlencode(plain, doseq=True).encode()


def parts(body):
    """A form with a file."""
    found = b""
    for name, value in body.items():
        file = '; filename="a.txt"' if name == "file" else ""
        head = f'--B\r\nContent-Disposition: form-data; name="{quote(name)}"{file}\r\n\r\n'
        found += head.encode() + str(value).encode() + b"\r\n"
    return found + b"--B--\r\n"


ENCODED = {
    "application/json": lambda body: json.dumps(body).encode(),
    "application/x-www-form-urlencoded": form,
    "multipart/form-data": parts,
}


def checked(handle, path, method, body, kind):
    """One request, whose answer is described for its path."""
    headers = {"content-type": f"{kind}; boundary=B"} if kind else {}
    response, data = handle(HttpRequest(method.upper(), path, "", headers, body, ""))
    known = SPEC["paths"].get(path) or SPEC["paths"]["/download_file/{name}"]
    described = known[method]["responses"]
    assert str(response.status) in described, (response.status, data)
    assert response.status < 500, data
    media = response.media.partition(";")[0]
    content = described[str(response.status)]["content"]
    assert media in content
    found = json.loads(data) if media == "application/json" else data.decode()
    assert fits(found, content[media]["schema"]), (response.status, found)
    return response.status


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=lambda one: one.strip("/"))
def test_whatever_is_sent_gets_an_answer_that_is_described(handle, path, method):
    seen = set()
    wanted = SPEC["paths"][path][method].get("requestBody", {}).get("content", {})

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(st.data())
    def test(data):
        name = data.draw(st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=20))
        kind = data.draw(st.sampled_from(sorted(wanted))) if wanted else ""
        body = data.draw(bodies(wanted[kind]["schema"]).map(ENCODED[kind]) | st.binary(max_size=30)) if kind else b""
        seen.add(checked(handle, path.replace("{name}", name), method, body, kind))

    test()
    expected = {"/download_file/{name}": 404, "/prefer": 404}.get(path, 200)
    assert expected in seen


def test_what_is_described_is_what_is_taken(handle):
    """By hand, so that no strategy above can pass by asking nothing."""
    asked = {"q": ["a", "b"], **EN_DE, "alternatives": 2, "check": True, "format": "html"}
    assert fits(asked, SPEC["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"])
    assert checked(handle, "/translate", "post", json.dumps(asked).encode(), "application/json") == 200
    asked = {"q": 3, **EN_DE}
    assert not fits(asked, SPEC["paths"]["/detect"]["post"]["requestBody"]["content"]["application/json"]["schema"])
    assert not fits({}, SPEC["components"]["schemas"]["Error"])


def test_an_explanation_is_described_as_the_package_describes_it(handle):
    """One schema, for files and for the service; the names of its parts are the only difference."""
    schema = Explanation.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    known = SPEC["components"]["schemas"]
    assert known["Explanation"]["properties"] == schema["properties"]
    assert {name: known[name] for name in schema["$defs"]} == schema["$defs"]
    answer = SPEC["paths"]["/explain"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/Explanation"}
    assert not fits({"format": 1, "model": "x", "steps": []}, answer)
    assert "$defs" not in json.dumps(SPEC)
