"""What a recipe's data section yields, and the account it gives."""

import json
import random
from pathlib import Path

import pytest
from pydantic import ValidationError

from regard.data.accounts import Account, resolve
from regard.data.corpus import Corpus, carve, load_corpora
from regard.data.options import CorpusOptions, DataOptions, FilterRules
from regard.data.pairs import Pair
from regard.errors import DataError


def tsv(path: Path, pairs: list[tuple[str, str]]) -> CorpusOptions:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return CorpusOptions(tsv=path)


def numbered(count: int) -> list[tuple[str, str]]:
    return [(f"sentence {i}", f"Satz {i}") for i in range(count)]


def test_the_three_forms_of_a_corpus_give_the_same_pairs(tmp_path):
    pairs = numbered(30)
    (tmp_path / "s").write_text("".join(source + "\n" for source, _ in pairs))
    (tmp_path / "t").write_text("".join(target + "\n" for _, target in pairs))
    (tmp_path / "j").write_text("".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in pairs))
    forms = [
        CorpusOptions(source=tmp_path / "s", target=tmp_path / "t"),
        tsv(tmp_path / "p", pairs),
        CorpusOptions(jsonl=tmp_path / "j", source_key="en", target_key="de"),
    ]
    loaded = [load_corpora(DataOptions(corpora=(form,))) for form in forms]
    assert loaded[0].corpora[0].pairs == loaded[1].corpora[0].pairs == loaded[2].corpora[0].pairs
    assert {(p.source, p.target) for p in loaded[0].corpora[0].pairs + loaded[0].validation} == set(pairs)


def test_the_account_adds_up_over_reader_filter_and_validation(tmp_path):
    good = b"".join(f"sentence {i}\tSatz {i}\n".encode() for i in range(40))
    (tmp_path / "a").write_bytes(good + b"sentence 1\tSatz 1\n\tleer\nna\xefve\tnaiv\n" + b"x" * 100_001 + b"\ty\n")
    loaded = load_corpora(DataOptions(corpora=(CorpusOptions(tsv=tmp_path / "a"),), bad_lines="drop"))
    (account,) = loaded.report.corpora
    assert account.read == 44
    assert account.kept == len(loaded.corpora[0].pairs) == 38
    assert account.dropped == {"duplicate": 1, "empty": 1, "bad encoding": 1, "too long": 1, "held out": 2}
    assert account.read == account.kept + sum(account.dropped.values())
    assert loaded.report.validation.kept == len(loaded.validation) == 2


