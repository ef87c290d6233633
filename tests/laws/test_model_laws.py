"""What every encoder and decoder must obey, whatever it is made of."""

import pytest
import torch
from families import FAMILIES, MODELS, build, encode, pad

from regard.models.interface import Memory

SOURCES = [[4, 8, 5, 7, 6, 3], [7, 3], [5, 5, 4, 3]]
TARGETS = torch.tensor([[2, 4, 6, 5], [2, 5, 5, 1], [2, 6, 4, 4]])
LENGTH = TARGETS.shape[1]

COLUMNS = {"ByteNet", "ByteNet, stretched, five taps, untied"}  # whose memory has one column for each step
ORDERLESS = {"Transformer, no positions", "Transformer, linear, no positions"}
that_read_a_source = pytest.mark.parametrize("family", FAMILIES, indirect=True, scope="module")


@pytest.fixture(autouse=True, scope="module")
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(params=MODELS, scope="module")
def family(request):
    return request.param


@pytest.fixture(scope="module")
def model(family):
    return build(family)


@pytest.fixture(scope="module")
def memory(model):
    return encode(model, SOURCES)


@pytest.fixture(scope="module")
def logits(model, memory):
    """Teacher forcing, all at once: what every other way to compute it is held to."""
    return logits_of(model, memory)


def logits_of(model, memory, targets=TARGETS):
    return model.decoder(targets, model.decoder.begin(memory))[0]


def test_decoding_in_two_pieces_equals_decoding_at_once_at_every_cut(model, memory, logits):
    start = model.decoder.begin(memory)
    for cut in range(1, LENGTH):
        first, state = model.decoder(TARGETS[:, :cut], start)
        second, _ = model.decoder(TARGETS[:, cut:], state)
        torch.testing.assert_close(torch.cat([first, second], dim=1), logits)


def test_decoding_step_by_step_equals_decoding_at_once(model, memory, logits):
    state, steps = model.decoder.begin(memory), []
    for token in TARGETS.split(1, dim=1):
        step, state = model.decoder(token, state)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, dim=1), logits)


def test_a_state_can_be_continued_twice(model, memory, logits):
    """A search goes on from one state in several ways: decoding must not write into it."""
    _, state = model.decoder(TARGETS[:, :2], model.decoder.begin(memory))
    model.decoder(TARGETS[:, 1:2], state)
    torch.testing.assert_close(model.decoder(TARGETS[:, 2:], state)[0], logits[:, 2:])


def test_logits_are_the_output_of_the_features(model, memory, logits):
    features, _ = model.decoder.features(TARGETS, model.decoder.begin(memory))
    torch.testing.assert_close(model.decoder.output(features), logits)
    torch.testing.assert_close(model.decoder.output(features[:, -1]), logits[:, -1])


def test_teacher_forcing_is_encoding_then_decoding(model, logits):
    torch.testing.assert_close(model(*pad(SOURCES), TARGETS), logits)


def test_padding_of_the_source_is_invisible_whatever_stands_there(model, logits):
    tokens, mask = pad(SOURCES, extra=3)
    torch.testing.assert_close(logits_of(model, model.encode(tokens, mask)), logits)
    torch.testing.assert_close(logits_of(model, model.encode(tokens.masked_fill(~mask, 8), mask)), logits)


def test_hidden_memory_is_invisible_to_the_decoder(model, memory, logits):
    poisoned = Memory(memory.values.masked_fill(~memory.mask[..., None], 1e4), memory.mask, memory.summary)
    torch.testing.assert_close(logits_of(model, poisoned), logits)


def test_a_batch_of_many_equals_one_by_one(model, logits):
    for row, source in enumerate(SOURCES):
        alone = logits_of(model, encode(model, [source]), TARGETS[row : row + 1])
        torch.testing.assert_close(alone, logits[row : row + 1])


def test_selecting_rows_commutes_with_decoding(model, memory, logits):
    rows = torch.tensor([2, 0, 2, 1])
    targets, start = TARGETS[rows], model.decoder.begin(memory)
    torch.testing.assert_close(logits_of(model, memory.select(rows), targets), logits[rows])
    torch.testing.assert_close(model.decoder(targets, start.select(rows))[0], logits[rows])
    _, state = model.decoder(TARGETS[:, :2], start)
    torch.testing.assert_close(model.decoder(targets[:, 2:], state.select(rows))[0], logits[rows, 2:])


def test_no_decoder_sees_the_future(model, memory, logits):
    changed = TARGETS[:1].repeat(LENGTH, 1)
    changed.fill_diagonal_(3)  # row t differs from the first target at position t alone
    after = logits_of(model, memory.select(torch.zeros(LENGTH, dtype=torch.long)), changed)
    for position in range(LENGTH):
        torch.testing.assert_close(after[position, :position], logits[0, :position])
        assert not torch.allclose(after[position, position], logits[0, position])


@that_read_a_source
def test_every_source_word_reaches_the_logits(model, logits):
    source = SOURCES[0]
    changed = [[*source[:i], 1, *source[i + 1 :]] for i in range(len(source))]
    after = logits_of(model, encode(model, changed), TARGETS[:1].repeat(len(source), 1))
    assert ((after - logits[:1]).abs().amax((1, 2)) > 1e-9).all()


@that_read_a_source
def test_the_encoder_commutes_with_permutation_exactly_when_it_has_no_order(model, family):
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    tokens, mask = pad(SOURCES[:1])
    permuted, plain = model.encode(tokens[:, order], mask).values, model.encode(tokens, mask).values
    assert torch.allclose(permuted[:, :6], plain[:, order]) == (family in ORDERLESS)


@that_read_a_source
def test_the_order_of_memory_means_nothing_to_a_decoder_that_attends(model, family, memory, logits):
    """Positions are the encoder's business: attention over memory reads a set."""
    order = torch.tensor([3, 0, 5, 1, 4, 2, *range(6, memory.mask.shape[1])])
    permuted = Memory(memory.values[:, order], memory.mask[:, order], memory.summary)
    assert torch.allclose(logits_of(model, permuted), logits) == (family not in COLUMNS)


def test_gradients_reach_every_parameter(model):
    model.train()  # dropout is 0 here, but a gate's noise has weights
    with torch.enable_grad():
        total = model(*pad(SOURCES), TARGETS).log_softmax(-1)[..., 3].sum()
        model.eval()
        names, weights = zip(*model.named_parameters(), strict=True)
        gradients = torch.autograd.grad(total, weights, allow_unused=True)
    dead = [
        name for name, g in zip(names, gradients, strict=True) if g is None or not g.isfinite().all() or not g.any()
    ]
    assert dead == []
