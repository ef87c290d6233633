"""`regard rank`: a conversation over plain lines that can be left, undone and taken up again."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.commands.rank import labels
from regard.evaluation.judgements import Judgement, Output, read_judgements, write_judgements
from regard.evaluation.questions import most_questions, sample

TEXTS = {
    "source": ["eins", "zwei", "drei", "vier"],
    "first": ["one", "two", "three", "four"],
    "second": ["uno", "two", "tres", "for"],
    "third": ["een", "two", "tres", "vier"],
}
MOST = most_questions(3) + 0 + most_questions(2) + most_questions(3)


@pytest.fixture
def files(tmp_path):
    for name, lines in TEXTS.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


@pytest.fixture
def rank(regard, files):
    """rank("1", "=", "u") answers with these lines, then the input ends."""

    def run(*answers, more=(), out="judgements"):
        systems = (files / "first", f"b={files / 'second'}", f"c={files / 'third'}")
        stdin = "".join(f"{one}\n" for one in answers).encode()
        return regard("rank", *systems, "--source", files / "source", "--out", files / out, *more, stdin=stdin)

    return run


def test_a_whole_session_asks_within_the_bound_and_ends_with_the_ranking(rank, regard, files):
    ended = rank(*["1"] * MOST)
    judgements = read_judgements(files / "judgements")
    asked = [one for one in judgements if not one.idle]
    assert ended.code == 0
    assert len(asked) <= MOST
    assert ended.err.count("better: 1 or 2") == len(asked)
    assert all(one.verdict == "left" for one in asked)
    assert [one.sentence for one in judgements if one.idle] == [2]
    assert ended.lines[0] == f"4 sentences, {len(asked)} questions answered by 1 judge"
    assert regard("rank", "--report", files / "judgements").out == ended.out


def test_the_names_stay_hidden_while_a_person_judges(rank):
    ended = rank("1", "2", "q")
    assert not re.search(r"first|second|third", ended.err)
    assert ended.out == ""  # nor does anyone who will go on learn who leads


def test_what_is_shown_is_the_source_the_reference_and_two_outputs(rank, files):
    (files / "reference").write_text("\x1b[2J\nZWEI\n\x1b[2J\n\x1b[2J\n")
    ended = rank(more=("--reference", files / "reference"))
    source, reference, one, two = re.findall(r"^(?:source|reference|    1|    2) +(.*)$", ended.err, re.MULTILINE)
    line = TEXTS["source"].index(source)
    assert {one, two} < {TEXTS[name][line] for name in ("first", "second", "third")}
    assert reference == "�[2J"


def test_leaving_after_every_answer_ends_like_staying(rank, files):
    whole = rank(*["1"] * MOST)
    for _ in range(MOST):
        ended = rank("1", "q", out="parts")
    assert (files / "parts").read_bytes() == (files / "judgements").read_bytes()
    assert ended.out == whole.out


def test_undo_takes_back_the_last_answer_and_asks_again(rank, files):
    rank("1", "1", "1", out="plain")
    rank("u", "1", "1", "2", "u", "1", "2", "u")
    asked = [one for one in read_judgements(files / "judgements") if not one.idle]
    assert asked == [one for one in read_judgements(files / "plain") if not one.idle]
    assert len(asked) == 3


def test_the_very_last_answer_can_be_taken_back_too(rank, files):
    def verdicts():
        return [one.verdict for one in read_judgements(files / "judgements") if not one.idle]

    rank(*["1"] * MOST)
    before = verdicts()
    ended = rank("u", "2")
    assert verdicts()[: len(before) - 1] == before[:-1]
    assert verdicts()[len(before) - 1] == "right"
    assert "takes back the last answer" in ended.err


def test_undo_at_the_beginning_changes_nothing(rank, files):
    assert "nothing to take back" in rank("u").err
    assert not (files / "judgements").exists()


def test_another_key_is_asked_again(rank, files):
    ended = rank("3", "", "=")
    assert ended.err.count("type 1, 2, =, u or q") == 2
    assert read_judgements(files / "judgements")[0].verdict == "equal"


def test_the_same_ranking_for_people_and_for_programs(rank, regard, files):
    shown = rank(*["="] * MOST, more=("--json",)).out
    found = json.loads(shown)
    assert json.loads(regard("rank", "--report", files / "judgements", "--json").out) == found
    assert {one["system"]: one["strength"] for one in found["systems"]} == pytest.approx(
        {"first": 0, "b": 0, "c": 0}, abs=1e-9
    )
    table = regard("rank", "--report", files / "judgements").out
    for one in found["systems"]:
        interval = f"{one['low']:+.2f} to {one['high']:+.2f}"
        assert re.search(rf"^1–3 +{one['system']} .*{re.escape(interval)} +0 +8 +0 +50 %$", table, re.MULTILINE)
    assert max(map(len, table.splitlines())) <= 80


def test_judges_share_a_file_and_a_report_reads_several(rank, regard, files):
    rank(*["1"] * MOST, more=("--judge", "anna"))
    both = rank(*["1"] * MOST, more=("--judge", "ben"))
    assert "by 2 judges" in both.out
    rank(*["1"] * MOST, more=("--judge", "ben"), out="ben")
    rank(*["1"] * MOST, more=("--judge", "anna"), out="anna")
    report = regard("rank", "--report", files / "anna", "--report", files / "ben")
    assert report.out == both.out


def test_judges_see_the_same_pairs_but_not_on_the_same_sides(rank, files):
    """Else whoever always says 1 would favour the same outputs as the next who does."""
    for judge in ("anna", "ben"):
        rank(*["="] * MOST, more=("--judge", judge), out=judge)
    ours, theirs = ([(one.left.text, one.right.text) for one in read_judgements(files / n)] for n in ("anna", "ben"))
    assert list(map(sorted, ours)) == list(map(sorted, theirs))
    assert ours != theirs


def test_judges_without_a_name_are_one_for_each_file(rank, regard, files):
    """The same file twice stands for two people who agree."""
    rank(*["1"] * MOST, out="one")
    alone = json.loads(regard("rank", "--report", files / "one", "--json").out)
    twice = json.loads(regard("rank", "--report", files / "one", "--report", files / "one", "--json").out)
    assert (alone["judges"], twice["judges"]) == (1, 2)
    assert alone["agreement"] is None
    assert (twice["agreement"]["same"], twice["agreement"]["kappa"]) == (100, 1)
    assert "agree in 100 % of" in regard("rank", "--report", files / "one", "--report", files / "one").out
    wins = [{one["system"]: one["better"] for one in found["systems"]} for found in (alone, twice)]
    assert wins[1] == {system: 2 * count for system, count in wins[0].items()}


def test_the_sentences_are_drawn_by_the_seed(rank, files):
    few = rank(*["1"] * MOST, more=("--sentences", 2))
    assert few.lines[0].startswith("2 sentences")
    more = rank(*["1"] * MOST)
    assert more.lines[0].startswith("4 sentences")
    rank(*["1"] * MOST, out="at once")
    assert (files / "at once").read_bytes() == (files / "judgements").read_bytes()


def test_a_long_name_is_shortened_in_the_table_only(regard, files):
    name = "n" * 60
    systems = (f"{name}={files / 'first'}", f"b={files / 'second'}")
    ended = regard("rank", *systems, "--source", files / "source", "--out", files / "j", stdin=b"1\n" * 4)
    assert "n" * 9 + "…" + "n" * 9 in ended.out
    assert max(map(len, ended.lines)) <= 80
    assert name in (files / "j").read_text()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("transformer-base-seed{}.de", "transform…-seed{}.de", id="at an end"),
        pytest.param("transformer-{}-base-on-news.de", "transformer-{}-base-on-news.de", id="in the middle"),
    ],
)
def test_long_names_that_differ_are_shown_so(regard, files, name, shown):
    systems = (f"{name.format(1)}={files / 'first'}", f"{name.format(2)}={files / 'second'}")
    ended = regard("rank", *systems, "--source", files / "source", "--out", files / "j", stdin=b"1\n" * 4)
    found = re.findall(r"^\d\S* +(\S+) +[+-]", ended.out, re.MULTILINE)
    assert sorted(found) == [shown.format(1), shown.format(2)]


NAMES = st.text(st.sampled_from("ab \x07\x1b…'"), max_size=24) | st.from_regex(r"[ab]{30}", fullmatch=True)


@settings(derandomize=True, deadline=None)
@given(st.lists(NAMES, min_size=2, max_size=4, unique=True))
def test_no_two_names_look_alike(names):
    found = labels(names)
    assert len({found[name] for name in names}) == len(names)
    assert all(label.isprintable() for label in found.values())


@pytest.mark.parametrize("judge", ["", "anna"])
def test_a_report_keeps_the_same_line_of_two_test_sets_apart(regard, tmp_path, judge):
    reports = []
    for source, verdict in (("news", "left"), ("talk", "right")):
        one = Judgement(17, source, Output(("a",), f"{source} a"), Output(("b",), f"{source} b"), verdict, judge)
        write_judgements(tmp_path / source, [one])
        reports += ["--report", tmp_path / source]
    found = json.loads(regard("rank", *reports, "--json").out)
    assert (found["sentences"], found["questions"], found["agreement"]) == (2, 2, None)
    assert [(one["better"], one["equal"], one["worse"]) for one in found["systems"]] == [(1, 0, 1)] * 2


def test_mistakes_are_one_line(regard, rank, files):
    options = ("--source", files / "source", "--out", files / "j")
    first, second = files / "first", files / "second"
    regard("rank", first, *options).refused("found 1 system", "at least 2")
    regard("rank", first, f"b={files}", *options).refused("is a folder", "regard translate")
    regard("rank", first, files / "none", *options).refused("none", "no such file")
    regard("rank", first, f"b={first}", *options).refused("given twice")
    regard("rank", f"x={first}", f"x={second}", *options).refused("called 'x'")
    regard("rank", first, f"={second}", *options).refused("without a name")
    (files / "short").write_text("one\n")
    regard("rank", first, files / "short", *options).refused("short has 1 lines", "source has 4")
    regard("rank", "--report", files / "none").refused("no such file")
    (files / "j").write_text("{}\n")
    regard("rank", first, second, *options).refused("j, line 1", "sentence")
    (files / "j").write_text("")
    regard("rank", "--report", files / "j").refused("0 judgements")


def test_judgements_of_other_texts_are_refused(rank, regard, files):
    rank(*["1"] * MOST)
    (files / "second").write_text("uno\nother\ntres\nfor\n")
    rank("1").refused("judgements, judgement", "another output of 'b' for sentence 2")
    (files / "second").write_text("uno\ntwo\ntres\nfor\n")
    (files / "source").write_text("eins\nzwei\nDREI\nvier\n")
    rank("1").refused("judgements, judgement", "another source for sentence 3", "give the --source")
    for name in ("source", "first", "second", "third"):
        (files / name).write_text("one line\n")
    rank("1").refused("another output")


def test_another_seed_is_refused_where_it_would_leave_answers_over(rank, files):
    rank("1", "q")
    (first,) = read_judgements(files / "judgements")
    orders = {seed: sample(4, 4, seed) for seed in range(2, 20)}
    other = next(seed for seed, order in orders.items() if order[0] != first.sentence - 1)
    same = next(seed for seed, order in orders.items() if order[0] == first.sentence - 1)
    rank("1", more=("--seed", other)).refused("judgements", f"--seed {other}", "another --out")
    assert read_judgements(files / "judgements") == [first]
    assert rank("q", more=("--seed", same)).code == 0
    assert rank("q", more=("--seed", other, "--judge", "ben")).code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="nothing"),
        pytest.param(("a", "b", "--out", "j"), id="no source"),
        pytest.param(("a", "b", "--source", "s"), id="nowhere to write"),
        pytest.param(("a", "--report", "j"), id="systems for a report"),
        pytest.param(("--report", "j", "--judge", "anna"), id="a judge for a report"),
        pytest.param(("--report", "j", "--seed", "2"), id="a seed for a report"),
    ],
)
def test_wrong_usage_ends_with_code_2(regard, arguments):
    ended = regard("rank", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "--report" in ended.err
    assert "regard rank --help" in ended.err


def test_a_system_that_comes_later_with_a_judged_text_is_not_passed_over(rank, regard, files):
    assert rank(*["1"] * MOST).code == 0
    systems = [f"{name}={files / file}" for name, file in (("first", "first"), ("b", "second"), ("c", "third"))]
    (files / "late").write_text((files / "first").read_text())
    more = regard(
        "rank", *systems, f"late={files / 'late'}", "--source", files / "source", "--out", files / "judgements"
    )
    more.refused("was made without 'late'")
