import math

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.layers.recurrent import (
    GRU,
    LSTM,
    TANH,
    Backwards,
    BothWays,
    Cell,
    FastForward,
    OneWay,
    Skipped,
    Stack,
    gru_step,
    lstm_step,
    tanh_step,
)

N, T, INPUTS, WIDTH = 3, 5, 4, 6
LENGTHS = [5, 2, 3]
KINDS = [(TANH, nn.RNN), (LSTM, nn.LSTM), (GRU, nn.GRU)]


def stack_of(recurrence, layers, both, dropout=0.0):
    """A stack with random weights, biases included."""
    torch.manual_seed(layers)
    reach = 2 if both else 1
    built = []
    for depth in range(layers):
        cells = [Cell(recurrence, WIDTH * reach if depth else INPUTS, WIDTH) for _ in range(reach)]
        built.append(BothWays(*cells) if both else OneWay(*cells))
    return Stack(built, nn.Dropout(dropout))


def cells_of(stack):
    """Torch's order: lowest layer first, forwards before backwards."""
    return [module for module in stack.modules() if isinstance(module, Cell)]


def torch_twin(stack, kind, layers, both):
    twin = kind(INPUTS, WIDTH, num_layers=layers, bidirectional=both, batch_first=True)
    weights = []
    for cell in cells_of(stack):
        weights += [cell.input.weight, cell.recurrent.weight, cell.input.bias, cell.recurrent.bias]
    with torch.no_grad():
        for theirs, ours in zip(twin.parameters(), weights, strict=True):
            theirs.copy_(ours)
    return twin


def inputs(dtype=torch.float64):
    torch.manual_seed(7)
    return torch.randn(N, T, INPUTS, dtype=dtype)


def mask_of(lengths, width):
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def zeros(stack, x):
    return x.new_zeros(len(x), sum(stack.state_widths))


def torch_states(last, cells):
    """(h, c) of every cell side by side, as our stacks join them."""
    parts = last if isinstance(last, tuple) else (last,)
    return torch.cat([part[cell] for cell in range(cells) for part in parts], dim=-1)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("recurrence", "kind"), KINDS)
def test_a_stack_agrees_with_torch_on_packed_padding(recurrence, kind, both, layers, dtype, tolerance):
    stack = stack_of(recurrence, layers, both).to(dtype)
    twin, x = torch_twin(stack, kind, layers, both).to(dtype), inputs(dtype)
    ours, state = stack(x, zeros(stack, x), mask_of(LENGTHS, T))
    packed, last = twin(pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False))
    theirs, _ = pad_packed_sequence(packed, batch_first=True, total_length=T)
    torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(state, torch_states(last, len(cells_of(stack))), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("recurrence", "kind"), KINDS)
def test_gradients_agree_with_torch(recurrence, kind):
    stack, x = stack_of(recurrence, 2, True).double(), inputs()
    twin = torch_twin(stack, kind, 2, True).double()
    weigh = torch.randn(N, T, 2 * WIDTH, dtype=torch.float64)
    (stack(x, zeros(stack, x), None)[0] * weigh).sum().backward()
    (twin(x)[0] * weigh).sum().backward()
    theirs = iter(twin.parameters())
    for cell in cells_of(stack):
        for ours in (cell.input.weight, cell.recurrent.weight, cell.input.bias, cell.recurrent.bias):
            torch.testing.assert_close(ours.grad, next(theirs).grad)


@pytest.mark.parametrize("recurrence", [TANH, LSTM, GRU])
def test_running_on_from_a_state_equals_running_at_once(recurrence):
    stack, x = stack_of(recurrence, 2, False).double(), inputs()
    whole, end = stack(x, zeros(stack, x), None)
    for cut in range(1, T):
        first, state = stack(x[:, :cut], zeros(stack, x), None)
        second, state = stack(x[:, cut:], state, None)
        torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
        torch.testing.assert_close(state, end)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("recurrence", [TANH, LSTM, GRU])
