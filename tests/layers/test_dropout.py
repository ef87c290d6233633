import pytest
import torch

from regard.layers.dropout import Dropout, DropoutScaledAtTest, keep_mask


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_the_keep_rate_is_one_minus_the_nearest_256th_of_p(p):
    torch.manual_seed(4)
    values, rounded = 200_000, round(p * 256) / 256
    kept = keep_mask(torch.zeros(values), round(p * 256)).mean(dtype=torch.float64).item()
    deviation = (rounded * (1 - rounded) / values) ** 0.5
    assert abs(kept - (1 - rounded)) < 5 * deviation


def test_every_byte_of_a_draw_is_as_random_as_the_others():
    torch.manual_seed(5)
    for threshold in (1, 128, 255):
        rates = keep_mask(torch.zeros(8000, 8), threshold).mean(0, dtype=torch.float64)
        p = threshold / 256
        assert ((rates - (1 - p)).abs() < 5 * (p * (1 - p) / 8000) ** 0.5).all()


def test_what_is_kept_is_scaled_exactly_and_the_rest_is_zero():
    torch.manual_seed(6)
    x = torch.randn(7, 13, dtype=torch.float64)
    y = Dropout(0.1)(x)
    kept = y != 0
    torch.testing.assert_close(y, x * kept * (256 / (256 - 26)))
    assert 0 < kept.sum() < x.numel()


def test_the_gradient_passes_where_the_value_did():
    x = torch.ones(5, 11, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_both_forms_have_the_same_expectation_up_to_one_factor():
    torch.manual_seed(7)
    x, p = torch.full((100_000,), 3.0, dtype=torch.float64), 77 / 256
    ours, paper = Dropout(p), DropoutScaledAtTest(p)
    assert ours(x).mean().item() == pytest.approx(3.0, rel=0.02)
    assert paper(x).mean().item() == pytest.approx(3.0 * (1 - p), rel=0.02)
    torch.testing.assert_close(paper.eval()(x), x * (1 - p))
    torch.testing.assert_close(ours.eval()(x) * (1 - p), paper(x))


def test_nothing_is_dropped_at_test_or_when_p_is_zero():
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_the_same_seed_gives_the_same_mask_and_the_next_draw_another():
    x = torch.ones(50, 20)
    torch.manual_seed(8)
    first, second = Dropout(0.5)(x), Dropout(0.5)(x)
    torch.manual_seed(8)
    assert torch.equal(Dropout(0.5)(x), first)
    assert not torch.equal(first, second)


def test_a_transposed_input_keeps_its_shape_and_values():
    torch.manual_seed(9)
    x = torch.randn(4, 6).T
    y = Dropout(0.5)(x)
    torch.testing.assert_close(y, 2 * x * (y != 0))
