import json

import pytest

from regard.errors import DataError
from regard.evaluation.by_length import by_length, table
from regard.evaluation.scores import bleu, exact_match

SOURCES = ["a", "a b", "a b c d e f", "a b c", "a b c d e f g h i", ""]
HYPOTHESES = ["v", "v w x y", "v w x y z", "w v x y z", "v w x y", "z"]
REFERENCES = ["v", "v w x z", "v w x y z", "v w x y z", "v w x y z", "y"]


def test_every_sentence_is_in_one_bucket_and_bounds_are_inclusive():
    found = by_length(SOURCES, HYPOTHESES, REFERENCES, bounds=(2, 5))
    assert [(b.shortest, b.longest, b.sentences) for b in found] == [(0, 2, 3), (3, 5, 1), (6, None, 2)]
    assert sum(b.sentences for b in found) == len(SOURCES)


def test_one_bucket_scores_like_the_whole_corpus():
    (whole,) = by_length(SOURCES, HYPOTHESES, REFERENCES, bounds=())
    assert whole.bleu == bleu(HYPOTHESES, REFERENCES).score
    assert whole.exact_match == exact_match(HYPOTHESES, REFERENCES)


def test_a_bucket_scores_like_its_own_sentences():
    long = by_length(SOURCES, HYPOTHESES, REFERENCES, bounds=(5,))[1]
    ours, theirs = [HYPOTHESES[2], HYPOTHESES[4]], [REFERENCES[2], REFERENCES[4]]
    assert long.bleu == bleu(ours, theirs).score
    assert long.exact_match == 50


def test_empty_buckets_are_left_out():
    found = by_length(["a b c"], ["x"], ["x"], bounds=(1, 2, 3, 4))
    assert [b.name for b in found] == ["3–3"]


def test_the_table_has_one_line_per_bucket():
    found = by_length(["a", "a b c"], ["x", "x"], ["x", "y"], bounds=(2,))
    assert table(found).splitlines()[2:] == ["| 0–2 | 1 | 0.0 | 100.0 |", "| 3+ | 1 | 0.0 | 0.0 |"]


def test_buckets_become_json():
    (bucket,) = by_length(["a"], ["x"], ["x"], bounds=())
    assert json.loads(json.dumps(bucket.to_json())) == {
        "shortest": 0,
        "longest": None,
        "sentences": 1,
        "bleu": 0.0,  # one word has no 4-grams
        "exact_match": 100.0,
    }


def test_unequal_counts_are_refused_with_all_counts():
    with pytest.raises(DataError, match="2 sources, 1 hypotheses and 3 references"):
        by_length(["a", "b"], ["a"], ["a", "b", "c"])


def test_bounds_must_rise():
    with pytest.raises(DataError, match=r"\[5, 5\]"):
        by_length(SOURCES, HYPOTHESES, REFERENCES, bounds=(5, 5))
