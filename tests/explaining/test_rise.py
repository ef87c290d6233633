"""RISE on black boxes whose answer is known: the saliency is within its own stated errors, and it stops in time."""

import itertools
import math
import statistics

import pytest
import torch

from regard.errors import DecodingError
from regard.explaining.rise import Saliency, Stop, binary_masks, estimate, power_sums, rise

W = torch.tensor([[2.0, 0.0], [-1.0, 3.0], [0.0, 0.0], [0.5, -0.25], [1.0, 1.0]]).double()  # places × outputs
NEVER = -1.0  # a tolerance that nothing meets


def linear(masks):
    return masks.double() @ W


def last(score, kept, seed, most, places=5):
    masks = binary_masks(places, kept, 64, torch.Generator().manual_seed(seed))
    *_, found = rise(score, masks, Stop(tolerance=NEVER, most=most))
    return found


# ---------------------------------------------------------------- a linear model
@pytest.mark.parametrize("kept", [0.5, 0.2])
def test_the_weights_of_a_linear_model_are_within_their_stated_errors_as_often_as_they_should(kept):
    found = [last(linear, kept, seed, most=500) for seed in range(60)]
    inside = torch.stack([(one.values - W).abs() <= 1.96 * one.errors for one in found])
    assert 0.91 <= inside.double().mean() <= 0.99  # 95 % of 600, give or take four errors of such a share


def test_more_masks_come_closer_and_say_so():
    few, many = (last(linear, 0.5, seed=3, most=most) for most in (200, 20_000))
    torch.testing.assert_close(many.errors, few.errors / 10, rtol=0.2, atol=0.0)  # as 1/√n
    assert (many.values - W).abs().max() <= 4 * many.errors.max() < 0.2


def test_a_place_that_is_ignored_is_within_errors_of_nothing():
    for seed in range(20):
        found = last(lambda masks: (masks.double() @ W).sin(), 0.5, seed, most=400)
        assert (found.values[2].abs() <= 4 * found.errors[2]).all()


def test_two_places_that_matter_only_together_share_it():
    """f = m₀ m₁: E[f | m₀] = m₀ · p."""
    found = last(lambda masks: (masks[:, :1] * masks[:, 1:2]).double(), 0.3, seed=5, most=4000, places=3)
    expected = torch.tensor([[0.3], [0.3], [0.0]]).double()
    assert ((found.values - expected).abs() <= 4 * found.errors).all()


def test_masks_between_0_and_1_weigh_by_their_share():
    """S = Cov(m, f) / (E[m] E[1 − m]): for even masks and f = w m it is w · (1/12) / (1/4)."""
    generator = torch.Generator().manual_seed(2)
    masks = (torch.rand(64, len(W), generator=generator) for _ in itertools.count())
    *_, found = rise(linear, masks, Stop(tolerance=NEVER, most=6400))
    assert ((found.values - W / 3).abs() <= 4 * found.errors).all()
    assert found.errors.max() < 0.1


# ---------------------------------------------------------------- the estimate
def test_for_binary_masks_it_is_the_difference_of_two_means_with_the_error_of_welch():
    generator = torch.Generator().manual_seed(7)
    masks = (torch.rand(40, 3, generator=generator) < 0.4).double()
    values = torch.randn(40, 2, generator=generator).double() + masks[:, :1]
    found = estimate(power_sums(masks, values), 40)
    for place, output in itertools.product(range(3), range(2)):
        sides = [values[masks[:, place] == side, output].tolist() for side in (1, 0)]
        means = [statistics.fmean(side) for side in sides]
        variance = sum(statistics.pvariance(side) / len(side) for side in sides) * 40 / 38
        assert float(found.values[place, output]) == pytest.approx(means[0] - means[1])
        assert float(found.errors[place, output]) == pytest.approx(math.sqrt(variance))


def test_for_other_masks_it_is_two_weighted_means_and_the_error_is_that_of_leaving_one_out():
    generator = torch.Generator().manual_seed(8)
    masks = torch.rand(300, 1, generator=generator).double()
    values = (3 * masks + torch.randn(300, 1, generator=generator)).exp().double()

    def saliency(m, f):
        return float((m * f).sum() / m.sum() - ((1 - m) * f).sum() / (1 - m).sum())

    found = estimate(power_sums(masks, values), 300)
    assert float(found.values) == pytest.approx(saliency(masks, values))
    left = [saliency(*(torch.cat([x[:i], x[i + 1 :]]) for x in (masks, values))) for i in range(300)]
    jackknife = math.sqrt(299 * statistics.pvariance(left))
    assert float(found.errors) == pytest.approx(jackknife, rel=0.05)