def test_what_stands_at_hidden_positions_changes_nothing(recurrence, both):
    stack, x, mask = stack_of(recurrence, 2, both).double(), inputs(), mask_of(LENGTHS, T)
    poisoned = x.masked_fill(~mask[..., None], 1e6)
    for ours, theirs in zip(stack(poisoned, zeros(stack, x), mask), stack(x, zeros(stack, x), mask), strict=True):
        torch.testing.assert_close(ours, theirs, atol=0, rtol=0)


def test_a_row_that_is_all_hidden_keeps_its_state_and_puts_out_zeros():
    stack, x = stack_of(GRU, 2, True).double(), inputs()
    start = torch.randn(N, sum(stack.state_widths), dtype=torch.float64)
    outputs, state = stack(x, start, mask_of([T, 0, 1], T))
    torch.testing.assert_close(state[1], start[1], atol=0, rtol=0)
    assert (outputs[1] == 0).all()


def test_reading_backwards_mirrors_reading_forwards():
    torch.manual_seed(3)
    layer = BothWays(Cell(GRU, INPUTS, WIDTH), Cell(GRU, INPUTS, WIDTH)).double()
    swapped = BothWays(layer.backwards, layer.forwards)
    x = inputs()
    ours = layer(x, x.new_zeros(N, layer.state_width), None)[0]
    mirrored = swapped(x.flip(1), x.new_zeros(N, layer.state_width), None)[0].flip(1)
    torch.testing.assert_close(ours, mirrored.roll(WIDTH, dims=-1))


def test_dropout_falls_between_layers_only():
    x = inputs(torch.float32)
    stack = stack_of(GRU, 1, False, dropout=0.9)
    torch.testing.assert_close(
        stack.train()(x, zeros(stack, x), None)[0], stack.eval()(x, zeros(stack, x), None)[0], atol=0, rtol=0
    )
    deep = stack_of(GRU, 2, False, dropout=0.9)
    trained, plain = deep.train()(x, zeros(deep, x), None), deep.eval()(x, zeros(deep, x), None)
    assert not torch.allclose(trained[0], plain[0])
    torch.testing.assert_close(trained[1][:, :WIDTH], plain[1][:, :WIDTH])  # the lowest layer is before the first one


def test_one_tanh_step_by_hand():
    new = tanh_step(torch.tensor([[0.5]]), torch.tensor([[-0.2]]), torch.tensor([[0.9]]))
    assert new.item() == pytest.approx(math.tanh(0.3), abs=1e-6)


