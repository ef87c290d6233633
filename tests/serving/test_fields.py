"""The same fields come out of every form, and what cannot be read is refused in one line."""

import json

import pytest

from regard.serving.fields import Upload, depth, parse_json, read_fields
from regard.serving.http import HttpRequest
from regard.serving.problems import Problem


def request(body=b"", kind="", query=""):
    return HttpRequest("POST", "/translate", query, {"content-type": kind} if kind else {}, body, "")


PARTS = (
    b'--XX\r\nContent-Disposition: form-data; name="q"\r\n\r\nGr\xc3\xbc\xc3\x9fe & so\r\n'
    b'--XX\r\nContent-Disposition: form-data; name="source"\r\n\r\nde\r\n'
    b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
    b"one\r\ntwo\n\x00\xff\r\n--XX--\r\n"
)


@pytest.mark.parametrize(
    "asked",
    [
        request(json.dumps({"q": "Grüße & so", "source": "de", "extra": None}).encode(), "application/json"),
        request(json.dumps({"q": "Grüße & so", "source": "de"}).encode()),
        request(b"q=Gr%C3%BC%C3%9Fe+%26+so&source=de", "application/x-www-form-urlencoded; charset=utf-8"),
        request(PARTS, "multipart/form-data; boundary=XX"),
        request(query="q=Gr%C3%BC%C3%9Fe%20%26%20so&source=de"),
        request(b'{"q": "Gr\\u00fc\\u00dfe & so"}', "application/json", "source=de&q=other"),
    ],
    ids=["json", "unnamed", "form", "parts", "query", "both"],
)
def test_every_form_says_the_same(asked):
    fields = read_fields(asked)
    assert fields.texts("q") == "Grüße & so"
    assert fields.text("source") == "de"


def test_a_file_comes_as_it_is():
    assert read_fields(request(PARTS, "multipart/form-data; boundary=XX")).files == {
        "file": Upload("a.txt", b"one\r\ntwo\n\x00\xff")
    }


@pytest.mark.parametrize(
    ("about", "name"),
    [
        ('name="file"; filename="a;b c.txt"', "a;b c.txt"),
        ("name=file; filename=a.txt", "a.txt"),
        ('filename="x.txt"; name="file"; filename*=utf-8\'\'na%C3%AFve.txt', "utf-8''naïve.txt"),
        ('name="file"; filename="grüße.txt"', "grüße.txt"),
    ],
)
def test_files_are_named_as_browsers_and_libraries_name_them(about, name):
    data = f"--X\r\nContent-Type: text/plain\r\ncontent-disposition: form-data; {about}\r\n\r\nx\r\n--X--\r\n".encode()
    found = read_fields(request(data, 'multipart/form-data; boundary="X"'))
    assert found.files == {"file": Upload(name, b"x")}


def test_several_texts_are_a_list_in_json_and_a_repeated_field_in_a_form():
    asked = (
        request(b'{"q": ["a", "b"]}', "application/json"),
        request(b"q=a&q=b", "application/x-www-form-urlencoded"),
    )
    assert [read_fields(one).texts("q") for one in asked] == [["a", "b"]] * 2


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"[1, 2]", b'"text"', b"{'q': 1}", b'{"q": NaN}', b'{"q": Infinity}', b'{"q": 1, "q": 2}',
        b'{"q": "\xff"}', b'{"q": ' + b"[" * 40 + b"]" * 40 + b"}", b'{"q": ' + b"9" * 100_000 + b"}",
        b"[" * 100_000, b'{"q": "\\ud800"', b"\x00",
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_refused(data):
    with pytest.raises(Problem, match="Invalid JSON format") as caught:
        read_fields(request(data, "application/json"))
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "data",
    [b'"' + b'\\"' * 500_000, b'"' + b'\\"' * 500_000 + b"\\", b'""' * 500_000, b"[]" * 500_000, b'{"a":' * 200_000],
    ids=["quotes", "half a sign", "strings", "lists", "deep"],
)
def test_what_is_made_to_take_long_is_refused_like_anything_else(data):
    """Each would take minutes if every quote were tried as the first of a string."""
    with pytest.raises(Problem, match="Invalid JSON format"):
        parse_json(data)


def test_half_a_character_is_refused_and_a_whole_one_taken():
    assert parse_json(b'{"q": "\\ud83d\\ude42"}') == {"q": "\N{SLIGHTLY SMILING FACE}"}
    for data in (b'{"q": "\\ud83d"}', b'{"\\udc00": 1}', b'{"q": ["a", "\\ude42\\ud83d"]}'):
        with pytest.raises(Problem, match="Invalid JSON format"):
            parse_json(data)


