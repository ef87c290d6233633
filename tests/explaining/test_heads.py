"""A head that is silenced is one that was never there; how much a loss depends on it is the slope that it has."""

import math

import pytest
import torch
from torch.nn import functional as F

from regard.explaining.heads import Habits, Head, every_head, gated, headed, silenced, slopes
from regard.explaining.record import Attention
from regard.explaining.roles import entropy, roles
from regard.layers.attention import CrossAttention
from regard.recipe.build import build
from regard.recipe.models import ConvS2SOptions, RecurrentOptions, TransformerOptions

SIZES = {"width": 12, "heads": 3, "feedforward": 7, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}
SOURCE, TARGET = torch.tensor([[4, 8, 5, 3], [7, 3, 0, 0]]), torch.tensor([[2, 4, 6], [2, 5, 4]])
GOAL = torch.tensor([[4, 6, 3], [5, 4, 3]])


@pytest.fixture(scope="module")
def model():
    found = build(TransformerOptions(**SIZES), 9, 8, shared=False, seed=3).double().eval()
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return found


def logits(model):
    return model(SOURCE, SOURCE > 0, TARGET)


def row_losses(model):
    """Σ of the cross-entropy of each row's tokens."""
    return F.cross_entropy(logits(model).mT, GOAL, reduction="none").sum(1)


def test_every_head_is_named_once_in_the_order_of_the_model(model):
    found = every_head(model)
    kinds = [("encoder", 1), ("decoder", 1), ("cross", 1), ("decoder", 2), ("cross", 2)]
    assert found == [Head(kind, layer, head) for kind, layer in kinds for head in (1, 2, 3)]
    assert str(found[7]) == "cross 1.2"


@pytest.mark.parametrize("options", [RecurrentOptions(embedding=5, width=6), ConvS2SOptions(width=6)])
def test_attention_with_one_head_alone_has_none_to_take_away(options):
    assert every_head(build(options, 9, 8, shared=False, seed=3)) == []


# ---------------------------------------------------------------- without some
def plain_attention(module, x, memory, visible, without):
    """Σ over the heads that are left of softmax(q kᵀ / √e) v, each through its own columns of W^O; one row."""
    e, packed = module.output.in_features // module.heads, module.packed(memory)
    if isinstance(module, CrossAttention):
        q, (k, v) = module.query(x), packed.chunk(2, -1)
    else:
        q, k, v = packed.chunk(3, -1)
    found = module.output.bias.expand(len(x), -1)
    for head in range(module.heads):
        part = slice(head * e, (head + 1) * e)
        scores = (q[:, part] @ k[:, part].mT / math.sqrt(e)).masked_fill(~visible, -torch.inf)
        if head not in without:
            found = found + scores.softmax(-1) @ v[:, part] @ module.output.weight[:, part].mT
    return found


@torch.no_grad()
def plain_logits(model, source, target, removed):
    """The whole model, layer by layer, for one row without padding."""

    def attend(path, x, memory, visible):
        module = headed(model)[path]
        kind = "cross" if "cross" in path else path.split(".")[0]
        layer = int(path.split(".")[2]) + 1
        gone = {head.head - 1 for head in removed if (head.kind, head.layer) == (kind, layer)}
        return plain_attention(module, x, memory, visible, gone)

    def through(layer, path, x, memory, causal):
        visible = torch.ones(len(x), len(x), dtype=torch.bool)
        y = layer.around_attention.norm(x)
        x = x + attend(f"{path}.attention", y, y, visible.tril() if causal else visible)
        if causal:
            x = x + attend(f"{path}.cross", layer.around_cross.norm(x), memory, visible.new_ones(len(x), len(memory)))
        return x + layer.feedforward(layer.around_feedforward.norm(x))

    x = model.encoder.entrance(source[None], 0)[0]
    for number, layer in enumerate(model.encoder.layers):
        x = through(layer, f"encoder.layers.{number}", x, x, False)
    memory = model.encoder.norm(x)
    x = model.decoder.entrance(target[None], 0)[0]
    for number, layer in enumerate(model.decoder.layers):
        x = through(layer, f"decoder.layers.{number}", x, memory, True)
    return model.decoder.output(model.decoder.norm(x))


