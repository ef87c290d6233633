"""R-Drop: the plain formula, and the same in pieces with its own gradients."""

import pytest
import torch
import torch.nn.functional as F

from regard.layers import consistency
from regard.layers.consistency import consistent_cross_entropy, divergence, projected_consistency
from regard.layers.loss import smoothed_cross_entropy

ROWS, WIDTH, VOCAB = 7, 4, 11


def tensors(seed=0):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(2, ROWS, WIDTH, dtype=torch.float64, generator=random)
    weight = 2 * torch.randn(VOCAB, WIDTH, dtype=torch.float64, generator=random)
    bias = torch.randn(VOCAB, dtype=torch.float64, generator=random)
    return x, weight, bias, torch.randint(VOCAB, (ROWS,), generator=random)


def test_the_divergence_is_torchs_in_both_directions():
    x, weight, bias, _ = tensors()
    first, second = (x @ weight.mT + bias).log_softmax(-1)
    forth = F.kl_div(second, first, log_target=True, reduction="sum")  # torch takes q first
    back = F.kl_div(first, second, log_target=True, reduction="sum")
    torch.testing.assert_close(divergence(first, second), forth + back)
    torch.testing.assert_close(divergence(second, first), forth + back)
    assert divergence(first, first + 3) < 1e-12 < forth


@pytest.mark.parametrize("agreement", [0.0, 0.7, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("chunk", [3, 256])
def test_the_pieces_are_the_whole_forwards_and_backwards(monkeypatch, agreement, smoothing, biased, chunk):
    monkeypatch.setattr(consistency, "CHUNK", chunk)
    *leaves, targets = tensors()
    ours, theirs = ([leaf.clone().requires_grad_() for leaf in leaves[: 2 + biased]] for _ in range(2))
    whole, entropy = projected_consistency(*ours[:2], ours[2] if biased else None, targets, smoothing, agreement)
    first, second = theirs[0] @ theirs[1].mT + (theirs[2] if biased else 0)
    expected = consistent_cross_entropy(first, second, targets, smoothing, agreement)
    torch.testing.assert_close(whole, expected)
    (1.7 * whole).backward()
    (1.7 * expected).backward()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    both = smoothed_cross_entropy(first, targets, smoothing) + smoothed_cross_entropy(second, targets, smoothing)
    torch.testing.assert_close(entropy, both.detach() / 2)
    assert not entropy.requires_grad


def test_passes_that_agree_cost_one_cross_entropy():
    x, weight, bias, targets = tensors()
    whole, _ = projected_consistency(x[:1].repeat(2, 1, 1), weight, bias, targets, 0.1, 5.0)
    torch.testing.assert_close(whole, smoothed_cross_entropy(x[0] @ weight.mT + bias, targets, 0.1))


def test_two_words_by_hand():
    """p = (3/4, 1/4), q = (1/2, 1/2): KL + KL = (1/4)·log(3/2) − (1/4)·log(1/2) = ¼ log 3."""
    first, second = torch.tensor([[0.75, 0.25]], dtype=torch.float64).log(), torch.zeros(1, 2, dtype=torch.float64)
    log_3 = torch.tensor(3.0, dtype=torch.float64).log()
    torch.testing.assert_close(divergence(first, second), log_3 / 4)
    entropy = -(torch.tensor(0.75, dtype=torch.float64).log() + torch.tensor(0.5, dtype=torch.float64).log()) / 2
    found = consistent_cross_entropy(first, second, torch.tensor([0]), 0.0, 8.0)
    torch.testing.assert_close(found, entropy + 8 / 4 * log_3 / 4)
