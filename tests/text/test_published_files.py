"""A published folder is read as the published code reads it, saved and read back; what is damaged is one line."""

import json
import random

import pytest
from published_examples import (
    BERT_SPECIAL,
    END,
    FIXED,
    byte_level,
    drawn,
    theirs,
    wordpiece,
    write_byte_level,
    write_marian,
    write_t5,
    write_wordpiece,
)

from regard.errors import ModelFormatError
from regard.text import reading
from regard.text.load import load
from regard.text.published import read_byte_level, read_marian, read_t5, read_wordpiece
from regard.text.special import EOS, PAD
from regard.text.tokeniser import Tokeniser

WRITERS = {"gpt2": write_byte_level, "bert": write_wordpiece, "t5": write_t5, "marian": write_marian}
READERS = {
    "gpt2": lambda folder: [read_byte_level(folder)],
    "bert": lambda folder: [read_wordpiece(folder)],
    "t5": lambda folder: [read_t5(folder)],
    "marian": lambda folder: list(read_marian(folder)),
}
TEXTS = [*FIXED, *drawn(12, seed=9), "a <extra_id_1> b [MASK]", ">>fra<< a"]
# Where all the published programs agree: no names of special ids, no U+0085, no marks that follow on a letter.
PLAIN = [
    "",
    "the cat",
    "  the   cat\n",
    "Die Katze, naïve café ﬁ ½ 漢字 1234",
    "didn't <extra_id_4> sat<extra_id_0>",
    "x" * 120,
]
families = pytest.mark.parametrize("family", WRITERS)


