"""Text in one language becomes parallel text: which pairs, in which order, with what account."""

from contextlib import contextmanager

import pytest

from regard.commands import resuming
from regard.data.readers import read_tsv
from regard.errors import DecodingError
from regard.recipe.folder import read_recipe
from regard.training.logs import read_log

LINES = ["abc de", "edc", "bad cab ace", "dd ee"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "mono"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.fixture
def says(monkeypatch):
    """says({line: translation}): what every model says from now on; a line that is not in it must not be asked."""

    def instead(answers):
        @contextmanager
        def speaking(_model, _request, lines, _open):
            yield ([answers[line]] for line in lines)

        monkeypatch.setattr(resuming, "speaking", speaking)

    return instead


def pairs_of(path):
    return [(pair.source, pair.target) for pair in read_tsv(path)]


def test_every_line_stands_beside_its_translation_in_order(regard, model, text, tmp_path):
    ended = regard("backtranslate", model, "--input", text, "--out", tmp_path / "out.tsv", "--beam", 2)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"translating 4 lines\n{text}: 4 of 4 pairs\n"
    translated = regard("translate", model, "--beam", 2, "--input", text).lines
    assert pairs_of(tmp_path / "out.tsv") == list(zip(translated, LINES, strict=True))


def test_the_result_is_a_corpus(regard, train, model, corpus, tmp_path):
    made = tmp_path / "out.tsv"
    assert regard("backtranslate", model, "--input", corpus / "test.target", "--out", made, "--quiet").err == ""
    corpora = (
        f"data.corpora=[{{tsv: {made}, weight: 0.5}}, {{source: {corpus}/test.source, target: {corpus}/test.target}}]"
    )
    assert train(tmp_path / "m", "--steps", 1, settings=(corpora,)).code == 0
    assert read_log(tmp_path / "m" / "training.jsonl")


def test_what_is_made_is_learned_from_beside_the_pairs(train, corpus, text, tmp_path):
    made = tmp_path / "out.tsv"
    made.write_text("".join(f"{line}\t{line}\n" for line in LINES))
    assert train(tmp_path / "m", "--tsv", made, "--steps", 1).code == 0
    assert [one.files for one in read_recipe(tmp_path / "m").data.corpora] == [
        (corpus / "train.source", corpus / "train.target"),
        (made,),
    ]


def test_draws_are_those_of_translation(regard, model, text, tmp_path):
    asked = ("--sample", "--temperature", 1.2, "--seed", 4)
    regard("backtranslate", model, "--input", text, "--out", tmp_path / "out.tsv", *asked)
    drawn = regard("translate", model, "--input", text, *asked).lines
    assert [source for source, _ in pairs_of(tmp_path / "out.tsv")] == drawn


def test_what_teaches_nothing_is_left_out_and_counted(regard, model, says, tmp_path):
    long, mono = "x" * 2001, tmp_path / "mono"
    mono.write_bytes(b"one\n\nsame\n" + long.encode() + b"\n\xff\nsilent\nlopsided\nba\x07d\ntwo\n")
    says({"one": "eins", "same": "same", "silent": " ", "lopsided": "sehr " * 40, "two": "zwei"})
    ended = regard("backtranslate", model, "--input", mono, "--out", tmp_path / "out.tsv")
    assert pairs_of(tmp_path / "out.tsv") == [("eins", "one"), ("zwei", "two")]
    told = "empty 2, bad encoding 2, too long 1, identical 1, length ratio 1"
    head, _, reasons = ended.err.splitlines()[-1].partition("; left out: ")
    assert head == f"{mono}: 2 of 9 pairs"
    assert sorted(reasons.split(", ")) == sorted(told.split(", "))


def test_tabs_and_line_breaks_do_not_break_the_form(regard, model, says, tmp_path):
    (tmp_path / "mono").write_text("a\tb\n")
    says({"a\tb": "A\tB\nC"})
    assert regard("backtranslate", model, "--input", tmp_path / "mono", "--out", tmp_path / "out.tsv").code == 0
    assert pairs_of(tmp_path / "out.tsv") == [("A B C", "a b")]


def test_a_tag_begins_every_source_and_no_target(regard, model, text, tmp_path):
    asked = ("backtranslate", model, "--input", text, "--quiet")
    regard(*asked, "--out", tmp_path / "plain.tsv")
    regard(*asked, "--out", tmp_path / "tagged.tsv", "--tag", "<bt>")
    assert pairs_of(tmp_path / "tagged.tsv") == [(f"<bt> {s}", t) for s, t in pairs_of(tmp_path / "plain.tsv")]


def test_noise_changes_sources_by_its_seed_alone(regard, model, says, tmp_path):
    (tmp_path / "mono").write_text("".join(f"{i} and the words of a line\n" for i in range(30)))
    words = [f"w{i}" for i in range(12)]
    says({f"{i} and the words of a line": " ".join(words) for i in range(30)})

    def made(*asked):
        out = tmp_path / f"{'-'.join(map(str, asked))}.tsv"
        asked = ("--input", tmp_path / "mono", "--out", out, "--quiet", "--noise", *asked)
        assert regard("backtranslate", model, *asked).code == 0
        return pairs_of(out)

    found = made()
    assert [target for _, target in found] == [f"{i} and the words of a line" for i in range(30)]
    assert all(set(source.split()) <= set(words) for source, _ in found)
    assert len({source for source, _ in found}) > 20
    assert made("--seed", 1) == found != made("--seed", 2)
    assert made("--tag", "<n>") == [(f"<n> {source}", target) for source, target in found]


def test_interrupted_it_goes_on_where_it_was(regard, model, says, text, tmp_path):
    asked = ("backtranslate", model, "--input", text, "--out", tmp_path / "out.tsv")
    says(Breaking(dict.fromkeys(LINES[:3], "once")))
    assert regard(*asked).code == 130
    assert not (tmp_path / "out.tsv").exists()
    says({LINES[3]: "twice"})  # the others are not asked again
    ended = regard(*asked)
    assert "translating 4 lines, 3 of which are done" in ended.err
    assert [source for source, _ in pairs_of(tmp_path / "out.tsv")] == ["once"] * 3 + ["twice"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mono", "out.tsv"]


def test_what_was_made_otherwise_is_not_gone_on_with(regard, model, says, text, tmp_path):
    asked = ("backtranslate", model, "--input", text, "--out", tmp_path / "out.tsv")
    for change in (("--beam", 3), ()):
        says(Breaking(dict.fromkeys(LINES[:3], "before")))
        assert regard(*asked).code == 130
        if not change:
            text.write_text(text.read_text().replace("abc", "cab"))
        says(dict.fromkeys(text.read_text().splitlines(), "after"))
        regard(*asked, *change)
        assert [source for source, _ in pairs_of(tmp_path / "out.tsv")] == ["after"] * 4
        (tmp_path / "out.tsv").unlink()


@pytest.mark.parametrize("name", ["out.tsv.gz", "out.tsv.xz"])
def test_pairs_are_packed_as_the_name_says_also_when_interrupted(regard, model, says, text, tmp_path, name):
    asked = ("backtranslate", model, "--input", text, "--out", tmp_path / name, "--quiet")
    says(Breaking(dict.fromkeys(LINES[:3], "once")))
    assert regard(*asked).code == 130
    says({LINES[3]: "twice"})
    assert regard(*asked).code == 0
    assert (tmp_path / name).read_bytes()[:2] == {".gz": b"\x1f\x8b", ".xz": b"\xfd7"}[(tmp_path / name).suffix]
    assert pairs_of(tmp_path / name) == list(zip(["once"] * 3 + ["twice"], LINES, strict=True))


def test_what_is_there_is_not_written_over(regard, model, says, text, tmp_path):
    out = tmp_path / "out.tsv"
    asked = ("backtranslate", model, "--input", text, "--out", out)
    says(dict.fromkeys(LINES, "before"))
    assert regard(*asked).code == 0
    written = out.read_bytes()
    says({})
    for change in ((), ("--beam", 3)):
        regard(*asked, *change).refused(str(out), "already exists", "remove it, or choose another --out")
    assert out.read_bytes() == written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mono", "out.tsv"]


def test_stopped_when_all_was_written_it_is_finished_by_the_same_call_alone(regard, model, says, text, tmp_path):
    asked = ("backtranslate", model, "--input", text, "--out", tmp_path / "out.tsv", "--quiet")
    says(dict.fromkeys(LINES, "once"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.commands.backtranslate.forget", Breaking().__missing__)
        assert regard(*asked).code == 130
    regard(*asked, "--beam", 3).refused("already exists")
    says({})
    assert regard(*asked).code == 0
    assert [source for source, _ in pairs_of(tmp_path / "out.tsv")] == ["once"] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mono", "out.tsv"]


class Breaking(dict):
    """Whoever asks for more than is there presses Ctrl-C."""

    def __missing__(self, line):
        raise KeyboardInterrupt


def test_a_model_that_cannot_speak_leaves_nothing(regard, model, text, tmp_path, monkeypatch):
    def silent(*_arguments):
        raise DecodingError("no voice")

    monkeypatch.setattr(resuming, "speaking", silent)
    regard("backtranslate", model, "--input", text, "--out", tmp_path / "out.tsv", "--quiet").refused("no voice")
    assert [path.name for path in tmp_path.iterdir()] == ["mono"]


def test_nothing_half_made_is_left(regard, model, says, text, tmp_path):
    says(dict.fromkeys(LINES, ""))
    ended = regard("backtranslate", model, "--input", text, "--out", tmp_path / "out.tsv", "--quiet")
    ended.refused("none of 4 lines", "empty 4")
    assert [path.name for path in tmp_path.iterdir()] == ["mono"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--seed", 3), ("--seed", "with --sample")),
        (("--sample", "--beam", 3), ("--beam", "without --sample")),
        (("--tag", "two words"), ("--tag 'two words'", "one word")),
        (("--tag", ""), ("--tag ''", "one word")),
    ],
)
def test_options_without_an_effect_are_refused(regard, model, text, tmp_path, asked, words):
    regard("backtranslate", model, "--input", text, "--out", tmp_path / "o", *asked).refused(*words)


def test_progress_is_told_now_and_then(capsys):
    from regard.commands.progress import counted, standing

    ticks = iter([0, 4, 9, 11, 12, 25])
    assert list(counted("abcde", 10, done=2, clock=lambda: next(ticks))) == list("abcde")
    assert capsys.readouterr().err.splitlines() == [standing(5, 10, 3 / 11), standing(7, 10, 5 / 25)]
    assert standing(1024, None, 12.3) == "1,024 lines, 12 a second"
    assert standing(1000, 3000, 100.0) == "1,000 of 3,000 lines, 100 a second, 20 s left"
