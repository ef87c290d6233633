"""A published vocabulary in our order; a damaged file of ours is one line."""

import json

import pytest

from regard.errors import ModelFormatError
from regard.text.load import load
from regard.text.special import NAMES
from regard.text.vocabulary import Vocabulary


def broken(tmp_path, content, **files):
    (tmp_path / "x.json").write_text(json.dumps(content))
    for name, data in files.items():
        (tmp_path / f"x.{name}").write_bytes(data)
    with pytest.raises(ModelFormatError) as found:
        load(tmp_path, "x")
    assert str(found.value).startswith(f"{tmp_path / 'x.json'}: ")
    assert "\n" not in str(found.value)
    return str(found.value)


SMALL = {"names": ["<e>", "a"], "special": [-1, -1, -1, 0], "added": [], "last": [], "unused": 0}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"names": ["a", 1]}, "no vocabulary in it"),
        ({"names": ["a", "a"]}, "'a' is there twice"),
        ({"special": [0, 0, -1, -1]}, "two meanings"),
        ({"special": [0]}, "1 special ids"),
        ({"special": [-1, -1, -1, 2]}, "id 2 is outside the 2 names"),
        ({"special": [-2, -1, -1, 0]}, "id -2 is outside"),
        ({"last": [0]}, "two meanings"),
        ({"names": ["<e>", ""], "added": [1]}, "an added name is empty"),
        ({"unused": 10**9}, "at most 10000000"),
        ({"unused": True}, "no vocabulary in it"),
        ({"added": None}, "no vocabulary in it"),
        ({}, "of the 256 bytes have no id"),
    ],
    ids=str,
)
def test_a_damaged_vocabulary_is_refused(change, what, tmp_path):
    assert what in broken(tmp_path, {"kind": "byte-level", "vocabulary": {**SMALL, **change}, "merges": []})


def test_a_damaged_file_of_ours_is_refused(tmp_path):
    assert "expected a kind" in broken(tmp_path, {"kind": "byte-level", "vocabulary": SMALL, "merges": [["a"]]})
    assert "expected a kind" in broken(tmp_path, {"kind": "wordpiece", "vocabulary": SMALL, "cleaning": {"lower": 1}})
    assert "expected a kind" in broken(tmp_path, {"kind": "symbols", "symbols": ["a b"]})
    assert "expected a kind" in broken(tmp_path, {"kind": "symbols", "symbols": ["a", "a"]})
    assert "x.spm: No such file" in broken(tmp_path, {"kind": "sentencepiece", "vocabulary": SMALL})
    assert "not a SentencePiece" in broken(tmp_path, {"kind": "sentencepiece", "vocabulary": SMALL}, spm=b"?")


def test_ids_stand_in_the_order_special_others_unused_last():
    vocabulary = Vocabulary(("a", "<m>", "<e>", "b", "<p>"), (4, -1, -1, 2), (), (1,), 2)
    assert vocabulary.order == (4, -1, -1, 2, 0, 3, 5, 6, 1)
    assert vocabulary.shown == [*NAMES, "a", "b", "<unused_5>", "<unused_6>", "<m>"]
    assert vocabulary.ours == {"a": 4, "b": 5, "<m>": 8}
    assert vocabulary.ordinary == {"a": 4, "b": 5}
    assert list(vocabulary.parts("a<m><m>b<e>")) == [(0, "a", None), (1, "<m>", 8), (4, "<m>", 8), (7, "b<e>", None)]