def edited(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@families
def test_a_published_tokeniser_read_back_is_the_same(family, tmp_path):
    for before in READERS[family](WRITERS[family](tmp_path / "theirs")):
        for ours in (before, before.rows(before.order[-1] + 900)):
            ours.save(tmp_path / "ours", "x")
            after = load(tmp_path / "ours", "x")
            assert isinstance(after, Tokeniser)
            assert type(after) is type(ours)
            assert after.order == ours.order
            assert [after.name(id) for id in range(len(after))] == [ours.name(id) for id in range(len(ours))]
            for text in TEXTS:
                assert after.pieces(text) == ours.pieces(text)
                assert after.decode(after.encode(text)) == ours.decode(ours.encode(text))


@families
def test_rows_beyond_the_names_become_ids_that_no_text_has(family, tmp_path):
    for before in READERS[family](WRITERS[family](tmp_path)):
        known = max(before.order) + 1
        after = before.rows(known + 28)
        fillers = before.order.count(-1)
        assert sorted(after.order) == [-1] * fillers + list(range(known + 28))
        assert len(after) == len(before) + 28
        for text in TEXTS:
            assert theirs(after, after.encode(text)) == theirs(before, before.encode(text))
        unused = [id for id in range(len(after)) if after.order[id] >= known]
        assert after.name(unused[0]) == f"<unused_{known}>"
        assert after.decode([*after.encode("the cat"), *unused]) == before.decode(before.encode("the cat"))
        assert after.rows(known).order == before.order
        with pytest.raises(ModelFormatError, match=f"{known} names for a model of {known - 1} rows"):
            before.rows(known - 1)


def test_masks_and_sentinels_stay_last_when_there_are_more_rows(tmp_path):
    bert = read_wordpiece(write_wordpiece(tmp_path / "bert"))
    assert bert.rows(200).order[-1] == bert.order[-1]
    t5 = read_t5(write_t5(tmp_path / "t5"))
    more = t5.rows(max(t5.order) + 29)
    assert [more.order[id] for id in more.sentinels] == [t5.order[id] for id in t5.sentinels]


@families
def test_ids_and_decoded_text_are_those_of_transformers(family, tmp_path):
    transformers = pytest.importorskip("transformers")
    classes = {"gpt2": "GPT2Tokenizer", "bert": "BertTokenizer", "t5": "T5Tokenizer", "marian": "MarianTokenizer"}
    reference = getattr(transformers, classes[family]).from_pretrained(WRITERS[family](tmp_path / "theirs"))
    reference.save_pretrained(tmp_path / "again")
    for folder in ("theirs", "again"):  # the second in the form that transformers writes today
        source, *target = READERS[family](tmp_path / folder)
        for text in PLAIN:
            ids = reference.encode(text, add_special_tokens=False)
            assert theirs(source, source.encode(text)) == ids
            assert source.decode(source.encode(text)) == reference.decode(ids, skip_special_tokens=True)
            for side in target:
                ids = reference(text_target=text, add_special_tokens=False)["input_ids"]
                assert theirs(side, side.encode(text)) == ids


def test_the_fast_file_says_the_same_as_the_older_ones(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    old, new = read_byte_level(write_byte_level(tmp_path / "old")), read_byte_level(tmp_path)
    for settings in ((True, None, True), (False, True, False)):
        wordpiece(*settings).save(str(tmp_path / "tokenizer.json"))
        older, newer = read_wordpiece(write_wordpiece(tmp_path / "old", *settings)), read_wordpiece(tmp_path)
        assert [new.order, newer.order] == [old.order, older.order]
        for text in TEXTS:
            assert [new.pieces(text), newer.pieces(text)] == [old.pieces(text), older.pieces(text)]


def test_capitals_are_as_the_fast_file_says_where_the_settings_do_not(tmp_path):
    write_wordpiece(tmp_path, False)
    (tmp_path / "tokenizer_config.json").unlink()
    assert read_wordpiece(tmp_path).encode("The") == read_wordpiece(tmp_path).encode("the")  # as BERT does by itself
    wordpiece(False).save(str(tmp_path / "tokenizer.json"))
    assert read_wordpiece(tmp_path).encode("The") != read_wordpiece(tmp_path).encode("the")


def test_a_special_name_that_the_settings_leave_empty_is_the_usual_one(tmp_path):
    before = read_wordpiece(write_wordpiece(tmp_path))
    edited(tmp_path / "tokenizer_config.json", mask_token=None, cls_token={"content": "[CLS]"})
    assert read_wordpiece(tmp_path).order == before.order


def test_merges_may_be_written_as_one_text_each(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    before, content = read_byte_level(tmp_path), json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert read_byte_level(tmp_path).encode(FIXED[-1]) == before.encode(FIXED[-1])


def test_added_names_are_one_id_in_a_text_and_are_decoded(tmp_path):
    size = byte_level().get_vocab_size()
    write_byte_level(tmp_path)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<|user|>": size, "<|use": size + 1}))
    listed = {"content": "naïve x", "lstrip": False}
    tokens = {"0": {"content": END}, str(size + 2): listed}
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"added_tokens_decoder": tokens, "eos_token": {"content": END}})
    )
    ours = read_byte_level(tmp_path)
    text = f"the<|user|>cat <|use naïve x{END}"
    assert [piece.text for piece in ours.pieces(text) if ours.order[piece.id] >= size] == [
        "<|user|>",
        "<|use",
        "naïve▁x",
    ]
    assert ours.decode(ours.encode(text)) == text
    assert [text[piece.start : piece.end] for piece in ours.pieces(text)][1] == "<|user|>"
    assert EOS not in ours.encode(text)


def test_added_names_of_bert_and_t5_are_one_id_too(tmp_path):
    for family, read in (("bert", read_wordpiece), ("t5", read_t5)):
        folder = WRITERS[family](tmp_path / family)
        before = read(folder)
        (folder / "added_tokens.json").write_text(json.dumps({"{Name}": max(before.order) + 1}))
        after = read(folder)
        spelled = [piece.text for piece in after.pieces("the {Name}")]
        assert spelled == [*(piece.text for piece in before.pieces("the")), "{Name}"]
        assert after.decode(after.encode("the {Name}")).endswith("{Name}")


def test_t5_may_have_other_sentinels_or_none(tmp_path):
    folder = write_t5(tmp_path)
    for count in (0, 3):
        (folder / "tokenizer_config.json").write_text(json.dumps({"extra_ids": count}))
        assert len(read_t5(folder).sentinels) == count
    assert read_t5(folder).encode("<extra_id_2>") == [len(read_t5(folder)) - 1]


def refused(family, folder):
    with pytest.raises(ModelFormatError) as found:
        READERS[family](folder)
    message = str(found.value)
    assert message.startswith(str(folder))
    assert "\n" not in message
    assert message.count(str(folder)) == 1
    return message


@families
def test_an_empty_folder_is_refused(family, tmp_path):
    assert "no such file" in refused(family, tmp_path)


MISSING = [("gpt2", "merges.txt"), ("gpt2", "vocab.json"), ("bert", "vocab.txt"), ("t5", "spiece.model")]
MISSING += [("marian", "vocab.json"), ("marian", "source.spm"), ("marian", "target.spm")]


