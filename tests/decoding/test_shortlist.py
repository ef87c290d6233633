"""A short vocabulary for each batch: what is listed is computed as before, what is not cannot be said."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.data.examples import Example
from regard.decoding import shortlist as module
from regard.decoding.shortlist import Narrowed, Shortlist, coverage, learn_shortlist
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.text.characters import Characters
from regard.text.special import BOS, EOS, PAD, UNK

VOCAB = 13
TABLE = torch.tensor([[EOS, EOS], [EOS, EOS], [EOS, EOS], [EOS, EOS], [12, 9], [9, EOS], [6, 7]], dtype=torch.int32)
LIST = Shortlist(TABLE, torch.tensor([8, 5], dtype=torch.int32), VOCAB)


def outputs():
    torch.manual_seed(4)
    linear = nn.Linear(6, VOCAB).double()
    return {"with a bias": linear, "tied": TiedOutput(TokenEmbedding(VOCAB, 6, 1.0)).double()}


@pytest.mark.parametrize(
    ("sources", "also", "expected"),
    [
        ([[4, 5], [4]], [], [EOS, 5, 8, 9, 12]),
        ([[6]], [], [EOS, 5, 6, 7, 8]),
        ([[6], [5, 6]], [[10], [10, 4]], [EOS, 4, 5, 6, 7, 8, 9, 10]),
        ([[]], [], [EOS, 5, 8]),
        ([], [], [EOS, 5, 8]),
    ],
)
def test_a_batch_lists_what_its_tokens_list_sorted_and_once(sources, also, expected):
    assert LIST.ids(sources, also).tolist() == expected
    assert LIST.ids(sources[::-1], also[::-1]).tolist() == expected


def test_the_list_of_a_batch_is_the_union_of_its_rows():
    rows = [[4, 6], [5], [], [6, 6, 5]]
    alone = set().union(*(LIST.ids([row]).tolist() for row in rows))
    assert LIST.ids(rows).tolist() == sorted(alone)


@pytest.mark.parametrize("kind", outputs())
def test_a_narrowed_layer_computes_the_listed_logits(kind):
    output, x, ids = outputs()[kind], torch.randn(2, 3, 6, dtype=torch.float64), torch.tensor([1, 3, 8, 12])
    narrow = Narrowed(output, ids)
    torch.testing.assert_close(narrow(x), output(x)[..., ids])
    torch.testing.assert_close(F.linear(x, narrow.weight, narrow.bias), narrow(x))


@pytest.mark.parametrize("kind", outputs())
def test_a_list_of_the_whole_vocabulary_changes_not_one_bit(kind):
    output, x = outputs()[kind], torch.randn(5, 6, dtype=torch.float64)
    assert torch.equal(Narrowed(output, torch.arange(VOCAB))(x), output(x))


def test_columns_are_where_the_ids_went_and_the_unlisted_are_left_out():
    narrow = Narrowed(outputs()["tied"], LIST.ids([[4, 5]]))
    columns = narrow.columns([12, PAD, EOS, 9, 7, VOCAB + 4])
    assert narrow.ids[columns].tolist() == [12, EOS, 9]
    assert narrow.columns([PAD, UNK, BOS]).tolist() == []
    assert narrow.columns(narrow.ids.tolist()).tolist() == list(range(len(narrow.ids)))


SOURCE, TARGET = Characters("abcdefg1"), Characters("1ABCDEFG")


def corpus():
    """Words of letters in a random order and their capitals in another; a 1 that is seen on neither side."""
    rng, found = np.random.default_rng(1), []
    for _ in range(200):
        letters = rng.choice(list("abcdefg"), 3, replace=False)
        capitals = rng.permutation([letter.upper() for letter in letters])
        sides = SOURCE.encode("".join(letters)), TARGET.encode("".join(capitals))
        found.append(Example(*(np.array(side, dtype=np.int32) for side in sides)))
    return found


@pytest.fixture
def learned(monkeypatch):
    for name, value in {"SMALLEST": 1, "FREQUENT": 1, "LIKELY": 1}.items():
        monkeypatch.setattr(module, name, value)
    return learn_shortlist(corpus(), SOURCE, TARGET, seed=1)


def test_a_letter_lists_its_capital_and_a_sign_that_both_sides_know_itself(learned):
    common = set(learned.ids([]).tolist())
    assert len(common) == 2  # the end token and the most frequent capital
    for letter in "abcdefg":
        assert set(learned.ids([SOURCE.encode(letter)]).tolist()) == common | set(TARGET.encode(letter.upper()))
    assert set(learned.ids([SOURCE.encode("1")]).tolist()) == common | set(TARGET.encode("1"))
    assert coverage(learned, corpus()) == 1.0


def test_coverage_is_the_share_of_listed_target_tokens(learned):
    common = TARGET.decode(learned.ids([]).tolist())
    a, b, c = [letter for letter in "abcdefg" if letter.upper() not in common][:3]
    sides = SOURCE.encode(a + b), TARGET.encode(a.upper() + c.upper() + b.upper() + c.upper())
    assert coverage(learned, [Example(*(np.array(side, dtype=np.int32) for side in sides))]) == 0.5
    assert coverage(learned, []) == 1.0


def test_a_small_vocabulary_needs_no_list():
    assert learn_shortlist(corpus(), SOURCE, TARGET, seed=1) is None


class WithBytes(Characters):
    """Characters of which the last is named as a byte piece is."""

    def name(self, id):
        return "<0xC3>" if id == len(self) - 1 else super().name(id)


@pytest.mark.parametrize("met", [True, False])
def test_bytes_that_spell_some_target_are_always_listed(learned, met):
    target = WithBytes("1ABCDEFGH")
    byte = len(target) - 1
    rare = [Example(np.array([4], dtype=np.int32), np.array([byte if met else 5], dtype=np.int32))]
    found = learn_shortlist(corpus() + rare, SOURCE, target, seed=1)
    assert (byte in found.ids([]).tolist()) == met