REMOVED = (
    (),
    (Head("encoder", 1, 2),),
    (Head("decoder", 2, 1), Head("decoder", 2, 3)),
    (Head("cross", 1, 3), Head("cross", 2, 2), Head("encoder", 1, 1)),
    tuple(Head("cross", 1, head) for head in (1, 2, 3)),
)


@pytest.mark.parametrize("removed", REMOVED, ids=str)
def test_without_heads_the_model_is_the_sum_over_the_others(model, removed):
    with silenced(model, removed), torch.no_grad():
        found = model(SOURCE[:1], SOURCE[:1] > 0, TARGET[:1])[0]
    torch.testing.assert_close(found, plain_logits(model, SOURCE[0], TARGET[0], removed))


@pytest.mark.parametrize("removed", REMOVED[1:], ids=str)
def test_silence_is_a_gate_of_zero_and_leaves_no_trace(model, removed):
    whole = logits(model)
    gates = {path: torch.ones(1, module.heads).double() for path, module in headed(model).items()}
    paths = {(head.kind, head.layer): path for path, module in headed(model).items() for head in heads_of(path, module)}
    for head in removed:
        gates[paths[head.kind, head.layer]][0, head.head - 1] = 0
    with gated(model, gates):
        gone = logits(model)
    with silenced(model, removed):
        torch.testing.assert_close(logits(model), gone)
    assert not torch.allclose(gone, whole)
    assert torch.equal(logits(model), whole)


def heads_of(path, module):
    kind = "cross" if "cross" in path else path.split(".")[0]
    return [Head(kind, int(path.split(".")[2]) + 1, head + 1) for head in range(module.heads)]


def test_what_fails_in_silence_does_not_last(model):
    whole = logits(model)
    with pytest.raises(ZeroDivisionError), silenced(model, every_head(model)):
        1 / 0  # noqa: B018
    assert torch.equal(logits(model), whole)


# ---------------------------------------------------------------- slopes
def test_slopes_are_those_of_finite_differences_row_by_row(model):
    found = slopes(model, 2, lambda: row_losses(model).sum())
    assert list(found) == every_head(model)
    step = 1e-5
    for path, module in headed(model).items():
        for place, head in enumerate(heads_of(path, module)):
            sides = []
            for sign in (1, -1):
                gate = torch.ones(2, module.heads).double()
                gate[:, place] += sign * step
                with gated(model, {path: gate}), torch.no_grad():
                    sides.append(row_losses(model))
            torch.testing.assert_close(found[head], (sides[0] - sides[1]) / (2 * step), rtol=1e-5, atol=1e-8)


def test_the_slope_of_a_silent_head_is_zero(model):
    gone = Head("cross", 2, 2)
    with silenced(model, [gone]):
        found = slopes(model, 2, lambda: row_losses(model).sum())
    assert found[gone].tolist() == [0, 0]
    assert all(found[head].abs().sum() > 0 for head in found if head != gone)


# ---------------------------------------------------------------- habits
def shifted(distance, size=5):
    """Nearly all on the key that stands so far from the query; the rest is even."""
    return torch.full((1, size, size), 0.01).double() + 0.95 * torch.eye(size).double().roll(distance, 1)


def test_the_habits_of_one_text_are_its_roles():
    torch.manual_seed(1)
    weights = torch.cat([shifted(0), shifted(1), shifted(-1), (3 * torch.randn(4, 5, 5).double()).softmax(-1)])
    separators = torch.tensor([False, False, False, False, True])
    found = Habits()
    found.add([(Attention("", "encoder", 1, weights), separators)])
    habits = found.of_each()
    for head, habit in habits.items():
        own = weights[head.head - 1]
        assert habit.roles == roles(own, "encoder", separators)
        assert habit.entropy == pytest.approx(float(entropy(own)))
    assert [habits[Head("encoder", 2, head)].roles[:1] for head in (1, 2, 3)] == [
        ("diagonal",),
        ("next",),
        ("previous",),
    ]


def test_a_role_is_what_a_head_does_in_most_texts():
    """0.96 of it on the token itself in one text and 0.01 in another: 0.64 on average of three, or 0.33."""
    none = torch.zeros(5, dtype=torch.bool)
    for texts, expected in (((0, 0, 1), ("diagonal",)), ((0, 1, -1), ())):
        found = Habits()
        for distance in texts:
            found.add([(Attention("", "decoder", 0, shifted(distance)), none)])
        assert found.of_each()[Head("decoder", 1, 1)].roles == expected