def test_depth_counts_brackets_outside_strings_only():
    assert depth(b'{"a": [1, {"b": "[[[{{{ \\" [["}]}') == 3
    assert parse_json(b'{"a": "' + b"[" * 100 + b'"}') == {"a": "[" * 100}


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (request(b"\xff", "application/x-www-form-urlencoded"), "the form is not UTF-8"),
        (request(b"q=%ff", "application/x-www-form-urlencoded"), "not a form that can be read"),
        (request(b"&".join(b"a%d=1" % i for i in range(200)), "application/x-www-form-urlencoded"), "not a form"),
        (request(b"nothing", "multipart/form-data"), "not a form that can be read"),
        (request(b"--X\r\n\r\nx\r\n--X--", "multipart/form-data; boundary=X"), "a part of the form has no name"),
        (request(b"", "multipart/form-data; boundary=X", "q=%ff"), "not a form that can be read"),
        (request(b"x", "multipart/form-data; boundary=X"), "not a form that can be read"),
        (request(b"--X--", "multipart/form-data; boundary=X"), "not a form that can be read"),
        (request(PARTS[:-4], "multipart/form-data; boundary=XX"), "not a form that can be read"),
        (request(b"--X\r\n" * 200 + b"--X--", "multipart/form-data; boundary=X"), "not a form that can be read"),
        (
            request(
                b'--X\r\nContent-Disposition: form-data; name="q"\r\n\r\n\xff\r\n--X--',
                "multipart/form-data; boundary=X",
            ),
            "q is not UTF-8",
        ),
        (request(b"x", "image/png"), "content type image/png is not supported"),
    ],
)
def test_forms_that_cannot_be_read_are_refused(asked, text):
    with pytest.raises(Problem, match=text):
        read_fields(asked)


@pytest.mark.parametrize(
    ("body", "read", "text"),
    [
        ({}, lambda f: f.texts("q"), "missing q parameter"),
        ({"q": 3}, lambda f: f.texts("q"), "q must be a string or a list of strings"),
        ({"q": ["a", 3]}, lambda f: f.texts("q"), "q must be a string or a list of strings"),
        ({"source": ["en"]}, lambda f: f.text("source"), "source must be a string"),
        ({"source": ""}, lambda f: f.text("source"), "missing source parameter"),
        ({"alternatives": -1}, lambda f: f.number("alternatives", 0, 8), "a whole number of at least 0"),
        ({"alternatives": True}, lambda f: f.number("alternatives", 0, 8), "a whole number of at least 0"),
        ({"alternatives": 1.5}, lambda f: f.number("alternatives", 0, 8), "a whole number of at least 0"),
        ({"alternatives": "x"}, lambda f: f.number("alternatives", 0, 8), "a whole number of at least 0"),
        ({"alternatives": 10**4000}, lambda f: f.number("alternatives", 0, 8), r"\(1(0){19}\) exceeds limit"),
        ({"check": 1}, lambda f: f.flag("check"), "check must be true or false"),
        ({"method": "x"}, lambda f: f.choice("method", ["a", "b"]), "method must be one of a, b"),
        ({"alternatives": 10000}, lambda f: f.number("alternatives", 0, 8), r"\(10000\) exceeds limit \(8\)"),
        ({"glossary": [1]}, lambda f: f.mapping("glossary", 2), "must be an object of strings"),
        ({"glossary": {"a": 1}}, lambda f: f.mapping("glossary", 2), "must be an object of strings"),
        ({"glossary": {"a": "b", "c": "d", "e": "f"}}, lambda f: f.mapping("glossary", 2), "exceeds limit"),
    ],
)
def test_values_of_another_kind_are_refused_by_name(body, read, text):
    with pytest.raises(Problem, match=text):
        read(read_fields(request(json.dumps(body).encode(), "application/json")))


def test_values_that_are_not_given_have_their_default():
    fields = read_fields(request(b'{"alternatives": null, "format": null, "n": "3"}', "application/json"))
    assert fields.number("alternatives", 2, 8) == 2
    assert fields.text("format", "text") == "text"
    assert fields.number("n", 0, 8) == 3
    assert fields.mapping("glossary", 5) == {}
    assert fields.choice("method", ["a"]) is None
    assert not fields.flag("check")
    assert read_fields(request(b'{"n": 3.0}', "application/json")).number("n", 0, 8) == 3
    assert [read_fields(request(query=f"x={word}")).flag("x") for word in ("true", "1", "False", "")] == [1, 1, 0, 0]