def test_batches_of_any_size_and_a_large_constant_change_nothing():
    masks = next(binary_masks(len(W), 0.5, 90, torch.Generator().manual_seed(1)))
    *_, whole = rise(linear, [masks], Stop(tolerance=NEVER))
    *_, parts = rise(lambda part: linear(part) + 1e6, masks.split(7), Stop(tolerance=NEVER))
    assert parts.masks == whole.masks == 90
    torch.testing.assert_close(parts.values, whole.values, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(parts.errors, whole.errors, rtol=1e-6, atol=1e-7)


def test_a_place_that_never_changes_is_unknown():
    masks = torch.tensor([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    (found,) = rise(lambda given: given[:, 2:], [masks], Stop())
    assert found.values[:, 0].tolist() == [0.0, 0.0, 1.0]
    assert found.errors[:, 0].tolist() == [math.inf, math.inf, 0.0]


def test_two_masks_tell_nothing_of_their_error():
    (found,) = rise(linear, [torch.eye(2, len(W))], Stop())
    assert not found.values.any()
    assert found.errors.isinf().all()


# ---------------------------------------------------------------- the stop rule
def test_it_stops_at_the_first_batch_that_is_certain_enough():
    stop = Stop(tolerance=0.1, least=1, most=100_000)
    events = list(rise(linear, binary_masks(len(W), 0.5, 16, torch.Generator().manual_seed(4)), stop))
    assert events[-1].masks < 100_000
    shares = [float(one.errors.max() / (one.values.max() - one.values.min())) for one in events]
    assert [share <= 0.1 for share in shares] == [False] * (len(shares) - 1) + [True]
    assert [one.masks for one in events] == [16 * (i + 1) for i in range(len(events))]


def test_it_believes_no_error_before_the_least_number_of_masks():
    stop = Stop(tolerance=1e9, least=100, most=1000)
    events = list(rise(linear, binary_masks(len(W), 0.5, 30, torch.Generator().manual_seed(4)), stop))
    assert [one.masks for one in events] == [30, 60, 90, 120]


def test_it_never_asks_more_than_the_most():
    asked = []

    def score(masks):
        asked.append(len(masks))
        return linear(masks)

    generator = torch.Generator().manual_seed(4)
    assert [one.masks for one in rise(score, binary_masks(len(W), 0.5, 30, generator), Stop(NEVER, most=70))] == [
        30,
        60,
        70,
    ]
    assert asked == [30, 30, 10]


def test_a_box_that_depends_on_nothing_is_certain_of_it():
    *_, found = rise(lambda masks: torch.ones(len(masks), 1), binary_masks(4, 0.5, 50, torch.Generator()), Stop())
    assert found.masks == 200
    assert not found.values.any()
    assert found.uncertainty == 0


def test_no_range_but_errors_is_no_certainty():
    zeros = torch.zeros(2, 1)
    assert Saliency(zeros, zeros + 0.1, 9).uncertainty == math.inf
    assert Saliency(torch.tensor([[0.5], [-1.5]]), zeros + 0.1, 9).uncertainty == pytest.approx(0.05)


@pytest.mark.parametrize("most", [-1, 0, 2])
def test_too_few_masks_are_refused(most):
    with pytest.raises(DecodingError, match=f"^rise: {most} masks tell nothing of their own error; ask with 3 or more"):
        Stop(most=most)


def test_an_output_that_is_not_finite_is_refused():
    masks = binary_masks(3, 0.5, 20, torch.Generator().manual_seed(1))
    with pytest.raises(DecodingError, match=r"^rise: an output is not finite"):
        next(rise(lambda given: given.log().sum(1, keepdim=True), masks, Stop()))


def test_binary_masks_keep_places_as_often_as_asked_and_independently():
    masks = torch.cat(list(itertools.islice(binary_masks(3, 0.3, 500, torch.Generator().manual_seed(6)), 20)))
    assert set(masks.flatten().tolist()) == {0.0, 1.0}
    share, together = masks.mean(0), masks.mT @ masks / len(masks)
    assert (share - 0.3).abs().max() < 0.02
    assert (together[~torch.eye(3, dtype=torch.bool)] - 0.09).abs().max() < 0.02
