"""The splitter's file says what its rule says."""

import json
import re

import numpy as np
import pytest

from regard.exporting.splitter import ENDS, parameters, settings, splitter, varint


def fields(message: bytes) -> dict[int, list[int | bytes]]:
    """A reader of Protocol Buffers messages, independent of the writer."""
    found: dict[int, list[int | bytes]] = {}
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = number()
        size = number()
        if key & 7 == 2:
            found.setdefault(key >> 3, []).append(message[place : place + size])
            place += size
        else:
            assert key & 7 == 0
            found.setdefault(key >> 3, []).append(size)
    return found


def sentences(text: str) -> list[str]:
    """What the weights say of a text, computed by loops: an end where its class scores highest."""
    units, weights = json.loads(settings()["vocab"])["_unit2id"], parameters()
    seen = [[*weights["kinds"][units.get(c, 1)], float(c.isupper())] for c in text] + [[0.0] * 5] * 2
    found, start = [], 0
    for t in range(len(text)):
        scores = weights["bias"] + np.einsum("cik,ki->c", weights["weights"], np.array(seen[t : t + 3]))
        if scores.argmax() == 2 or t == len(text) - 1:
            found.append(text[start : t + 1].strip())
            start = t + 1
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two dogs run. A cat sits! Why? Over", ["Two dogs run.", "A cat sits!", "Why?", "Over"]),
        ("It costs 3.50, e.g. today. and more", ["It costs 3.50, e.g. today. and more"]),
        ("Er kam. Über Nacht", ["Er kam.", "Über Nacht"]),
        ("एक। दो।", ["एक।", "दो।"]),
        ("你好。再见！Ok", ["你好。", "再见！", "Ok"]),
        ("no end", ["no end"]),
    ],
)
def test_sentences_end_where_the_rule_says(text, expected):
    assert sentences(text) == expected


def test_the_rule_is_that_of_a_regular_expression():
    kinds = ["".join(re.escape(end) for end, kind in ENDS.items() if kind == wanted) for wanted in (0, 1, 2)]
    rule = re.compile(rf"(?<=[{kinds[0]}]) (?=[A-Z])|(?<=[{kinds[1]}]) |(?<=[{kinds[2]}])")
    text = "".join(np.random.default_rng(3).choice([*ENDS, " ", "A", "b"], 500)).replace("  ", " ").strip()
    assert sentences(text) == [part.strip() for part in rule.split(text) if part.strip()]


def test_the_file_holds_the_graph_its_weights_and_its_settings():
    model = fields(splitter())
    graph = fields(model[7][0])
    assert [fields(node)[4][0] for node in graph[1]] == [b"Gather", b"Concat", b"Transpose", b"Conv", b"Transpose"]
    stored = {fields(one)[8][0].decode(): fields(one) for one in graph[5]}
    for name, values in parameters().items():
        found = np.frombuffer(stored[name][9][0], "<f4").reshape(stored[name][1])
        np.testing.assert_array_equal(found, values)
    assert {fields(one)[1][0].decode(): fields(one)[2][0].decode() for one in model[14]} == settings()


@pytest.mark.parametrize(("number", "expected"), [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")])
def test_numbers_are_written_seven_bits_at_a_time(number, expected):
    assert varint(number) == expected
