"""Bracket scores are EVALB's: rules worked by hand, a second scorer written from its README, and the program itself."""

import random
import re
import shutil
import subprocess
from itertools import islice

import pytest
from toy_trees import LABELS, TAGS, damaged, random_tree, treebank

from regard.data.readers import read_lines
from regard.errors import DataError
from regard.evaluation.brackets import BracketScore, compare, score_brackets
from regard.evaluation.trees import read_tree, read_trees, retag, write_tree

COLLINS = """DEBUG 0
MAX_ERROR 10000
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL ADVP PRT
"""


def counts(gold, parsed):
    found = compare(read_tree(gold), read_tree(parsed))
    return found.gold, found.parsed, found.matched


# ---------------------------------------------------------------- a second scorer: lists and loops, by the README
def parse(text):
    """A tree as [label, child, …] and a tagged word as (label, word)."""
    stack = [[]]
    for token in re.findall(r"\([^\s()]*|\)|[^\s()]+", text):
        if token.startswith("("):
            stack.append([token[1:]])
        elif token == ")":
            node = stack.pop()
            stack[-1].append(tuple(node) if len(node) == 2 and isinstance(node[1], str) else node)
        else:
            stack[-1].append(token)
    return stack[0][0]


def without(node, deleted):
    """README [7].1: remove the words with these tags, and what then dominates nothing."""
    if isinstance(node, tuple):
        return None if node[0] in deleted else node
    children = [kept for child in node[1:] if (kept := without(child, deleted)) is not None]
    return [node[0], *children] if children else None


def tagged_words(node):
    if node is None:
        return []
    return [node] if isinstance(node, tuple) else [pair for child in node[1:] for pair in tagged_words(child)]


def spans(node, start=0):
    if node is None or isinstance(node, tuple):
        return []
    label = re.match(r"[^-=]*", node[0])[0]  # README [7].2
    found = [] if label == "TOP" else [("ADVP" if label == "PRT" else label, start, start + len(tagged_words(node)))]
    for child in node[1:]:
        found += spans(child, start)
        start += len(tagged_words(child))
    return found


def slow_score(golds, parses, longest=None):
    deleted = ["-NONE-", ",", ":", "``", "''", "."]
    total = dict.fromkeys(
        ["sentences", "errors", "skipped", "gold", "parsed", "matched", "complete", "words", "tags"], 0
    )
    for gold, parsed in zip(map(parse, golds), map(parse, parses), strict=True):
        if longest is not None and len(tagged_words(without(gold, ["-NONE-"]))) > longest:
            continue
        total["sentences"] += 1
        gold, parsed = without(gold, deleted), without(parsed, deleted)
        ours, theirs = tagged_words(parsed), tagged_words(gold)
        if not ours or [word for _, word in ours] != [word for _, word in theirs]:
            total["errors" if ours else "skipped"] += 1
            continue
        one, other, matched = spans(gold), spans(parsed), 0
        total["gold"] += len(one)
        total["parsed"] += len(other)
        left = list(one)
        for bracket in other:  # README [7].5: as often as it is in both
            if bracket in left:
                left.remove(bracket)
                matched += 1
        total["matched"] += matched
        total["complete"] += matched == len(one) == len(other)
        total["words"] += len(ours)
        same = {"PRT": "ADVP"}
        total["tags"] += sum(same.get(a, a) == same.get(b, b) for (a, _), (b, _) in zip(ours, theirs, strict=True))
    return total


def agree(ours: BracketScore, theirs):
    p, r = theirs["matched"] / theirs["parsed"], theirs["matched"] / theirs["gold"]
    valid = theirs["sentences"] - theirs["errors"] - theirs["skipped"]
    assert (ours.sentences, len(ours.mismatched), ours.skipped) == (
        theirs["sentences"],
        theirs["errors"],
        theirs["skipped"],
    )
    assert ours.precision == pytest.approx(100 * p, abs=1e-9)
    assert ours.recall == pytest.approx(100 * r, abs=1e-9)
    assert ours.f1 == pytest.approx(100 * 2 * p * r / (p + r), abs=1e-9)
    assert ours.complete_match == pytest.approx(100 * theirs["complete"] / valid, abs=1e-9)
    assert ours.tagging_accuracy == pytest.approx(100 * theirs["tags"] / theirs["words"], abs=1e-9)


