"""Several models as one, and the candidate that the others back: `--with` and `--mbr`."""

import json

import pytest
from tiny_runs import TINY

from regard.commands import translate
from regard.decoding.consensus import UTILITIES, by_agreement
from regard.engine import load
from regard.recipe.folder import read_recipe
from regard.run import Request, run

LINES = ["abc de", "", "dcb ea", "bad cab", "ee"]
STDIN = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def second(model, corpus, tmp_path_factory):
    """Another model with the words of the first, of another family, trained for a moment on other words."""
    folder = tmp_path_factory.mktemp("second")
    (folder / "t.tsv").write_text("abc\tCBA\nbca\tACB\nde ab\tED BA\n" * 20)
    settings = [setting for setting in TINY if not setting.startswith(("model.", "text."))]
    recurrent = ("model.kind=recurrent", "model.width=8", "model.embedding=6", "data.filters.drop_duplicates=false")
    request = Request(
        tsv=folder / "t.tsv",
        valid_source=corpus / "test.source",
        valid_target=corpus / "test.target",
        vocabulary=model,
        out=folder / "m",
        steps=12,
        settings=(*settings, *recurrent, "text.dropout=0.2"),
        quiet=True,
    )
    run(request)
    return folder / "m"


def test_a_borrowed_vocabulary_is_the_same_to_the_byte(model, second):
    assert (second / "shared.json").read_bytes() == (model / "shared.json").read_bytes()
    text = read_recipe(second).text
    assert text.model_copy(update={"dropout": 0.0}) == read_recipe(model).text
    assert text.dropout == 0.2  # not a matter of the vocabulary


def test_a_vocabulary_that_the_recipe_contradicts_or_that_is_none_is_refused(train, regard, model, corpus, tmp_path):
    asked = ("--vocabulary", model, "--steps", 1)
    train(tmp_path / "m", *asked, settings=("text.kind=bytes",)).refused("text.kind: bytes", "characters")
    train(tmp_path / "m", "--vocabulary", corpus, "--steps", 1).refused("manifest.json")
    assert not (tmp_path / "m").exists()


def test_several_models_speak_as_one(regard, model, second):
    joint = load(model, others=[second])
    expected = [one.text for one in joint.translate(LINES)]
    assert regard("translate", model, "--with", second, stdin=STDIN).lines == expected
    assert expected != regard("translate", model, stdin=STDIN).lines
    assert joint.write(LINES) == expected


def test_a_model_with_itself_changes_nothing(regard, model, corpus):
    files = ("--source", corpus / "test.source", "--target", corpus / "test.target", "--json")
    alone, twice = (json.loads(regard("evaluate", model, *files, *more).out) for more in ((), ("--with", model)))
    assert alone.pop("perplexity") == pytest.approx(twice.pop("perplexity"), abs=2e-4)  # rounded to four places
    assert {**alone, "seconds": 0} == {**twice, "seconds": 0}


def test_evaluation_scores_what_the_models_say_together(regard, model, second, corpus, tmp_path):
    files = ("--source", corpus / "test.source", "--target", corpus / "test.target")
    asked = ("--with", second, "--mbr", 3, "--beam", 4)
    ended = regard("evaluate", model, *files, *asked, "--output", tmp_path / "out", "--json")
    spoken = regard("translate", model, *asked, "--input", corpus / "test.source")
    assert (tmp_path / "out").read_text() == spoken.out
    alone = json.loads(regard("evaluate", model, *files, "--json").out)
    assert json.loads(ended.out)["perplexity"] != alone["perplexity"]


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("way", [("--beam", 6), ("--sample", "--temperature", 1.3, "--seed", 5)], ids=["best", "drawn"])
def test_the_candidate_that_the_others_back_is_chosen(regard, model, utility, way):
    chosen = regard("translate", model, "--mbr", 6, "--utility", utility, *way, stdin=STDIN).lines
    found = [json.loads(line) for line in regard("translate", model, "--n-best", 6, *way, "--json", stdin=STDIN).lines]
    expected = []
    for one in found:
        texts = [candidate["text"] for candidate in one["candidates"]]
        expected.append([texts[i] for i in by_agreement(texts, UTILITIES[utility])])
    assert chosen == [texts[0] for texts in expected]
    if way[0] == "--sample":
        assert chosen != [one["text"] for one in found]  # a choice that is always the first would prove nothing
    several = regard("translate", model, "--mbr", 6, "--n-best", 2, "--utility", utility, *way, stdin=STDIN).lines
    assert several == [text for texts in expected for text in (*texts, "")[:2]]


def test_chrf_is_what_candidates_agree_by(regard, model):
    asked = ("translate", model, "--mbr", 5, "--sample")
    assert regard(*asked, stdin=STDIN) == regard(*asked, "--utility", "chrf", stdin=STDIN)


class Helper:
    """As much of `Workers` as a search needs, without the processes."""

    def __init__(self, model, count, *, shortlist, wishes):
        self.engine, self.count, self.shortlist = wishes.over(load(model)), count, shortlist
        self.search = self.engine.search

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def translate(self, texts, search, prefix):
        assert prefix is None
        return iter(self.engine.translate(list(texts), search))


def test_workers_choose_as_one_process_does(regard, model, monkeypatch):
    alone = regard("translate", model, "--mbr", 3, "--workers", 1, stdin=STDIN)
    monkeypatch.setattr(translate, "Workers", Helper)
    assert regard("translate", model, "--mbr", 3, "--workers", 2, stdin=STDIN) == alone


def test_many_lines_for_several_models_stay_in_one_process(regard, model, second, monkeypatch):
    few = regard("translate", model, "--with", second, stdin=STDIN)
    monkeypatch.setattr(translate, "MANY", 2)
    monkeypatch.setattr(translate, "Workers", None)
    assert regard("translate", model, "--with", second, stdin=STDIN) == few


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--utility", "bleu"), ("--utility", "only with --mbr")),
        (("--mbr", 2, "--n-best", 3), ("--n-best: 3 of 2", "raise --mbr")),
        (("--mbr", 65), ("--mbr 65", "at most 64", "--sample")),
        (("--mbr", 9, "--beam", 4), ("--mbr 9", "at most 4", "raise --beam")),
        (("--with", "MODEL", "--workers", 2), ("--workers 2", "one process")),
        (("--with", "MODEL", "--shortlist"), ("shortlist", "found several")),
        (("--with", "MODEL", "--engine", "ctranslate2"), ("ensemble", "use the torch engine")),
        (("--with", "nowhere"), ("nowhere", "no such model")),
    ],
)
def test_what_cannot_be_done_together_is_refused(regard, model, asked, words):
    asked = [model if part == "MODEL" else part for part in asked]
    regard("translate", model, *asked, stdin=STDIN).refused(*words)


def test_models_of_other_words_are_refused_in_either_order(regard, train, model, tmp_path):
    assert train(tmp_path / "m", "--steps", 1, settings=("text.kind=bytes",)).code == 0
    assert (
        train(tmp_path / "two", "--steps", 1, settings=("text.shared=false", "model.share_embeddings=false")).code == 0
    )
    for other in (tmp_path / "m", tmp_path / "two"):
        regard("translate", model, "--with", other, stdin=STDIN).refused(
            str(other), "not the vocabulary", "--vocabulary"
        )
        regard("translate", other, "--with", model, stdin=STDIN).refused(str(model), "not the vocabulary")
