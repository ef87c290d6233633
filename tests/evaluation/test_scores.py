import pytest
import sacrebleu

from regard.errors import DataError
from regard.evaluation import scores
from regard.evaluation.scores import bleu, bleu_lowercased, chrf, edits, evaluate, exact_match, ter

HYPOTHESES = [
    "the cat sat on the mat .",
    "A man rides a Bike down the road",
    "nothing here is right",
    "two dogs are running in the grass",
]
REFERENCES = [
    "the cat sat on a mat .",
    "a man rides a bike along the road",
    "everything there was wrong",
    "two dogs are running in the grass",
]


def test_scores_agree_with_calling_sacrebleu():
    found = evaluate(HYPOTHESES, REFERENCES)
    assert found.bleu.score == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert found.chrf.score == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert found.ter.score == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    lowercased = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=True)
    assert bleu_lowercased(HYPOTHESES, REFERENCES).score == lowercased.score
    assert lowercased.score > found.bleu.score


def test_signatures_say_case_tokeniser_and_version():
    found = evaluate(HYPOTHESES, REFERENCES)
    version = f"version:{sacrebleu.__version__}"
    assert found.bleu.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    assert "nc:6" in found.chrf.signature
    assert "tok:tercom" in found.ter.signature
    assert all(version in score.signature for score in (found.chrf, found.ter))
    assert "case:lc" in bleu_lowercased(HYPOTHESES, REFERENCES).signature


def test_a_corpus_equal_to_its_references_is_perfect():
    found = evaluate(REFERENCES, REFERENCES)
    assert found.bleu.score == pytest.approx(100)
    assert found.chrf.score == pytest.approx(100)
    assert found.ter.score == 0
    assert found.exact_match == 100


def test_the_order_of_the_pairs_does_not_matter():
    order = [2, 0, 3, 1]
    shuffled = evaluate([HYPOTHESES[i] for i in order], [REFERENCES[i] for i in order])
    straight = evaluate(HYPOTHESES, REFERENCES)
    assert shuffled.bleu.score == pytest.approx(straight.bleu.score)
    assert shuffled.chrf.score == pytest.approx(straight.chrf.score)
    assert shuffled.ter.score == pytest.approx(straight.ter.score)
    assert shuffled.exact_match == straight.exact_match


def test_exact_match_counts_equal_lines_without_their_outer_blanks():
    assert exact_match(["2022-03-03", " 2022-03-04\n", "2022-3-5"], ["2022-03-03", "2022-03-04", "2022-03-05"]) == (
        pytest.approx(200 / 3)
    )
    assert exact_match(["A"], ["a"]) == 0


def test_json_has_the_promised_keys():
    found = evaluate(HYPOTHESES, REFERENCES).to_json()
    assert list(found) == ["bleu", "chrf", "ter", "exact_match", "sentences"]
    assert all(set(found[name]) == {"score", "signature"} for name in ("bleu", "chrf", "ter"))
    assert found["exact_match"] == 25
    assert found["sentences"] == 4


def test_named_scores_are_the_three_with_a_signature():
    found = evaluate(HYPOTHESES, REFERENCES)
    assert found.named() == [("BLEU", found.bleu), ("chrF", found.chrf), ("TER", found.ter)]


@pytest.mark.parametrize("measure", [evaluate, bleu, bleu_lowercased, chrf, ter, exact_match])
def test_unequal_counts_are_refused_with_both_counts(measure):
    with pytest.raises(DataError, match="3 hypotheses for 2 references"):
        measure(["a", "b", "c"], ["a", "b"])


@pytest.mark.parametrize("measure", [evaluate, bleu, bleu_lowercased, chrf, ter, exact_match])
def test_an_empty_corpus_is_refused(measure):
    with pytest.raises(DataError, match="0 hypotheses and 0 references"):
        measure([], [])


def test_edits_worked_by_hand():
    assert edits("kitten", "sitting") == 3  # k→s, e→i, +g
    assert edits("", "abc") == 3
    assert edits("abc", "") == 3
    assert edits("abc", "bca") == 2  # TER would shift once


def test_ter_without_shifts_bounds_ter_from_above_and_says_so(monkeypatch):
    hypotheses, references = ["b c d e a", "X y z", "p q"], ["a b c d e", "x y w", "p q"]
    exact = ter(hypotheses, references)
    monkeypatch.setattr(scores, "LONGEST_FOR_TER", 3)
    bounded = ter(hypotheses, references)
    assert exact.score == pytest.approx(100 * (1 + 1 + 0) / 10)  # one shift, one substitution
    assert bounded.score == pytest.approx(100 * (2 + 1 + 0) / 10)  # the shift costs a deletion and an insertion
    assert bounded.signature == exact.signature + "|noshift:1"


def test_ter_without_shifts_equals_ter_where_no_shift_helps(monkeypatch):
    hypotheses, references = ["a B c x e", "k l m n"], ["a b c d e f", "k m n o"]
    exact = ter(hypotheses, references)
    monkeypatch.setattr(scores, "LONGEST_FOR_TER", 0)
    assert ter(hypotheses, references).score == pytest.approx(exact.score)