def random_pairs(count, seed):
    rng = random.Random(seed)
    golds = [random_tree(rng, rng.randint(1, 50)) for _ in range(count)]
    return golds, [damaged(tree, rng, LABELS, TAGS) for tree in golds]


@pytest.mark.parametrize("longest", [None, 40, 10])
def test_random_trees_score_as_the_readme_says(longest):
    golds, parses = random_pairs(40, seed=1)
    ours = score_brackets(golds, parses, longest)
    assert 0 < ours.complete < ours.sentences
    assert 0 < ours.matched < min(ours.gold, ours.parsed)
    assert longest == 10 or ours.mismatched
    agree(ours, slow_score(map(write_tree, golds), map(write_tree, parses), longest))


def damaged_treebank(seed):
    lines = islice(read_lines(treebank("dev.clean.trees.gz")), 0, None, 9)  # all of them take long under typed tests
    golds = list(read_trees(lines, "dev"))
    labels = sorted({"PRT", "ADVP", "NP", "VP", "S", "PP", "SBAR"})
    rng = random.Random(seed)
    return golds, [damaged(tree, rng, labels, ["NN", "JJ", ",", "VB"], rng.choice([0.0, 0.02, 0.2])) for tree in golds]


@pytest.mark.parametrize("longest", [None, 40])
def test_damaged_treebank_trees_score_as_the_readme_says(longest):
    golds, parses = damaged_treebank(seed=2)
    ours = score_brackets(golds, parses, longest)
    assert 50 < ours.f1 < 98
    assert ours.mismatched
    agree(ours, slow_score(map(write_tree, golds), map(write_tree, parses), longest))


