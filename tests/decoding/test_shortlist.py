"""A short vocabulary for each batch: what is listed is computed as before, what is not cannot be said."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.data.examples import Example
from regard.decoding import shortlist as module
from regard.decoding.best import log_softmax_
from regard.decoding.bulk import translate
from regard.decoding.options import SearchOptions
from regard.decoding.shortlist import Narrowed, Shortlist, Spread, coverage, learn_shortlist, log_sum_exp_of_many
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.recipe.build import build
from regard.recipe.models import TransformerOptions
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


def log_probs(narrow, x):
    """Of the listed ids in the whole vocabulary, as a search takes them."""
    return log_softmax_(narrow.logits(x))[:, : len(narrow.ids)]


def layer(weight, bias=None):
    """An output layer of these values."""
    found = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None).double()
    with torch.no_grad():
        found.weight.copy_(weight)
        if bias is not None:
            found.bias.copy_(bias)
    return found


@pytest.mark.parametrize("kind", outputs())
def test_with_all_ids_listed_log_probs_are_those_of_the_whole_layer_to_the_bit(kind):
    output, x = outputs()[kind], torch.randn(5, 6, dtype=torch.float64)
    found = log_probs(Narrowed(output, torch.arange(VOCAB)), x)
    assert torch.equal(found, log_softmax_(output(x).detach()))
    torch.testing.assert_close(found, output(x).detach().log_softmax(-1))


@pytest.mark.parametrize("missing", [0, 7, VOCAB - 1])
@pytest.mark.parametrize("kind", outputs())
def test_a_single_id_that_is_not_listed_has_exactly_its_share(kind, missing):
    output, x = outputs()[kind], 3 * torch.randn(4, 6, dtype=torch.float64)
    ids = torch.tensor([id for id in range(VOCAB) if id != missing])
    torch.testing.assert_close(log_probs(Narrowed(output, ids), x), output(x).detach().log_softmax(-1)[:, ids])


@pytest.mark.parametrize("ids", [[3], [0, 5, 6], list(range(2, 12))], ids=len)
def test_ids_that_are_all_alike_have_exactly_their_share_whatever_is_listed(ids):
    output = layer(torch.randn(1, 6).double().expand(VOCAB, 6), torch.full((VOCAB,), 0.4).double())
    found = log_probs(Narrowed(output, torch.tensor(ids)), torch.randn(4, 6).double())
    torch.testing.assert_close(found, torch.full((4, len(ids)), 1 / VOCAB).double().log())


@pytest.mark.parametrize("kind", outputs())
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 3000.0])
def test_what_is_not_listed_has_a_share_that_is_never_negative(kind, scale):
    output, ids = outputs()[kind], LIST.ids([[4, 5]])
    x = scale * torch.randn(7, 6, dtype=torch.float64)
    narrow = Narrowed(output, ids)
    found, among_listed = log_probs(narrow, x), narrow(x).log_softmax(-1)
    assert found.isfinite().all()
    assert (found <= among_listed + 1e-9).all()
    taken = found - among_listed
    torch.testing.assert_close(taken, taken[:, :1].expand_as(taken))  # the same from each: the order stays


def cloud(seed, vocab, d):
    """A layer whose rows lie as a Gaussian has them, about a centre that is not 0, with unequal widths."""
    chance = torch.Generator().manual_seed(seed)
    rows = torch.randn(vocab, d + 1, generator=chance, dtype=torch.float64) * torch.linspace(0.1, 0.6, d + 1) + 0.2
    return layer(rows[:, :d], rows[:, d]), torch.randn(9, d, generator=chance, dtype=torch.float64)


def test_log_probs_of_many_gaussian_rows_are_nearly_those_of_the_whole_layer():
    output, x = cloud(1, 30_000, 5)
    ids = torch.arange(0, 30_000, 100)
    truth = output(x).detach().log_softmax(-1)[:, ids]
    torch.testing.assert_close(log_probs(Narrowed(output, ids), x), truth, rtol=0, atol=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_log_probs_are_nearer_to_the_truth_than_a_softmax_of_the_listed(seed):
    output, x = cloud(seed, 300, 7)
    ids = output(x).detach().topk(20).indices.unique()  # as a good list has them: whatever is likely somewhere
    narrow, truth = Narrowed(output, ids), output(x).detach().log_softmax(-1)[:, ids]
    error = (log_probs(narrow, x) - truth).abs()[:, 0]
    assert (error < (narrow(x).log_softmax(-1) - truth).abs()[:, 0] / 2).all()


@pytest.mark.parametrize("kind", outputs())
def test_the_spread_knows_the_variance_of_the_logits(kind):
    output, x = outputs()[kind], torch.randn(4, 6, dtype=torch.float64)
    torch.testing.assert_close(Spread.of(output).variance(x), output(x).detach().var(-1, correction=0))


def test_the_sum_of_many_is_that_of_gaussian_quantiles():
    standard = torch.special.ndtri((torch.arange(20_000).double() + 0.5) / 20_000)
    mean, deviation = torch.tensor([0.0, -3.0, 2.0]).double(), torch.tensor([0.5, 1.0, 1.5]).double()
    truth = (mean[:, None] + deviation[:, None] * standard).logsumexp(1)
    torch.testing.assert_close(mean + log_sum_exp_of_many(deviation.square(), 20_000), truth, rtol=0, atol=0.01)


@pytest.mark.parametrize(
    ("variance", "count", "expected"),
    [
        (5.0, 1, 0.0),  # one value is its mean
        (0.0, 8, math.log(8)),  # equal values
        (1.0, 8, math.log(8) + 0.5),
        (1e9, 8, 2 * math.log(8)),  # frozen
        (-1e-9, 8, math.log(8)),  # what rounding may leave of no variance
    ],
)
def test_sums_of_many_worked_by_hand(variance, count, expected):
    found = log_sum_exp_of_many(torch.tensor([variance]).double(), count)
    assert found.item() == pytest.approx(expected)


def test_a_shortlist_narrows_each_layer_by_its_own_rows_also_after_another():
    x, sources, also = torch.randn(3, 6, dtype=torch.float64), [[4], [6]], [[10]]
    first, second = outputs().values()
    for output in (first, first, second, first):
        found, expected = LIST.narrow(output, sources, also), Narrowed(output, LIST.ids(sources, also))
        assert torch.equal(found.ids, expected.ids)
        torch.testing.assert_close(found(x), expected(x))
        torch.testing.assert_close(log_probs(found, x), log_probs(expected, x))


@pytest.mark.parametrize("untied", [False, True])
def test_a_list_of_all_that_may_be_said_changes_neither_outputs_nor_scores(untied):
    options = TransformerOptions(
        width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1, tie_output=not untied
    )
    model = build(options, 11, 11, shared=True, seed=2).double().eval()
    sayable = torch.tensor([id for id in range(11) if id != UNK])  # one is missing, and has exactly its share
    shortlist = Shortlist(torch.full((11, 1), EOS), sayable, 11)
    sources, search = [[5, 6], [7, 8, 9, 10, 4], [6], []], SearchOptions(beam=3, n_best=3, max_ratio=1.0, max_extra=3)
    whole, found = translate(model, sources, search), translate(model, sources, search, shortlist=shortlist)
    for theirs, ours in zip(whole, found, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs])


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


@pytest.mark.parametrize(("most", "share", "expected"), [(2, 0.5, 2), (9, 0.25, 3)])
def test_the_frequent_that_are_always_listed_are_so_many_or_a_share_of_the_vocabulary(
    monkeypatch, most, share, expected
):
    for name, value in {"SMALLEST": 1, "FREQUENT": most, "SHARE": share}.items():
        monkeypatch.setattr(module, name, value)
    assert len(TARGET) == 12
    assert len(learn_shortlist(corpus(), SOURCE, TARGET, seed=1).ids([])) == expected + 1  # the end token


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
