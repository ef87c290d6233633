"""Several tasks in one corpus list: each source begins with the words that name its task."""

import pytest
from pydantic import ValidationError

from regard.data.corpus import Part, load_corpora
from regard.data.options import CorpusOptions, DataOptions, LabelledOptions
from regard.data.pairs import Pair
from regard.recipe.recipe import parse


def tsv(path, pairs):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def labelled(path, rows, header="text\tlabel"):
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def test_a_prefix_stands_before_every_source_and_no_target(tmp_path):
    pairs = [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    plain = CorpusOptions(tsv=tsv(tmp_path / "a", pairs))
    asked = plain.model_copy(update={"prefix": "translate English to German: "})
    without, found = (load_corpora(DataOptions(corpora=(one,), valid=(one,))) for one in (plain, asked))
    expected = [Pair("translate English to German: " + pair.source, pair.target) for pair in without.corpora[0].pairs]
    assert found.corpora[0].pairs == expected == found.validation
    assert found.report == without.report  # what is left out is decided by the text itself


def test_labels_are_written_as_answers_however_short_they_are(tmp_path):
    question = "What is the name of the longest river of the whole continent?"
    rows = [(question, "X"), ("How far is it from Denver to Aspen, by any road there is?", "Y")]
    corpus = CorpusOptions(labelled=LabelledOptions(file=labelled(tmp_path / "q", rows)), prefix="kind: ")
    loaded = load_corpora(DataOptions(corpora=(corpus,), valid=(corpus,)))
    assert loaded.corpora[0].pairs == [Pair("kind: " + text, label) for text, label in rows]
    assert loaded.validation == loaded.corpora[0].pairs


def test_two_texts_follow_their_names(tmp_path):
    file = labelled(tmp_path / "q", [("It rains.", "It is wet.", "yes")], "premise\thypothesis\tlabel")
    options = LabelledOptions(file=file, text="premise", second="hypothesis")
    loaded = load_corpora(
        DataOptions(corpora=(CorpusOptions(labelled=options),), valid=CorpusOptions(labelled=options))
    )
    assert loaded.validation == [Pair("premise: It rains. hypothesis: It is wet.", "yes")]


def test_validation_pairs_of_several_tasks_follow_one_another_under_their_names(tmp_path):
    first = CorpusOptions(tsv=tsv(tmp_path / "a", [("a", "b"), ("c", "d")]), prefix="spell: ")
    second = CorpusOptions(tsv=tsv(tmp_path / "b", [("e", "f")]))
    loaded = load_corpora(DataOptions(corpora=(first, second), valid=(first, second)))
    assert loaded.validation == [Pair("spell: a", "b"), Pair("spell: c", "d"), Pair("e", "f")]
    assert loaded.parts == (Part("spell", 2), Part(str(tmp_path / "b"), 1))
    assert load_corpora(DataOptions(corpora=(first,), valid=(first,))).parts == ()


def test_a_recipe_may_name_one_validation_corpus_or_a_list_of_them():
    corpora = [{"tsv": "a"}]
    one, several, none = (
        parse({"data": {"corpora": corpora, **valid}}, "recipe").data.valid
        for valid in ({"valid": {"tsv": "v"}}, {"valid": [{"tsv": "v"}]}, {"valid": None})
    )
    assert one == several == (CorpusOptions(tsv="v"),)
    assert none == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"file": "a", "valid": "b"}, r"labelled\.valid: .*under data\.valid; put it there"),
        ({"files": {"x": "a"}, "valid_files": {"x": "b"}}, r"labelled\.valid: .*under data\.valid; put it there"),
        ({"file": "a", "weight": 2.0}, r"labelled\.weight: the corpus has a weight of its own"),
    ],
)
def test_what_a_mixture_says_elsewhere_is_refused_in_its_labelled_texts(options, message):
    with pytest.raises(ValidationError, match=message):
        CorpusOptions(labelled=LabelledOptions(**options))
