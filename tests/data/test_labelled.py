"""Labelled text in every form gives the same examples; whatever is wrong with a line is said with its place."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from regard.data.labelled import LabelledText, load_labelled, read_labelled
from regard.data.labels import Labels
from regard.data.options import LabelledOptions
from regard.errors import DataError

EXAMPLES = [("a fine film", "pos"), ('he said "no", twice', "neg"), ("dull ,  dull", "neg"), ("œuvre", "pos")]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tsv(path: Path, examples: list[tuple[str, str]]) -> LabelledOptions:
    write(path, "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in examples))
    return LabelledOptions(file=path)


def numbered(count: int) -> list[tuple[str, str]]:
    return [(f"text {i}", "odd" if i % 2 else "even") for i in range(count)]


def load(*corpora: LabelledOptions, valid_size: int | None = None, bad_lines="refuse", seed: int = 0):
    return load_labelled(corpora, valid_size, bad_lines, seed)


def read(options: LabelledOptions) -> list[LabelledText]:
    return list(read_labelled(options, "refuse", Counter()))


def refused(options: LabelledOptions) -> str:
    with pytest.raises(DataError) as caught:
        read(options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def data(name: str) -> Path:
    root = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (root / name).exists():
        pytest.skip(f"needs {name} beneath the folder that REGARD_DATA names")
    return root / name


def forms(folder: Path) -> dict[str, LabelledOptions]:
    def rows(line):
        return "".join(line(text, label) for text, label in EXAMPLES)

    def quoted(text):
        return '"' + text.replace('"', '""') + '"'

    texts = {
        "headed": rows(lambda text, label: f"{label}\t7\t{text}\n"),
        "label first": rows(lambda text, label: f"{label}\t{text}\n"),
        "text first": rows(lambda text, label: f"{text}\t{label}\n"),
        "csv": "label,text\n" + rows(lambda text, label: f"{label},{quoted(text)}\r\n"),
        "bare csv": rows(lambda text, label: f"{quoted(text)},{label}\n\n"),
        "jsonl": rows(lambda text, label: json.dumps({"n": 1, "text": text, "y": label}) + "\n"),
        "trec": rows(lambda text, label: f"{label}:fine {text}\n"),
    }
    texts["headed"] = "y\tn\tsentence\n" + texts["headed"]
    paths = {name: write(folder / name, content) for name, content in texts.items()}
    return {
        "headed": LabelledOptions(file=paths["headed"], text="sentence", label="y"),
        "label first": LabelledOptions(file=paths["label first"], columns=("label", "text")),
        "text first": LabelledOptions(file=paths["text first"], columns=("text", "label")),
        "csv": LabelledOptions(file=paths["csv"], form="csv"),
        "bare csv": LabelledOptions(file=paths["bare csv"], form="csv", columns=("text", "label")),
        "jsonl": LabelledOptions(file=paths["jsonl"], form="jsonl", label="y"),
        "trec": LabelledOptions(file=paths["trec"], form="trec"),
    }


@pytest.mark.parametrize("form", ["headed", "label first", "text first", "csv", "bare csv", "jsonl", "trec"])
def test_every_form_gives_the_same_examples(tmp_path, form):
    assert read(forms(tmp_path)[form]) == [LabelledText(text, None, label) for text, label in EXAMPLES]


def test_one_file_for_each_label_gives_its_lines_that_label(tmp_path):
    files = {"neg": write(tmp_path / "n", "bad\nworse\n"), "pos": write(tmp_path / "p", "good\n")}
    found = read(LabelledOptions(files=files))
    assert found == [
        LabelledText("bad", None, "neg"),
        LabelledText("worse", None, "neg"),
        LabelledText("good", None, "pos"),
    ]


def test_trec_has_a_coarse_and_a_fine_label(tmp_path):
    path = write(tmp_path / "a", "DESC:manner How did serfdom develop ?\nHUM:ind Who : me ?\n")
    assert [e.label for e in read(LabelledOptions(file=path, form="trec"))] == ["DESC", "HUM"]
    fine = read(LabelledOptions(file=path, form="trec", label="fine"))
    assert fine == [
        LabelledText("How did serfdom develop ?", None, "DESC:manner"),
        LabelledText("Who : me ?", None, "HUM:ind"),
    ]


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl"])
def test_a_pair_has_a_second_text(tmp_path, form):
    lines = {
        "tsv": "p\th\tlabel\nIt rains\tIt is wet\t1\n",
        "csv": 'p,h,label\nIt rains,"It is wet",1\n',
        "jsonl": '{"p": "It rains", "h": "It is wet", "label": 1}\n',
    }
    options = LabelledOptions(file=write(tmp_path / "a", lines[form]), form=form, text="p", second="h")
    assert read(options) == [LabelledText("It rains", "It is wet", "1")]


def test_a_quoted_column_may_hold_line_ends(tmp_path):
    path = write(tmp_path / "a", 'text,label\n"one\ntwo",x\nthree,y\n')
    assert [e.text for e in read(LabelledOptions(file=path, form="csv"))] == ["one\ntwo", "three"]


def test_the_shared_corpora_have_the_sizes_that_their_sources_state():
    polarity = LabelledOptions(file=data("sentence-polarity/dev.tsv.gz"), text="sentence")
    assert Counter(e.label for e in read(polarity)).total() == 1041
    trec = LabelledOptions(file=data("trec-qc/train.tsv.gz"), label="coarse", valid=data("trec-qc/test.tsv.gz"))
    loaded = load(trec)
    assert loaded.labels.names == ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
    assert [len(loaded.corpora[0].examples), len(loaded.validation)] == [5452, 500]
    rte = LabelledOptions(file=data("rte/dev.tsv.gz"), text="premise", second="hypothesis")
    pairs = load(rte)
    held = {e.text for e in pairs.validation}
    assert pairs.labels.names == ("0", "1")
    assert len(pairs.corpora[0].examples) + len(pairs.validation) == 1767
    assert not held & {e.text for e in pairs.corpora[0].examples}


def test_held_out_texts_take_all_their_examples_along(tmp_path):
    options = tsv(tmp_path / "a", [(f"text {i % 20}", str(i % 3)) for i in range(60)])
    loaded = load(options, valid_size=4)
    (account,) = loaded.report.corpora
    assert len(loaded.validation) == 12
    assert not {e.text for e in loaded.validation} & {e.text for e in loaded.corpora[0].examples}
    assert (account.read, account.kept, account.dropped) == (60, 48, {"held out": 12})
    assert load(options, valid_size=4).validation == loaded.validation
    assert load(options, valid_size=4, seed=1).validation != loaded.validation


def test_blank_texts_are_left_out_and_counted(tmp_path):
    path = write(tmp_path / "a", b"text\tlabel\none\tx\n  \ty\n\ty\ntwo\ty\nna\xefve\tx\nthree\tx\n")
    loaded = load(LabelledOptions(file=path, valid=path), bad_lines="drop")
    assert [e.text for e in loaded.validation] == ["one", "two", "three"]
    assert loaded.report.lines() == [
        f"{path}: 3 of 6 texts; left out: empty 2, bad encoding 1",
        f"{path}: 3 of 6 texts; left out: empty 2, bad encoding 1 (given)",
    ]


def test_validation_files_of_all_corpora_are_joined_and_weights_kept(tmp_path):
    one = tsv(tmp_path / "a", numbered(5)).model_copy(update={"weight": 2.5})
    two = LabelledOptions(file=tmp_path / "a", valid=tsv(tmp_path / "v", numbered(3)).file)
    three = LabelledOptions(
        files={"odd": write(tmp_path / "o", "x\n"), "even": write(tmp_path / "e", "y\n")},
        valid_files={"odd": write(tmp_path / "w", "z\n")},
    )
    loaded = load(one, two, three)
    assert [corpus.weight for corpus in loaded.corpora] == [2.5, 1.0, 1.0]
    assert [e.text for e in loaded.validation] == ["text 0", "text 1", "text 2", "z"]
    assert loaded.report.validation.name == f"{tmp_path / 'v'} + {tmp_path / 'w'}"
    assert [len(corpus.examples) for corpus in loaded.corpora] == [5, 5, 2]


def test_a_label_that_only_held_out_examples_have_is_known_all_the_same(tmp_path):
    options = tsv(tmp_path / "a", [(str(i), f"label {i}") for i in range(12)])
    loaded = load(options, valid_size=3)
    assert len(loaded.labels) == 12


def test_a_label_that_training_does_not_have_is_refused(tmp_path):
    valid = tsv(tmp_path / "v", [("x", "odd"), ("y", "prime")]).file
    options = tsv(tmp_path / "a", numbered(4)).model_copy(update={"valid": valid})
    with pytest.raises(
        DataError, match=r"v: found label 'prime', which training does not have; known are 'even', 'odd'$"
    ):
        load(options)
    with pytest.raises(DataError, match=r"known are .* and 3 more$"):
        Labels(tuple("abcdefghijklmno")).ids(["z"], "here")


def test_labels_are_in_order_and_numbers_by_their_value():
    assert Labels.of(["b", "a", "b", "10"], "x").names == ("10", "a", "b")
    numbers = Labels.of(["10", "9", "0"], "x")
    assert numbers.names == ("0", "9", "10")
    assert numbers.ids(["10", "0", "10"], "x").tolist() == [2, 0, 2]


def test_one_label_is_no_choice(tmp_path):
    with pytest.raises(DataError, match="a: found 'x', expected at least two different labels"):
        load(tsv(tmp_path / "a", [("one", "x"), ("two", "x")]))


def test_pairs_and_single_texts_do_not_mix(tmp_path):
    pairs = write(tmp_path / "p", "text\th\tlabel\na\tb\todd\n")
    with pytest.raises(DataError, match="1 of 5 examples are pairs of texts, the others are not"):
        load(tsv(tmp_path / "a", numbered(4)), LabelledOptions(file=pairs, second="h"))


def test_no_corpus_and_no_text_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"data\.labelled: found no corpus"):
        load()
    with pytest.raises(DataError, match="found no text among 1 examples"):
        load(tsv(tmp_path / "a", [("  ", "x")]))
    with pytest.raises(DataError, match="found no text among 0 examples"):
        load(tsv(tmp_path / "b", []))


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        ("sentence\tlabel\n", {}, "line 1: no column 'text', found 'sentence', 'label'; set text, second and label"),
        ("text\tlabel\ttext\n", {}, "line 1: more than one column 'text'"),
        ("text\tlabel\na\tb\nc\n", {}, "line 3: found 1 columns, expected 2: text, label"),
        ("text\tlabel\na\t \n", {}, "line 2: the label is empty"),
        ("a\tb\tc\n", {"columns": ("text", "label")}, "line 1: found 3 columns, expected 2"),
        ("\ntext,label\n\n", {"form": "csv", "text": "x"}, "line 2: no column 'x'"),
        ("\n\n", {"form": "csv"}, "no column 'text', found nothing"),
        ('text,label\n"a"b,c\n', {"form": "csv"}, "line 2: not CSV"),
        ('text,label\na,b\n"c,d\n', {"form": "csv"}, "line 3: not CSV (unexpected end of data)"),
        ("text,label\na\n", {"form": "csv"}, "line 2: found 1 columns, expected 2"),
        ("no label here\n", {"form": "trec"}, "line 1: found 'no label here', expected LABEL:fine"),
        ("A:b c\n", {"form": "trec", "label": "coarse"}, "no column 'coarse', found 'label', 'fine', 'text'"),
        ("A:b c\n:x y\n", {"form": "trec"}, "line 2: the label is empty"),
        ('{"text": "a"}\n', {"form": "jsonl"}, "line 1: no key 'label', found 'text'; set text, second and label"),
        ("[1]\n", {"form": "jsonl"}, "line 1: found a list, expected an object with keys 'text' and 'label'"),
        ('{"text": 1, "label": 1}\n', {"form": "jsonl"}, "line 1: 'text' is a number, expected a text"),
        ('{"text": "a", "label": true}\n', {"form": "jsonl"}, "'label' is true or false, expected a text"),
        ('{"text": "a", "label": 1.5}\n', {"form": "jsonl"}, "'label' is a number, expected a text"),
        ('{"text": "\\ud800", "label": "a"}\n', {"form": "jsonl"}, "'text' contains U+D800"),
        ("{\n", {"form": "jsonl"}, "which is not JSON"),
        (b"text\tlabel\n\xff\tb\n", {}, "line 2: found byte 0xFF"),
        ("", {}, "the file is empty"),
    ],
)
def test_a_wrong_line_is_refused_with_its_place(tmp_path, content, given, message):
    assert message in refused(LabelledOptions(file=write(tmp_path / "a", content), **given))


def test_lines_that_may_be_dropped_do_not_shift_the_places_of_others(tmp_path):
    path = write(tmp_path / "a", b"text,label\n\xff,x\na,x\nb\n")
    with pytest.raises(DataError, match="line 4: found 1 columns"):
        list(read_labelled(LabelledOptions(file=path, form="csv"), "drop", Counter()))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "found neither; give either file"),
        ({"file": "a", "files": {"x": "b"}}, "found both; give either file"),
        ({"files": {"x": "b"}, "valid": "c"}, "valid goes with file, valid_files with files"),
        ({"file": "a", "valid_files": {"x": "b"}}, "valid goes with file, valid_files with files"),
        ({"files": {"x": "b"}, "second": "h"}, "a second text needs file"),
        ({"file": "a", "form": "jsonl", "columns": ("text", "label")}, "form is jsonl"),
        ({"file": "a", "columns": ("text", "y")}, "columns: no 'label' in text, y"),
        ({"file": "a", "text": "label"}, "name a different one for each"),
        ({"file": "a", "weight": 0}, "greater than 0"),
        ({"file": "a", "form": "xml"}, "'tsv', 'csv', 'jsonl' or 'trec'"),
    ],
)
def test_options_that_contradict_themselves_are_refused(given, message):
    with pytest.raises(ValidationError, match=message):
        LabelledOptions(**given)
