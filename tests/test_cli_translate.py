"""Lines in, lines out: order, blanks, encodings, alternatives, draws."""

import json

import pytest

from regard.commands.streams import one_line, writing
from regard.data.readers import read_lines
from regard.engine import load
from regard.explainer import Asked, load_explainer


@pytest.fixture(scope="module")
def lines(corpus):
    return (corpus / "test.source").read_text().splitlines()


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_every_line_is_answered_in_its_place_and_blank_lines_stay_blank(regard, model, lines):
    shuffled = [lines[3], "", *lines[:3], "   ", lines[4] * 3]
    answers = regard("translate", model, stdin=text(*shuffled)).lines
    alone = [regard("translate", model, stdin=text(line)).lines for line in shuffled]
    assert answers == [answer for (answer,) in alone]
    assert [i for i, answer in enumerate(answers) if not answer] == [1, 5]
    assert len(set(answers)) > 3  # a model that answers each line alike would prove nothing


def test_order_is_kept_beyond_one_chunk(regard, model, lines, monkeypatch):
    whole = regard("translate", model, stdin=text(*lines))
    monkeypatch.setattr("regard.commands.translate.CHUNK", 3)
    assert regard("translate", model, stdin=text(*lines)) == whole


def test_no_input_gives_no_output(regard, model, tmp_path):
    assert regard("translate", model, stdin=b"") == regard("translate", model, "--input", empty(tmp_path))
    assert regard("translate", model, stdin=b"").code == 0
    assert regard("translate", model, stdin=b"").out == ""


def empty(folder):
    (folder / "empty").touch()
    return folder / "empty"


def test_byte_order_mark_and_carriage_returns_are_no_text(regard, model, lines):
    plain = regard("translate", model, stdin=text(*lines[:2]))
    foreign = b"\xef\xbb\xbf" + text(*lines[:2]).replace(b"\n", b"\r\n")
    assert regard("translate", model, stdin=foreign) == plain
    assert regard("translate", model, stdin=text(*lines[:2]).removesuffix(b"\n")) == plain


@pytest.mark.parametrize("character", ["\u2028", "\u0085", "\f", "\v", "\u2029", "\x1c"])
def test_only_a_line_feed_ends_a_line(regard, model, character):
    assert regard("translate", model, stdin=text(f"ab{character}cd", "ab")).out.count("\n") == 2


def test_files_serve_like_streams(regard, model, lines, tmp_path):
    (tmp_path / "in").write_bytes(text(*lines))
    said = regard("translate", model, "--input", tmp_path / "in", "--output", tmp_path / "out")
    assert (said.code, said.out) == (0, "")
    assert (tmp_path / "out").read_text() == regard("translate", model, stdin=text(*lines)).out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_an_output_is_packed_as_its_name_says(regard, model, lines, tmp_path, suffix):
    packed = tmp_path / f"out{suffix}"
    assert regard("translate", model, "--output", packed, stdin=text(*lines, "")).code == 0
    assert list(read_lines(packed)) == regard("translate", model, stdin=text(*lines, "")).lines
    assert [path.name for path in tmp_path.iterdir()] == [packed.name]


def test_the_same_text_is_packed_into_the_same_bytes(tmp_path, monkeypatch):
    for name, now in (("early.gz", 1.0), ("late.gz", 2.0)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        with writing(tmp_path / name) as out:
            out.write("abc\n")
    assert (tmp_path / "early.gz").read_bytes() == (tmp_path / "late.gz").read_bytes()


def test_the_input_is_not_written_over(regard, model, lines, tmp_path):
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    regard("translate", model, "--input", tmp_path / "text", "--output", tmp_path / "text").refused("would be lost")
    assert (tmp_path / "text").read_text().splitlines() == lines


def test_json_says_the_same_as_text(regard, model, lines):
    found = [json.loads(line) for line in regard("translate", model, "--json", stdin=text(*lines, "")).lines]
    assert [one["source"] for one in found] == [*lines, ""]
    assert [one["text"] for one in found] == regard("translate", model, stdin=text(*lines, "")).lines
    assert all(one["candidates"][0]["text"] == one["text"] for one in found)


def test_n_best_are_n_lines_each_best_first(regard, model, lines):
    found = regard("translate", model, "--n-best", 3, "--beam", 4, stdin=text(lines[0], "", lines[1])).lines
    assert len(found) == 9
    assert found[3:6] == ["", "", ""]
    asked = ("--n-best", 3, "--beam", 4, "--json")
    (first,) = regard("translate", model, *asked, stdin=text(lines[0])).lines
    candidates = json.loads(first)["candidates"]
    assert [one["text"] for one in candidates] == found[:3]
    assert [one["score"] for one in candidates] == sorted((one["score"] for one in candidates), reverse=True)


def test_a_beam_of_one_is_the_likeliest_token_each_time(regard, model, lines):
    engine = load(model)
    greedy = engine.search.model_copy(update={"beam": 1})
    expected = [translation.text for translation in engine.translate(lines, greedy)]
    assert regard("translate", model, "--beam", 1, stdin=text(*lines)).lines == expected


def test_the_length_penalty_reaches_the_search(regard, model, lines):
    asked = ("translate", model, "--json", "--length-penalty", 0)
    best = json.loads(regard(*asked, stdin=text(lines[0])).out)["candidates"][0]
    assert best["score"] == best["log_probability"]


def test_a_prefix_begins_every_output(regard, model, lines):
    answers = regard("translate", model, "--prefix", "EA", stdin=text(*lines)).lines
    assert all(answer.startswith("EA") for answer in answers)
    assert len(set(answers)) > 1
    regard("translate", model, "--prefix", "E日", stdin=text(*lines)).refused("E日", "vocabulary")


def test_draws_depend_on_seed_and_line_and_on_nothing_else(regard, model, lines):
    lines = lines[:4]
    asked = ("translate", model, "--sample", "--temperature", 1.5)
    drawn = regard(*asked, "--seed", 3, stdin=text(*lines))
    assert regard(*asked, "--seed", 3, stdin=text(*lines)) == drawn
    assert regard(*asked, "--seed", 4, stdin=text(*lines)) != drawn
    assert regard(*asked, "--seed", 3, stdin=text(*reversed(lines))).lines == drawn.lines[::-1]
    several = regard(*asked, "--seed", 3, "--n-best", 5, stdin=text(lines[0], "", lines[1])).lines
    assert several[5:10] == [""] * 5
    assert len(set(several[:5])) > 1


def test_drawing_among_one_token_is_greedy_search(regard, model, lines):
    drawn = regard("translate", model, "--sample", "--top-k", 1, stdin=text(*lines))
    assert drawn == regard("translate", model, "--beam", 1, stdin=text(*lines))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--sample", "--beam", 2), ("--beam", "without --sample")),
        (("--sample", "--prefix", "A"), ("--prefix", "without --sample")),
        (("--top-k", 2), ("--top-k", "with --sample")),
        (("--seed", 2), ("--seed", "with --sample")),
        (("--seed", 0), ("--seed", "with --sample")),
        (("--top-k", 0), ("--top-k", "with --sample")),
        (("--temperature", 0), ("--temperature", "with --sample")),
        (("--sample", "--length-penalty", 0), ("--length-penalty", "without --sample")),
        (("--beam", 2, "--n-best", 3), ("n_best: 3", "beam 2")),
        (("--sample", "--temperature", -1), ("temperature", "greater than 0")),
        (("--sample", "--top-p", 2), ("top_p",)),
    ],
)
def test_options_that_cannot_be_followed_are_refused(regard, model, asked, words):
    regard("translate", model, *asked, stdin=b"ab\n").refused(*words)


