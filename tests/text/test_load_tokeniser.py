"""What was saved is read back the same; what is broken is refused in one line that names the file."""

import io
import json
import random

import pytest
from sentencepiece import SentencePieceTrainer

from regard.errors import ModelFormatError
from regard.text.learn import learn
from regard.text.load import load
from regard.text.options import TextOptions

LINES = ["the cat sat on the mat", "the other cat then sat there", "naïve\u200b text"] * 10


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters", "bytes"])
def test_a_tokeniser_read_back_is_the_same(kind, tmp_path):
    before = learn(LINES, TextOptions(kind=kind), 1)
    before.save(tmp_path / "new", "shared")
    after = load(tmp_path / "new", "shared")
    assert type(after) is type(before)
    assert [after.name(id) for id in range(len(after))] == [before.name(id) for id in range(len(before))]
    for text in [*LINES, "▁漢 unseen"]:
        assert after.pieces(text) == before.pieces(text)
        assert after.sample(text, 0.4, random.Random(1)) == before.sample(text, 0.4, random.Random(1))


def test_a_folder_without_a_tokeniser_is_refused(tmp_path):
    with pytest.raises(ModelFormatError, match=r"no tokeniser, neither source\.model nor source\.json"):
        load(tmp_path, "source")


def refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelFormatError) as found:
        load(tmp_path, "x")
    message = str(found.value)
    assert message.startswith(f"{tmp_path / name}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("content", [b"", b"\x00", b"not a model", b"\xff" * 500, b"PK\x03\x04", b"{}"], ids=repr)
def test_a_file_that_is_no_model_is_refused(content, tmp_path):
    refused(tmp_path, "x.model", content)


def test_a_damaged_model_is_refused_or_still_a_tokeniser(tmp_path):
    learn(LINES, TextOptions(), 1).save(tmp_path, "x")
    path, rng = tmp_path / "x.model", random.Random(3)
    whole = path.read_bytes()
    refusals = 0
    for _ in range(60):
        damaged = bytearray(whole[: rng.randrange(1, len(whole))] if rng.random() < 0.5 else whole)
        for _ in range(rng.randint(0, 20)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            assert load(tmp_path, "x").encode("the cat") != []
        except ModelFormatError:
            refusals += 1
    assert refusals > 30


def foreign(**settings):
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        vocab_size=300,
        hard_vocab_limit=False,
        minloglevel=9,
        **settings,
    )
    return model.getvalue()


OUR_IDS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}


@pytest.mark.parametrize(
    "settings", [{"normalization_rule_name": "identity"}, {**OUR_IDS, "normalization_rule_name": "nmt_nfkc"}], ids=str
)
def test_a_model_with_other_ids_or_with_normalisation_is_refused(settings, tmp_path):
    assert "of another kind" in refused(tmp_path, "x.model", foreign(**settings))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[",
        b"\xff\xfe",
        b"[" * 100_000,
        *(
            json.dumps(wrong).encode()
            for wrong in (
                [],
                "bytes",
                {"kind": "words"},
                {"kind": "characters"},
                {"kind": "characters", "characters": "abc"},
                {"kind": "characters", "characters": ["ab"]},
                {"kind": "characters", "characters": ["a", 1]},
                {"kind": "characters", "characters": ["a", "a"]},
                {"kind": "characters", "characters": [["a"]]},
            )
        ),
    ],
    ids=lambda content: repr(content[:40]),
)
def test_a_broken_small_file_is_refused(content, tmp_path):
    refused(tmp_path, "x.json", content)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def forbidden(self):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "x.json").touch()
    monkeypatch.setattr("pathlib.Path.read_bytes", forbidden)
    with pytest.raises(ModelFormatError, match="Permission denied; make the file readable"):
        load(tmp_path, "x")
