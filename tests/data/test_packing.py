"""Packed rows lose no token and repeat none; rows of either kind depend on seed and epoch alone."""

import numpy as np
import pytest

from regard.data.packing import cropped_epoch, cut_rows, group, join, pack, packed_epoch
from regard.errors import DataError
from regard.text.special import BOS, EOS

SIZES = [(1, 1, 1), (7, 3, 2), (12, 4, 5), (100, 7, 3), (5, 9, 2), (64, 8, 4)]  # tokens, context, rows
EPOCHS = {"packed": packed_epoch, "cropped": cropped_epoch}


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


def visits(batches: list[np.ndarray], tokens: int) -> np.ndarray:
    """How often each token of the stream is predicted, by a plain loop."""
    found = np.zeros(tokens, dtype=int)
    for batch in batches:
        for first, end in batch.tolist():
            for place in range(first, end):
                found[place % tokens] += 1
    return found


def test_the_stream_is_every_document_and_an_end_after_each():
    assert join([[5, 6], [], [7]]).tolist() == [5, 6, EOS, 7, EOS]
    assert join([[9]]).dtype == np.int32


@pytest.mark.parametrize("documents", [[], [[], []]])
def test_a_stream_of_nothing_is_refused(documents):
    with pytest.raises(DataError, match=r"data\.texts: found no token in any document"):
        join(documents)


@pytest.mark.parametrize(("tokens", "context", "rows"), SIZES)
@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_packed_every_token_is_predicted_exactly_once_an_epoch(tokens, context, rows, epoch):
    assert (visits(packed_epoch(tokens, context, rows, seed=3, epoch=epoch), tokens) == 1).all()
    assert (visits(group(pack(tokens, context), rows), tokens) == 1).all()


@pytest.mark.parametrize(("tokens", "context", "rows"), SIZES)
def test_only_the_last_batch_of_packed_rows_is_of_another_size(tokens, context, rows):
    batches = packed_epoch(tokens, context, rows, seed=0, epoch=2)
    lengths = [set((batch[:, 1] - batch[:, 0]).tolist()) for batch in batches]
    whole = tokens // context
    assert lengths == [{context}] * -(-whole // rows) + [{tokens % context}] * (tokens % context > 0)
    assert [len(batch) for batch in batches[: whole // rows]] == [rows] * (whole // rows)
    assert sum(map(len, batches)) == -(-tokens // context)


def test_in_order_the_rows_are_the_stream_itself():
    stream = join([[5, 6, 7, 8], [9, 10]])
    rows = [cut_rows(stream, batch)[1] for batch in group(pack(len(stream), 3), 2)]
    assert np.concatenate([batch.ravel() for batch in rows]).tolist() == stream.tolist()
    assert [batch.shape for batch in rows] == [(2, 3), (1, 2)]


def test_targets_are_inputs_shifted_by_one_and_documents_begin_with_the_start_token():
    stream = join([[5, 6, 7], [8], [9, 10]])  # 5 6 7 E 8 E 9 10 E
    batch = np.array([[0, 5], [3, 8], [7, 12]])
    inputs, targets = cut_rows(stream, batch)
    assert targets.tolist() == [[5, 6, 7, EOS, 8], [EOS, 8, EOS, 9, 10], [10, EOS, 5, 6, 7]]
    assert inputs.tolist() == [[BOS, 5, 6, 7, BOS], [7, BOS, 8, BOS, 9], [9, 10, BOS, 5, 6]]
    assert cut_rows(stream, batch, start=EOS)[0].tolist()[0] == [EOS, 5, 6, 7, EOS]
    assert inputs.dtype == targets.dtype == np.int32
    assert stream.tolist() == [5, 6, 7, EOS, 8, EOS, 9, 10, EOS]  # nothing was changed in place


def test_a_part_of_a_batch_gives_a_part_of_its_rows():
    stream = join([list(range(4, 40))])
    batch = packed_epoch(len(stream), 5, 6, seed=0, epoch=0)[0]
    whole = cut_rows(stream, batch)
    part = cut_rows(stream, batch[1::2])
    assert all((theirs[1::2] == ours).all() for theirs, ours in zip(whole, part, strict=True))


@pytest.mark.parametrize("kind", EPOCHS)
def test_an_epoch_depends_on_seed_and_epoch_alone(kind):
    epoch = EPOCHS[kind]
    first = epoch(1000, 8, 4, seed=1, epoch=2)
    assert same(first, epoch(1000, 8, 4, seed=1, epoch=2))
    assert not same(first, epoch(1000, 8, 4, seed=1, epoch=3))
    assert not same(first, epoch(1000, 8, 4, seed=2, epoch=2))
    assert not same(first, epoch(1000, 8, 4, seed=2, epoch=1))


def test_packed_rows_begin_elsewhere_in_the_next_epoch():
    begins = [{first % 8 for batch in packed_epoch(800, 8, 4, 0, epoch) for first, _ in batch} for epoch in range(6)]
    assert all(len(found) == 1 for found in begins)
    assert len(set.union(*begins)) > 1


@pytest.mark.parametrize(("tokens", "context", "rows"), SIZES)
def test_crops_hold_at_least_as_many_tokens_as_the_stream_but_less_than_a_batch_more(tokens, context, rows):
    batches = cropped_epoch(tokens, context, rows, seed=0, epoch=0)
    length = min(context, tokens)
    assert {batch.shape for batch in batches} == {(rows, 2)}
    assert {end - first for batch in batches for first, end in batch.tolist()} == {length}
    assert 0 <= len(batches) * rows * length - tokens < rows * length


def test_crops_visit_every_token_equally_often_in_the_long_run():
    epochs = 400
    found = sum(visits(cropped_epoch(40, 8, 5, seed=0, epoch=epoch), 40) for epoch in range(epochs))
    # 400 · 5 rows of 8 tokens over 40: 400 each, binomial with n = 2000, p = 0.2, σ ≈ 17.9; five of those either way.
    assert abs(found - epochs).max() < 5 * (2000 * 0.2 * 0.8) ** 0.5