@pytest.mark.parametrize(("family", "name"), MISSING)
def test_a_missing_file_is_named(family, name, tmp_path):
    (WRITERS[family](tmp_path) / name).unlink()
    assert name in refused(family, tmp_path)


@pytest.mark.parametrize(("family", "name"), MISSING)
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"[1, 2", b"[" * 50_000, b'{"a": 7}', b"[]"], ids=lambda c: str(c[:9])
)
def test_a_file_that_holds_something_else_is_refused(family, name, content, tmp_path):
    if (name, content) in (("merges.txt", b""), ("merges.txt", b"[]")):
        content = b"a b c"
    (WRITERS[family](tmp_path) / name).write_bytes(content)
    refused(family, tmp_path)


@pytest.mark.parametrize(("family", "name"), [*MISSING, ("bert", "tokenizer_config.json")])
def test_a_huge_file_is_refused_unread(family, name, tmp_path):
    with (WRITERS[family](tmp_path) / name).open("wb") as file:
        file.truncate(reading.LARGEST + 1)  # takes no space on the disk
    assert f"{name}: {reading.LARGEST + 1} bytes, expected at most" in refused(family, tmp_path)


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        ({"a": 0, "b": 0}, "the same id 0"),
        ({"a": 0, "b": 2}, "'b' has id 2, expected one of 0 to 1"),
        ({"a": 0, "b": -1}, "'b' has id -1"),
        ({"a": 0, "b": True}, "'b' has id True"),
        ({"a": 0, "b": 10**30}, "'b' has id 1000"),
        ({"a": 0, "b": "1"}, "'b' has id '1'"),
        ({"a": 0, "b": 1}, "no "),
        ({}, "expected names with their ids"),
    ],
    ids=str,
)
@pytest.mark.parametrize("family", ["gpt2", "marian"])
def test_ids_that_are_no_numbering_are_refused(family, ids, what, tmp_path):
    (WRITERS[family](tmp_path) / "vocab.json").write_text(json.dumps(ids))
    assert what in refused(family, tmp_path)