def test_damaged_treebank_trees_score_as_the_program_says(tmp_path):
    program = shutil.which("evalb")
    if program is None:
        pytest.skip("needs the program evalb on the PATH")
    golds, parses = damaged_treebank(seed=5)
    for name, trees in (("gold", golds), ("test", parses)):
        (tmp_path / name).write_text("".join(write_tree(tree) + "\n" for tree in trees), encoding="utf-8")
    (tmp_path / "prm").write_text(COLLINS, encoding="utf-8")
    ended = subprocess.run(
        [program, "-p", "prm", "gold", "test"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for block, longest in zip(ended.stdout.split("=== Summary ===")[1].split("\n-- ")[1:], [None, 40], strict=True):
        said = {name.strip(): float(value) for name, value in re.findall(r"^([A-Z].*?)=\s*([\d.]+)$", block, re.M)}
        ours = score_brackets(golds, parses, longest)
        assert ours.sentences == said["Number of sentence"]
        assert len(ours.mismatched) == said["Number of Error sentence"]
        assert ours.skipped == said["Number of Skip  sentence"]
        assert ours.recall == pytest.approx(said["Bracketing Recall"], abs=0.0051)
        assert ours.precision == pytest.approx(said["Bracketing Precision"], abs=0.0051)
        assert ours.f1 == pytest.approx(said["Bracketing FMeasure"], abs=0.0051)
        assert ours.complete_match == pytest.approx(said["Complete match"], abs=0.0051)
        assert ours.tagging_accuracy == pytest.approx(said["Tagging accuracy"], abs=0.0051)


# ---------------------------------------------------------------- laws, and rules worked by hand
def test_a_tree_compared_with_itself_is_perfect():
    golds, _ = random_pairs(20, seed=3)
    golds = [tree for tree in golds if compare(tree, tree).status == "scored"]
    score = score_brackets(golds, golds)
    assert (score.precision, score.recall, score.f1) == (100, 100, 100)
    assert (score.complete_match, score.tagging_accuracy, score.mismatched) == (100, 100, ())


def test_exchanging_the_sides_exchanges_precision_and_recall():
    golds, parses = random_pairs(30, seed=4)
    keep = [i for i, pair in enumerate(zip(golds, parses, strict=True)) if compare(*pair).status == "scored"]
    golds, parses = [golds[i] for i in keep], [parses[i] for i in keep]
    one, other = score_brackets(golds, parses), score_brackets(parses, golds)
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)


@pytest.mark.parametrize(
    ("gold", "parsed", "expected"),
    [
        # the root does not count, nor does it matter whether it is there
        ("(TOP (S (NN a)))", "(S (NN a))", (1, 1, 1)),
        # function labels are cut off, ADVP is PRT
        ("(S (NP-SBJ-1 (NN a)) (PRT=2 (RP b)))", "(S (NP (NN a)) (ADVP (RP b)))", (3, 3, 3)),
        # a bracket that differs by punctuation alone is the same; one around punctuation alone is none
        ("(S (NP (NN a) (, ,)) (NN b))", "(S (NP (NN a)) (PRN (, ,)) (NN b))", (2, 2, 2)),
        # traces, and what they leave empty, go
        ("(S (NN a) (SBAR (-NONE- 0) (S (-NONE- *))))", "(S (NN a))", (1, 1, 1)),
        # README [7].5: of n and m equal brackets, min(n, m) match
        ("(NP (NP (NP (NN a))))", "(NP (NP (NN a)))", (3, 2, 2)),
        ("(NP (NN a))", "(NP (NP (NN a)))", (1, 2, 1)),
        # the same words beneath another label, and a bracket that crosses
        ("(S (NP (NN a) (NN b)) (NN c))", "(S (VP (NN a) (NN b)) (NN c))", (2, 2, 1)),
        ("(S (NP (NN a) (NN b)) (NN c))", "(S (NN a) (NP (NN b) (NN c)))", (2, 2, 1)),
    ],
)
def test_brackets_counted_by_hand(gold, parsed, expected):
    assert counts(gold, parsed) == expected


def test_a_score_worked_by_hand():
    golds = [read_tree("(TOP (S (NP (DT a) (NN b)) (VP (VB c)) (. .)))"), read_tree("(TOP (S (NN d)))")]
    parses = [read_tree("(TOP (S (DT a) (NP (NN b)) (VP (VB c)) (. .)))"), read_tree("(TOP (S (NN e)))")]
    score = score_brackets(golds, parses)
    assert (score.gold, score.parsed, score.matched, score.mismatched) == (3, 3, 2, (1,))
    assert score.to_json() == {
        **{"precision": 200 / 3, "recall": 200 / 3, "f1": 200 / 3, "complete_match": 0.0, "tagging_accuracy": 100.0},
        **{"sentences": 2, "mismatched": (1,), "skipped": 0, "gold": 3, "parsed": 3, "matched": 2},
        **{"complete": 0, "words": 3, "tagged": 3},
    }


def test_the_cut_goes_by_the_words_of_the_reference_with_punctuation_but_without_traces():
    gold, parsed = read_tree("(S (NN a) (, ,) (-NONE- *) (. .))"), read_tree("(S (NN a))")
    assert score_brackets([gold], [parsed], 3).sentences == 1
    assert score_brackets([gold], [parsed], 2).sentences == 0


def test_a_parse_without_tags_takes_those_of_the_reference():
    gold, parsed = read_tree("(S (NN a) (. .))"), read_tree("(S (XX a) (XX .))")
    assert score_brackets([gold], [parsed]).mismatched == (0,)
    assert score_brackets([gold], [retag(parsed, gold.tags)]).f1 == 100


def test_nothing_to_score_scores_nothing():
    dots = list(read_trees(["(S (. .))"], "x"))
    score = score_brackets(dots, dots)
    assert (score.skipped, score.f1, score.complete_match, score.tagging_accuracy) == (1, 0, 0, 0)
    assert score_brackets([], []).precision == 0


def test_as_many_parses_as_trees():
    with pytest.raises(DataError, match="1 parses for 0 reference trees"):
        score_brackets([], [read_tree("(S (NN a))")])