@pytest.mark.parametrize(
    ("stdin", "words"),
    [
        (b"ab\n\xff\xfe\n", ("stdin, line 2", "UTF-8")),
        (b"ab\0cd\n", ("stdin, line 1", "NUL")),
        (b"a" * 2**20 + b"\nab\n", ("stdin, line 1", "100000 characters")),
        (b"a" * 50_000 + b"\n", ("50000 tokens", "split")),
    ],
)
def test_a_line_that_cannot_be_translated_is_named(regard, model, stdin, words, tmp_path):
    out = tmp_path / "out"
    regard("translate", model, "--output", out, stdin=stdin).refused(*words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["no/such/folder/out", "file/out"])
def test_an_output_that_cannot_be_written_is_one_line(regard, model, tmp_path, place):
    (tmp_path / "file").touch()
    regard("translate", model, "--output", tmp_path / place, stdin=b"ab\n").refused(place, "cannot be written")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_line_break_of_the_model_does_not_break_the_line():
    assert one_line("a\nb\r\nc\u2028d") == "a b  c\u2028d"


# ---------------------------------------------------------------- checks
def test_checks_stand_beside_each_translation_and_change_nothing_else(regard, model, lines):
    asked = ("translate", model, "--json")
    bare = [json.loads(line) for line in regard(*asked, stdin=text(*lines, "")).lines]
    found = [json.loads(line) for line in regard(*asked, "--check", stdin=text(*lines, "")).lines]
    assert [{key: one[key] for key in bare[0]} for one in found] == bare
    explainer = load_explainer(model)
    for one in found[:5]:
        (same,) = explainer.explain(one["source"], Asked(target=one["text"], concerns=True))
        assert one["concerns"] == [json.loads(concern.model_dump_json()) for concern in same.concerns]
        assert one["dependence"] == pytest.approx(same.dependence)
        assert one["confidence"] == pytest.approx(same.confidence)
    assert [found[-1][key] for key in ("concerns", "dependence", "confidence")] == [[], None, None]  # a blank line


def test_a_line_that_is_too_long_to_be_checked_says_so_and_the_next_is_checked(regard, model):
    said = regard("translate", model, "--json", "--check", "--beam", 1, stdin=text("a" * 520, "abc de"))
    long, short = (json.loads(line) for line in said.lines)
    assert [long[key] for key in ("concerns", "dependence", "confidence")] == [None, None, None]
    assert isinstance(short["concerns"], list)
    assert short["dependence"] is not None


def test_a_forced_repetition_is_found_by_a_check(regard, model):
    (line,) = regard("translate", model, "--json", "--check", "--prefix", "ABCD ABCD ABCD", stdin=text("abc de")).lines
    assert "repetition" in [one["kind"] for one in json.loads(line)["concerns"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--check",), ("--check", "--json")),
        (("--check", "--json", "--engine", "ctranslate2"), ("--check", "ctranslate2")),
        (("--check", "--json", "--workers", "2"), ("--workers 2", "--check")),
    ],
)
def test_checks_that_cannot_be_made_are_refused(regard, model, arguments, words):
    regard("translate", model, *arguments, stdin=text("abc de")).refused(*words)
