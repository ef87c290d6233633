"""The black box that RISE asks: a hand-made linear model through it has the saliency that its weights say."""

from dataclasses import dataclass

import pytest
import torch

from regard.explaining.leaving_out import Written, remembered, steps_of, without_previous, without_source
from regard.explaining.rise import Stop, binary_masks, rise
from regard.models.interface import Memory, SequenceToSequence, no_summary
from regard.text.special import BOS, EOS

WEIGHTS = {4: 0.125, 5: -0.1, 6: 0.0, 7: 0.05, BOS: 0.0, EOS: 0.0}  # what each token adds to p(4); EOS has the rest
BASE = 0.3
TABLE = torch.tensor([WEIGHTS.get(id, 0.0) for id in range(8)], dtype=torch.float64)


@dataclass(frozen=True)
class Sum:
    """What was read so far has added."""

    total: torch.Tensor

    def select(self, rows):
        return Sum(self.total[rows])


class Encoder:
    def __call__(self, tokens, mask):
        values = (TABLE[tokens] * mask)[..., None]
        return Memory(values, mask, no_summary(values))


class Decoder:
    """p(4) = base + Σ weights of the source and of what was read; p(EOS) = 1 − p(4)."""

    def begin(self, memory):
        return Sum(memory.values.sum((1, 2)))

    def features(self, tokens, state):
        read = TABLE[tokens].cumsum(1) + state.total[:, None]
        return read[..., None], Sum(read[:, -1])

    def output(self, features):
        p = BASE + features
        nothing = torch.full_like(p, -torch.inf)
        return torch.cat([nothing, nothing, nothing, (1 - p).log(), p.log(), *[nothing] * 3], -1)

    def __call__(self, tokens, state):
        features, state = self.features(tokens, state)
        return self.output(features), state


LINEAR = SequenceToSequence(Encoder(), Decoder())
WRITTEN = Written(source=(4, 5, 6, 7, EOS), start=BOS, target=(4, 4, EOS))


def test_the_saliency_of_a_linear_model_is_its_weights_within_its_own_errors():
    ask = remembered(without_source(LINEAR, WRITTEN))
    masks = binary_masks(4, 0.5, 128, torch.Generator().manual_seed(2))
    *_, found = rise(ask, masks, Stop(tolerance=-1.0, most=4096))
    own = torch.tensor([WEIGHTS[id] for id in WRITTEN.source[:-1]], dtype=torch.float64)[:, None]
    expected = torch.cat([own, own, -own], 1)  # what raises 4 lowers the end
    assert ((found.values - expected).abs() <= 4 * found.errors).all()
    assert found.errors.max() < 0.01


def test_what_was_written_adds_its_weight_to_what_comes_after_it_alone():
    ask = remembered(without_previous(LINEAR, WRITTEN))
    masks = binary_masks(2, 0.5, 128, torch.Generator().manual_seed(3))
    *_, found = rise(ask, masks, Stop(tolerance=-1.0, most=4096))
    expected = torch.tensor([[0.0, 0.125, -0.125], [0.0, 0.0, -0.125]], dtype=torch.float64)
    assert ((found.values - expected).abs() <= 4 * found.errors + 1e-12).all()


def test_masks_give_probabilities_by_hand():
    found = without_source(LINEAR, WRITTEN)(torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]]))
    first = [0.3 + 0.125, 0.3 + 2 * 0.125, 1 - (0.3 + 3 * 0.125)]  # from the second on, 4 was read as well
    second = [0.3 - 0.05, 0.3 - 0.05 + 0.125, 1 - (0.3 - 0.05 + 2 * 0.125)]
    assert found[0].tolist() == pytest.approx(first)
    assert found[1].tolist() == pytest.approx(second)


def test_a_mask_is_asked_once_and_answered_in_its_place():
    asked = []

    def ask(masks):
        asked.extend(masks.tolist())
        return masks @ torch.tensor([[1.0, 10.0], [2.0, 20.0]])

    again = remembered(ask)
    masks = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    assert again(masks).tolist() == [[1, 10], [3, 30], [1, 10]]
    assert again(torch.tensor([[0.0, 1.0], [1.0, 1.0]])).tolist() == [[2, 20], [3, 30]]
    assert sorted(asked) == [[0, 1], [1, 0], [1, 1]]


def test_a_step_stands_behind_the_last_token_that_was_kept():
    kept = torch.tensor([[True, False, True], [False, False, False]])
    assert steps_of(kept).tolist() == [[0, 1, 1, 2], [0, 0, 0, 0]]
