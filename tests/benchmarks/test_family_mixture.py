"""Three tasks together and alone: the same recipe, a third of the time, and scores of texts that nobody trained on."""

import gzip

import pytest
from typed_commands import Typed

from benchmarks.family import mixture
from benchmarks.family.bench import Bench
from regard.recipe.recipe import parse, read_tree

CAPTIONS = ("translate English to German: ", "translate German to English: ")


def answer(bleu, exact):
    return {"bleu": {"score": bleu}, "exact_match": exact}


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    (tmp_path / "trec-qc").mkdir()
    lines = "coarse\tfine\ttext\nHUM\tHUM:ind\tWho ?\nLOC\tLOC:city\tWhere ?\n"
    (tmp_path / "trec-qc" / "test.tsv.gz").write_bytes(gzip.compress(lines.encode()))
    answers = [answer(30, 1), answer(40, 1), answer(36, 1), answer(36, 1), answer(9, 80), answer(9, 100)]
    return Bench(tmp_path, tmp_path / "work", regard=Typed(answers))


def test_the_worst_share_is_that_of_the_task_that_loses_most(bench):
    found = mixture.t5(bench)
    assert found.figures["t5_worst_share_of_single"] == pytest.approx(30 / 40)
    assert found.figures["mixture, question: share"] == pytest.approx(0.8)  # labels by exact match
    assert found.minutes == 4.0
    tests = [words for words in bench.regard.commands if words[0] == "evaluate"]
    asked = [words[words.index("--ask") + 1] for words in tests]
    assert asked == [CAPTIONS[0]] * 2 + [CAPTIONS[1]] * 2 + ["question: "] * 2
    sources = [words[words.index("--source") + 1].rpartition("/")[2] for words in tests]
    assert sources[::2] == ["test_2016_flickr.en.gz", "test_2016_flickr.de.gz", "questions.txt"]
    assert (bench.work / "texts" / "questions.txt").read_text() == "Who ?\nWhere ?\n"
    assert (bench.work / "texts" / "questions.labels").read_text() == "HUM\nLOC\n"


@pytest.mark.parametrize("place", range(3))
def test_a_task_alone_has_its_own_pairs_and_a_third_of_the_time_and_all_else_alike(place):
    tree = read_tree(mixture.RECIPE)
    whole, single = parse(tree, "whole"), parse(mixture.alone(tree, place, "600s"), "single")
    assert single.data.corpora == (whole.data.corpora[place],)
    assert single.training.budget == 600
    assert [one.prefix for one in single.data.valid] == [whole.data.corpora[place].prefix] * (place < 2)
    assert (single.data.valid_size is None) == (place < 2)
    assert single.model == whole.model
    assert single.training.model_copy(update={"budget": whole.training.budget}) == whole.training