def test_merges_that_do_not_belong_to_the_vocabulary_are_refused(tmp_path):
    write_byte_level(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na t\nq Ġ\n")
    assert "the merge 'q' 'Ġ' needs 'qĠ', which is not in the vocabulary" in refused("gpt2", tmp_path)
    (tmp_path / "merges.txt").write_text("a t\nq\n")
    assert "merge 2 is \"['q']\", expected two pieces" in refused("gpt2", tmp_path)


def test_a_vocabulary_without_all_bytes_is_refused(tmp_path):
    write_byte_level(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({END: 0, "a": 1}))
    (tmp_path / "merges.txt").write_text("")
    assert "255 of the 256 bytes have no id (0x00, 0x01, 0x02, …)" in refused("gpt2", tmp_path)


def test_a_vocabulary_without_a_special_name_or_with_a_name_twice_is_refused(tmp_path):
    write_wordpiece(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(BERT_SPECIAL[:4]))
    assert "no '[MASK]' among its 4 names" in refused("bert", tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join([*BERT_SPECIAL, "a", "a"]))
    assert "'a' is there twice" in refused("bert", tmp_path)


@pytest.mark.parametrize(
    ("family", "settings", "what"),
    [
        ("gpt2", {"add_prefix_space": True}, "add_prefix_space is 'True', Regard reads False"),
        ("gpt2", {"eos_token": 5}, "eos_token is '5', expected a name"),
        ("gpt2", {"eos_token": "<end>"}, "no '<end>' among"),
        ("gpt2", {"added_tokens_decoder": {"x": {"content": "a"}}}, "added token 'x' has no name or no id"),
        ("gpt2", {"added_tokens_decoder": {"900": {"content": "<a>"}}}, "the added '<a>' has id 900, expected 3"),
        ("bert", {"do_lower_case": "yes"}, "do_lower_case is 'yes', Regard reads True or False"),
        ("bert", {"do_lower_case": 1}, "do_lower_case is '1'"),
        ("bert", {"do_lower_case": True, "cls_token": "[SEP]"}, "an id has two meanings"),
        ("t5", {"extra_ids": -1}, "extra_ids is -1"),
        ("t5", {"extra_ids": "many"}, "extra_ids is 'many'"),
        ("marian", {"separate_vocabs": True}, "separate_vocabs is 'True'"),
        ("marian", [], "expected settings by name"),
    ],
    ids=str,
)
def test_settings_that_regard_does_not_know_are_refused_by_name(family, settings, what, tmp_path):
    (WRITERS[family](tmp_path) / "tokenizer_config.json").write_text(json.dumps(settings))
    assert what in refused(family, tmp_path)


def test_added_names_without_numbers_are_refused(tmp_path):
    (write_byte_level(tmp_path) / "added_tokens.json").write_text('{"<a>": "1"}')
    assert "added_tokens.json: expected names with their ids" in refused("gpt2", tmp_path)


FAST = [
    ("gpt2", {"normalizer": {"type": "NFC"}}, "normalizer is"),
    ("gpt2", {"normalizer": "NFC"}, "normalizer is 'NFC', expected settings"),
    ("gpt2", {"pre_tokenizer": {"type": "Split"}}, "pre_tokenizer.type is 'Split', Regard reads 'ByteLevel'"),
    ("gpt2", {"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}, "use_regex is 'False'"),
    ("gpt2", {"model": {"type": "Unigram"}}, "model.type is 'Unigram', Regard reads 'BPE'"),
    ("gpt2", {"model": {"type": "BPE", "byte_fallback": True}}, "model.byte_fallback is 'True'"),
    ("gpt2", {"model": {"type": "BPE", "vocab": {}}}, "no model.merges"),
    ("gpt2", {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}}, "merge 1 is"),
    ("gpt2", {"model": None}, "no model in it"),
    ("bert", {"pre_tokenizer": None}, "pre_tokenizer.type is 'None', Regard reads 'BertPreTokenizer'"),
    ("bert", {"normalizer": {"type": "BertNormalizer", "clean_text": False}}, "clean_text is 'False'"),
    ("bert", {"normalizer": {"type": "BertNormalizer", "strip_accents": 3}}, "strip_accents is '3'"),
    ("t5", {"normalizer": {"type": "NFKC"}}, "normalizer.type is 'NFKC'"),
    ("t5", {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}}, "no pieces with their scores"),
    ("t5", {"model": {"type": "Unigram", "vocab": [["a"]]}}, "no pieces with their scores"),
    ("t5", {"model": {"type": "Unigram", "vocab": [["\ud800", 0.0]]}}, "no pieces with their scores"),
    ("t5", {"model": {"type": "Unigram", "vocab": [["a", 0.0], ["a", 1.0]]}}, "not a SentencePiece model"),
]


@pytest.mark.parametrize(("family", "changes", "what"), FAST, ids=str)
def test_a_fast_file_of_another_kind_is_refused_by_name(family, changes, what, tmp_path):
    if family == "t5":
        model = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["a", -1.0]]}
        (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
        assert read_t5(tmp_path).decode(read_t5(tmp_path).encode("a")) == "a"
    else:
        (byte_level() if family == "gpt2" else wordpiece()).save(str(tmp_path / "tokenizer.json"))
    edited(tmp_path / "tokenizer.json", **changes)
    assert what in refused(family, tmp_path)


def test_a_damaged_model_is_refused_or_still_a_tokeniser(tmp_path):
    rng, refusals = random.Random(3), 0
    folder = write_t5(tmp_path)
    whole = (folder / "spiece.model").read_bytes()
    for _ in range(40):
        damaged = bytearray(whole[: rng.randrange(1, len(whole))] if rng.random() < 0.5 else whole)
        for _ in range(rng.randint(0, 20)):
            damaged[rng.randrange(min(3_000, len(damaged)))] = rng.randrange(256)  # the pieces come first
        (folder / "spiece.model").write_bytes(damaged)
        try:
            ours = read_t5(folder)
            assert [piece.id for piece in ours.pieces("the cat")] == ours.encode("the cat")
        except ModelFormatError:
            refusals += 1
    assert refusals > 20


def test_a_model_converted_from_the_fast_file_cuts_as_the_published_one(tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = write_t5(tmp_path / "theirs")
    transformers.T5Tokenizer.from_pretrained(folder).save_pretrained(tmp_path / "fast")
    assert not (tmp_path / "fast" / "spiece.model").exists()
    before, after = read_t5(folder), read_t5(tmp_path / "fast")
    assert before.order == after.order
    assert after.order[PAD] == -1
    for text in TEXTS:
        assert after.pieces(text) == before.pieces(text)