def test_a_bad_line_stops_the_loading_unless_it_may_be_dropped(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff\tx\n")
    with pytest.raises(DataError, match="line 1"):
        load_corpora(DataOptions(corpora=(CorpusOptions(tsv=tmp_path / "a"),)))


def test_the_report_is_readable_and_round_trips_through_json(tmp_path):
    corpus = tsv(tmp_path / "a", [*numbered(1200), ("", "nichts"), ("", "nada"), ("x" * 60, "y")])
    report = load_corpora(DataOptions(corpora=(corpus,), valid=tsv(tmp_path / "v", numbered(3)))).report
    assert report.lines() == [
        f"{tmp_path / 'a'}: 1,200 of 1,203 pairs; left out: empty 2, length ratio 1",
        f"{tmp_path / 'v'}: 3 of 3 pairs (given)",
    ]
    plain = json.loads(json.dumps(report.to_json()))
    assert plain["corpora"][0]["dropped"] == {"empty": 2, "length ratio": 1}
    assert plain["validation"] == {
        "name": str(tmp_path / "v"),
        "read": 3,
        "kept": 3,
        "dropped": {},
        "origin": "given",
    }


def test_leaving_out_more_pairs_keeps_the_sum():
    account = Account("a", read=10, kept=7, dropped={"empty": 1, "too long": 2}).without("too long", 3)
    assert account == Account("a", read=10, kept=4, dropped={"empty": 1, "too long": 5})
    assert account.without("duplicate", 0) == account


def test_given_validation_pairs_are_taken_as_they_come(tmp_path):
    valid = [("again", "wieder"), ("again", "wieder"), ("x" * 60, "y"), ("same", "same")]
    options = DataOptions(
        corpora=(tsv(tmp_path / "a", numbered(5)),),
        valid=tsv(tmp_path / "v", valid),
        filters=FilterRules(drop_identical=True),
    )
    loaded = load_corpora(options)
    assert [(p.source, p.target) for p in loaded.validation] == valid
    assert loaded.report.origin == "given"
    assert len(loaded.corpora[0].pairs) == 5


def test_carved_validation_shares_no_source_with_training(tmp_path):
    pairs = [(f"sentence {i % 50}", f"Satz {i}") for i in range(200)]  # four translations of each source
    corpora = (tsv(tmp_path / "a", pairs[:120]), tsv(tmp_path / "b", pairs[120:]))
    loaded = load_corpora(DataOptions(corpora=corpora, valid_size=7))
    held = {pair.source for pair in loaded.validation}
    assert len(loaded.validation) == len(held) == 7
    assert not held & {pair.source for corpus in loaded.corpora for pair in corpus.pairs}
    assert sum(len(corpus.pairs) for corpus in loaded.corpora) == 200 - 4 * 7
    assert sum(account.dropped.get("held out", 0) for account in loaded.report.corpora) == 4 * 7
    assert loaded.report.origin == "carved out of training"


def test_carving_depends_on_the_seed_and_not_on_the_order_of_the_pairs():
    pairs = [Pair(f"s{i % 90}", f"t{i}") for i in range(100)]
    shuffled = random.Random(0).sample(pairs, k=len(pairs))
    first = carve([Corpus(pairs, 1.0, "a")], 9, seed=4)
    assert first == carve([Corpus(shuffled[:30], 1.0, "a"), Corpus(shuffled[30:], 2.0, "b")], 9, seed=4)
    assert first != carve([Corpus(pairs, 1.0, "a")], 9, seed=5)


@pytest.mark.parametrize(("pairs", "expected"), [(2, 1), (40, 2), (1_990, 99), (30_000, 1000)])
def test_a_twentieth_is_carved_but_at_least_one_and_at_most_a_thousand(pairs, expected):
    corpus = Corpus([Pair(str(i), "t") for i in range(pairs)], 1.0, "a")
    assert len(carve([corpus], None, seed=0)) == expected


@pytest.mark.parametrize("size", [3, 4])
def test_carving_everything_is_refused(size):
    with pytest.raises(DataError, match=f"{size} validation pairs cannot be carved out of 3 different sources"):
        carve([Corpus([Pair(str(i), "t") for i in range(3)], 1.0, "a")], size, seed=0)


def test_a_corpus_of_which_nothing_is_left_is_refused_with_the_main_reason(tmp_path):
    corpus = tsv(tmp_path / "a", [("", "a"), ("x" * 60, "y"), ("x" * 70, "y")])
    with pytest.raises(DataError, match=r'none of 3 pairs is left; most \(2\) fell to "length ratio"'):
        load_corpora(DataOptions(corpora=(corpus,)))
    with pytest.raises(DataError, match='fell to "empty"'):
        load_corpora(DataOptions(corpora=(tsv(tmp_path / "b", numbered(9)),), valid=tsv(tmp_path / "v", [("", "")])))


def test_no_corpus_at_all_is_refused():
    with pytest.raises(DataError, match="found no corpus"):
        load_corpora(DataOptions())


def test_a_path_that_exists_wins_over_the_data_folder(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    for folder in (tmp_path, tmp_path / "data"):
        (folder / "a.txt").write_text("x")
    (tmp_path / "data" / "b.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "data"))
    assert resolve(Path("a.txt")) == Path("a.txt")
    assert resolve(Path("b.txt")) == tmp_path / "data" / "b.txt"
    with pytest.raises(DataError, match="neither here nor beneath REGARD_DATA"):
        resolve(Path("c.txt"))


def test_a_path_found_nowhere_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("REGARD_DATA", raising=False)
    with pytest.raises(DataError, match="set REGARD_DATA"):
        resolve(Path("nowhere/a.txt"))
    with pytest.raises(DataError, match=r"no such file; check the path$"):
        resolve(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "found nothing; give exactly one"),
        ({"source": "a"}, "source is given without target"),
        ({"target": "a"}, "target is given without source"),
        ({"source": "a", "target": "b", "tsv": "c"}, "found source and tsv"),
        ({"tsv": "c", "jsonl": "d"}, "found tsv and jsonl"),
        ({"tsv": "c", "weight": 0}, "greater than 0"),
        ({"tsv": "c", "weight": float("inf")}, "finite"),
        ({"tsv": "c", "colour": "red"}, "Extra inputs"),
    ],
)
def test_a_corpus_has_exactly_one_form(given, message):
    with pytest.raises(ValidationError, match=message):
        CorpusOptions(**given)


def test_a_validation_corpus_and_a_size_to_carve_exclude_each_other():
    with pytest.raises(ValidationError, match="valid and valid_size are both given"):
        DataOptions(valid=CorpusOptions(tsv=Path("a")), valid_size=3)
