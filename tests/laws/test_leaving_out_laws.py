"""Tokens that are left out might as well never have been written: for every family, by plain loops over one row."""

import itertools

import pytest
import torch
from families import FAMILIES, MODELS, SOURCELESS, build

from regard.explaining.leaving_out import Written, remembered, without_previous, without_source
from regard.explaining.rise import Stop, rise
from regard.text.special import BOS, EOS

WRITTEN = Written(source=(4, 8, 5, EOS), start=BOS, target=(4, 6, 5, EOS))


def every_mask(places):
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=places)))


@torch.no_grad()
def probability(model, source, read, token):
    """p(token) after the tokens that were read, alone in its batch."""
    row = torch.tensor([source], dtype=torch.long)
    logits = model(row, torch.ones_like(row, dtype=torch.bool), torch.tensor([read]))
    return float(logits[0, -1].softmax(-1)[token])


def kept(ids, mask):
    return [token for token, keep in zip(ids, mask.tolist(), strict=True) if keep]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_source_with_tokens_left_out_is_the_shorter_source(name):
    model, masks = build(name), every_mask(3)
    found = without_source(model, WRITTEN)(masks)
    for mask, row in zip(masks, found.tolist(), strict=True):
        source = [*kept(WRITTEN.source[:-1], mask), EOS]
        for t, token in enumerate(WRITTEN.target):
            expected = probability(model, source, [BOS, *WRITTEN.target[:t]], token)
            assert row[t] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_an_output_with_tokens_left_out_goes_on_from_the_shorter_one(name):
    model, masks = build(name), every_mask(3)
    written = Written((), BOS, WRITTEN.target) if name in SOURCELESS else WRITTEN
    found = without_previous(model, written)(masks)
    for mask, row in zip(masks, found.tolist(), strict=True):
        for t, token in enumerate(written.target):
            expected = probability(model, written.source, [BOS, *kept(written.target[:t], mask[:t])], token)
            assert row[t] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["the decks' bottleneck", "Transformer", "ByteNet"])
def test_rise_by_all_masks_is_the_exact_difference_of_expectations(name):
    model, masks = build(name), every_mask(3)
    (found,) = rise(remembered(without_source(model, WRITTEN)), [masks], Stop(tolerance=-1.0))
    for place, (t, token) in itertools.product(range(3), enumerate(WRITTEN.target)):
        means = []
        for side in (1.0, 0.0):
            rows = [mask for mask in masks if mask[place] == side]
            values = [
                probability(model, [*kept(WRITTEN.source[:-1], mask), EOS], [BOS, *WRITTEN.target[:t]], token)
                for mask in rows
            ]
            means.append(sum(values) / len(values))
        assert float(found.values[place, t]) == pytest.approx(means[0] - means[1], abs=1e-12)
    assert found.values.abs().max() > 1e-3
