import pytest
import torch
import torch.nn.functional as F

from regard.layers import loss
from regard.layers.loss import Loss, perplexity, projected_cross_entropy, smoothed_cross_entropy


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_smoothing_agrees_with_torch(dtype, tolerance, smoothing):
    torch.manual_seed(1)
    logits, targets = 3 * torch.randn(7, 5, dtype=dtype), torch.randint(5, (7,))
    theirs = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(
        smoothed_cross_entropy(logits, targets, smoothing), theirs, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_in_pieces_is_the_whole_loss_forwards_and_backwards(biased, smoothing, monkeypatch):
    monkeypatch.setattr(loss, "CHUNK", 3)  # 7 rows: two whole pieces and a rest
    torch.manual_seed(1)
    x, weight = torch.randn(7, 4, dtype=torch.double), torch.randn(5, 4, dtype=torch.double)
    bias = torch.randn(5, dtype=torch.double) if biased else None
    targets = torch.randint(5, (7,))
    inputs = [part.requires_grad_() for part in (x, weight, bias) if part is not None]
    whole = smoothed_cross_entropy(F.linear(x, weight, bias), targets, smoothing)
    pieces = projected_cross_entropy(x, weight, bias, targets, smoothing)
    torch.testing.assert_close(pieces, whole)
    expected = torch.autograd.grad(whole / 7, inputs)
    torch.testing.assert_close(torch.autograd.grad(pieces / 7, inputs), expected)


def test_large_logits_do_not_overflow():
    x, weight = torch.tensor([[1e4]]), torch.tensor([[1.0], [-1.0]])
    assert projected_cross_entropy(x, weight, None, torch.tensor([0]), 0.0).item() == 0.0
    assert projected_cross_entropy(x, weight, None, torch.tensor([1]), 0.0).item() == 2e4


def test_losses_add_and_divide_once():
    whole = Loss(torch.tensor(6.0), 2) + Loss(torch.tensor(3.0), 1)
    assert (whole.total.item(), whole.units, whole.mean.item()) == (9.0, 3, 3.0)


def test_perplexity_is_the_exponential_of_the_mean_loss_and_never_overflows():
    assert perplexity(0.0) == 1.0
    assert perplexity(torch.log(torch.tensor(8.0, dtype=torch.double)).item()) == pytest.approx(8.0)
    assert perplexity(1e9) == perplexity(700.0)