def test_one_lstm_step_by_hand():
    def sigma(x):
        return 1 / (1 + math.exp(-x))

    wx, uh = torch.tensor([[1.0, 2.0, 0.5, -1.0]]), torch.tensor([[0.0, 1.0, 0.5, 0.0]])
    c = sigma(3.0) * 0.4 + sigma(1.0) * math.tanh(1.0)
    expected = [sigma(-1.0) * math.tanh(c), c]
    assert lstm_step(wx, uh, torch.tensor([[0.7, 0.4]]))[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_gru_with_its_update_gate_shut_keeps_its_state():
    wx = torch.tensor([[0.0, 1e3, 0.3]])
    assert gru_step(wx, torch.zeros(1, 3), torch.tensor([[0.25]])).item() == 0.25


@pytest.mark.parametrize("recurrence", [TANH, LSTM, GRU])
def test_recurrent_weights_start_orthogonal_gate_by_gate(recurrence):
    for gate in Cell(recurrence, INPUTS, WIDTH).double().recurrent.weight.chunk(recurrence.gates):
        torch.testing.assert_close(gate @ gate.mT, torch.eye(WIDTH, dtype=torch.float64), atol=1e-6, rtol=0)


def lstm_twin(cell, inputs):
    """torch's LSTM with the weights of one of our cells."""
    twin = nn.LSTM(inputs, WIDTH, batch_first=True).double()
    ours = (cell.input.weight, cell.recurrent.weight, cell.input.bias, cell.recurrent.bias)
    with torch.no_grad():
        for theirs, weight in zip(twin.parameters(), ours, strict=True):
            theirs.copy_(weight)
    return twin


def test_residual_layers_agree_with_torchs_lstm_composed_by_hand():
    """Both ways, one way, then one way with a sum around it, twice; a context stands behind every input."""
    torch.manual_seed(8)
    context = torch.randn(N, T, 3, dtype=torch.float64)
    both = [Cell(LSTM, INPUTS + 3, WIDTH).double() for _ in range(2)]
    above = [Cell(LSTM, width + 3, WIDTH).double() for width in (2 * WIDTH, WIDTH, WIDTH)]
    layers = [BothWays(*both), OneWay(above[0]), Skipped(OneWay(above[1])), Skipped(OneWay(above[2]))]
    stack, x = Stack(layers, nn.Identity(), context=3).double(), inputs()
    ours, _ = stack(x, zeros(stack, x), None, context)

    def run(cell, y):
        joined = torch.cat([y, context], -1)
        return lstm_twin(cell, joined.shape[-1])(joined)[0]

    right = run(both[0], x)
    joined = torch.cat([x, context], -1).flip(1)
    left = lstm_twin(both[1], INPUTS + 3)(joined)[0].flip(1)
    y = run(above[0], torch.cat([right, left], -1))
    y = run(above[1], y) + y
    y = run(above[2], y) + y
    torch.testing.assert_close(ours, y)


def test_fast_forward_layers_agree_with_torchs_lstm_composed_by_hand():
    """Forwards, then backwards: f² = W² [half of f¹; h¹], whose half stands before h² in the result."""
    torch.manual_seed(9)
    low, high = Cell(LSTM, INPUTS, WIDTH).double(), Cell(LSTM, 3 * WIDTH, WIDTH).double()
    stack, x = Stack([FastForward(low), Backwards(FastForward(high))], nn.Identity()), inputs()
    ours, _ = stack(x, zeros(stack, x), None)
    first = torch.cat([low.input(x)[..., : 2 * WIDTH], lstm_twin(low, INPUTS)(x)[0]], -1)
    second = lstm_twin(high, 3 * WIDTH)(first.flip(1))[0].flip(1)
    torch.testing.assert_close(ours, torch.cat([high.input(first)[..., : 2 * WIDTH], second], -1))


def test_what_goes_fast_forward_is_linear_in_the_input_through_all_layers():
    torch.manual_seed(10)
    widths = [INPUTS, *[WIDTH + WIDTH // 2] * 2]
    layers = [FastForward(Cell(TANH, width, WIDTH)).double() for width in widths]
    for layer in layers[1:]:  # what comes from h, the other part, is cut off
        layer.cell.input.weight.data[:, WIDTH // 2 :] = 0
    stack = Stack(layers, nn.Identity())

    def passed(x):
        return stack(x, zeros(stack, x), None)[0][..., : WIDTH // 2]

    a, b = inputs(), inputs().flip(0)
    torch.testing.assert_close(passed(a + b) + passed(torch.zeros_like(a)), passed(a) + passed(b))


@pytest.mark.parametrize(
    "kind", [FastForward, lambda cell: Backwards(FastForward(cell)), lambda cell: Skipped(OneWay(cell))]
)
def test_deep_layers_put_out_zeros_where_nothing_is_and_see_nothing_there(kind):
    torch.manual_seed(11)
    layer, mask = kind(Cell(GRU, WIDTH, WIDTH)).double(), mask_of(LENGTHS, T)
    x = torch.randn(N, T, WIDTH, dtype=torch.float64) * mask[..., None]
    start = x.new_zeros(N, layer.state_width)
    outputs, state = layer(x, start, mask)
    assert (outputs[~mask] == 0).all()
    for row, length in enumerate(LENGTHS):
        alone, end = layer(x[row : row + 1, :length], start[:1], None)
        torch.testing.assert_close(outputs[row : row + 1, :length], alone)
        torch.testing.assert_close(state[row : row + 1], end)
