"""Deletion and insertion: areas worked by hand, and the right order is the best of all orders."""

import itertools

import pytest
import torch

from regard.explaining.faithfulness import deletion, insertion, of_own_orders, removals

W = torch.tensor([[1.0, 0.0], [4.0, 2.0], [0.5, 3.0], [2.0, 1.0]]).double()


def linear(masks):
    return masks.double() @ W


def test_places_go_in_their_order_until_none_is_left():
    masks = removals(torch.tensor([2, 0, 1]), 3)
    assert masks.tolist() == [[1, 1, 1], [1, 1, 0], [0, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize(("places", "steps"), [(7, 3), (5, 5), (3, 50), (1, 1), (10, 4)])
def test_steps_are_as_equal_as_they_can_be_and_reach_both_ends(places, steps):
    kept = removals(torch.randperm(places, generator=torch.Generator().manual_seed(1)), steps).sum(1)
    assert kept[0] == places
    assert kept[-1] == 0
    assert len(kept) == min(places, steps) + 1
    hidden = kept.diff().abs()
    assert hidden.max() - hidden.min() <= 1


def test_areas_by_hand():
    """Weights 3 and 1: deleting the larger first leaves 4, 1, 0; inserting it first gives 0, 3, 4."""
    order = torch.tensor([0, 1])

    def score(masks):
        return (masks @ torch.tensor([3.0, 1.0]))[:, None]

    assert deletion(score, order).tolist() == [(4 + 1) / 2 / 2 + (1 + 0) / 2 / 2]
    assert insertion(score, order).tolist() == [(0 + 3) / 2 / 2 + (3 + 4) / 2 / 2]
    assert deletion(score, order.flip(0)).tolist() == [(4 + 3) / 2 / 2 + (3 + 0) / 2 / 2]


def test_uneven_steps_count_by_their_width():
    """Three places in two steps: 2 hidden, then the third; f counts what is kept: 3, 1, 0."""
    found = deletion(lambda masks: masks.sum(1, keepdim=True), torch.arange(3), steps=2)
    assert float(found) == pytest.approx((3 + 1) / 2 * (2 / 3) + (1 + 0) / 2 * (1 / 3))


@pytest.mark.parametrize("output", [0, 1])
def test_no_order_is_more_faithful_to_a_linear_model_than_that_of_its_weights(output):
    best = W[:, output].argsort(descending=True)
    orders = [torch.tensor(order) for order in itertools.permutations(range(4))]
    falls = [float(deletion(linear, order)[output]) for order in orders]
    rises = [float(insertion(linear, order)[output]) for order in orders]
    assert float(deletion(linear, best)[output]) == min(falls) < max(falls)
    assert float(insertion(linear, best)[output]) == max(rises) > min(rises)


def test_for_a_linear_model_both_areas_of_an_order_add_up_to_the_whole():
    for order in itertools.permutations(range(4)):
        both = deletion(linear, torch.tensor(order)) + insertion(linear, torch.tensor(order))
        torch.testing.assert_close(both, W.sum(0))


def test_a_box_that_does_not_care_has_its_value_as_area():
    found = deletion(lambda masks: torch.full((len(masks), 1), 0.3), torch.arange(9), steps=4)
    assert float(found) == pytest.approx(0.3)


def test_each_output_may_have_an_order_of_its_own():
    orders = torch.stack([W[:, output].argsort(descending=True) for output in (0, 1)])
    found = of_own_orders(linear, orders)
    falls = [float(deletion(linear, order, 4)[output]) for output, order in enumerate(orders)]
    rises = [float(insertion(linear, order, 4)[output]) for output, order in enumerate(orders)]
    assert found.deletion == pytest.approx(sum(falls) / 2)
    assert found.insertion == pytest.approx(sum(rises) / 2)


def test_own_orders_by_hand():
    """Weights 3 and 1, and 1 and 3: both fall 4, 1, 0 by their own orders, and rise 0, 3, 4."""
    found = of_own_orders(lambda masks: masks @ torch.tensor([[3.0, 1.0], [1.0, 3.0]]), torch.tensor([[0, 1], [1, 0]]))
    assert (found.deletion, found.insertion) == ((4 + 1) / 4 + 1 / 4, 3 / 4 + (3 + 4) / 4)
