"""SwiftDecoder is TransformerDecoder in other words: whatever a search does with the state, the numbers are equal."""

import random

import pytest
import torch
from swift_models import SOURCES, VOCAB, build, encode

from regard.models.interface import Decoder, Memory, OutputLayer, State
from regard.models.swift import SwiftDecoder
from regard.native.inference import native

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled part of regard, and so a C compiler")


def tokens_of(*shape, seed=0):
    return torch.randint(3, VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def forced(model, memory, tokens):
    """Teacher forcing by the reference: what every way through the twin is held to."""
    return model.decoder(tokens, model.decoder.begin(memory))[0]


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def steps(decoder, tokens, state):
    """Logits of these tokens, one call each, and the state after them."""
    found = []
    for token in tokens.split(1, 1):
        logits, state = decoder(token, state)
        found.append(logits)
    return torch.cat(found, 1), state


# ---------------------------------------------------------------- one row for each sentence
def test_the_twin_keeps_the_contract_of_a_decoder(plain):
    swift = SwiftDecoder(plain.decoder, native)
    assert isinstance(swift, Decoder)
    assert isinstance(swift.output, OutputLayer)
    assert isinstance(swift.begin(encode(plain, SOURCES)), State)


def test_decoding_in_pieces_equals_the_reference_at_every_cut(model, memory):
    tokens, swift = tokens_of(3, 5), SwiftDecoder(model.decoder, native)
    expected = forced(model, memory, tokens)
    close(swift(tokens, swift.begin(memory))[0], expected)
    for cut in range(1, 5):
        first, state = swift(tokens[:, :cut], swift.begin(memory))
        close(torch.cat([first, swift(tokens[:, cut:], state)[0]], 1), expected)


def test_step_by_step_equals_the_reference_while_the_cache_grows(model, memory):
    tokens, swift = tokens_of(3, 42), SwiftDecoder(model.decoder, native)
    close(steps(swift, tokens, swift.begin(memory))[0], forced(model, memory, tokens))


@pytest.mark.parametrize("rows", [1, 3, 15, 40, 130])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_rows_and_threads_computes_the_same(monkeypatch, rows, threads):
    model = build(width=32, heads=2, feedforward=48, positions="rotary")
    memory, tokens = encode(model, (SOURCES * rows)[:rows]), tokens_of(rows, 6)
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    swift = SwiftDecoder(model.decoder, native)
    close(steps(swift, tokens, swift.begin(memory))[0], forced(model, memory, tokens))


@pytest.mark.parametrize("s", [1, 15, 16, 17, 33])
def test_memories_of_every_length_are_read_to_their_end(plain, s):
    sources = [tokens_of(s, seed=1).tolist(), [5], [6] * (s // 2 + 1)]
    memory, tokens, swift = encode(plain, sources), tokens_of(3, 4), SwiftDecoder(plain.decoder, native)
    close(steps(swift, tokens, swift.begin(memory))[0], forced(plain, memory, tokens))


def test_hidden_memory_is_invisible_whatever_stands_there(model, memory):
    tokens, swift = tokens_of(3, 4), SwiftDecoder(model.decoder, native)
    poisoned = Memory(memory.values.masked_fill(~memory.mask[..., None], 1e4), memory.mask, memory.summary)
    for start in (swift.begin(poisoned), swift.begin(poisoned).select(torch.tensor([0, 1, 2]))):
        close(swift(tokens, start)[0], forced(model, memory, tokens))


def test_a_memory_may_have_holes(plain):
    mask = torch.tensor([[True, False, True, True], [False, True, False, False]])
    memory, tokens = Memory(torch.randn(2, 4, 12), mask, torch.zeros(2, 0)), tokens_of(2, 3)
    swift = SwiftDecoder(plain.decoder, native)
    close(swift(tokens, swift.begin(memory))[0], forced(plain, memory, tokens))


def test_logits_are_the_output_of_the_features(model, memory):
    tokens, swift = tokens_of(3, 4), SwiftDecoder(model.decoder, native)
    features, _ = swift.features(tokens, swift.begin(memory))
    close(features, model.decoder.features(tokens, model.decoder.begin(memory))[0])
    close(swift.output(features), forced(model, memory, tokens))
    close(swift.output(features[:, -1]), model.decoder.output(features[:, -1]))


def test_the_weights_of_the_output_layer_stay_open_to_view(model):
    swift = SwiftDecoder(model.decoder, native)
    assert torch.equal(swift.output.weight, model.decoder.output.weight)
    assert (swift.output.bias is None) == (model.decoder.output.bias is None)
    assert swift.output.bias is None or torch.equal(swift.output.bias, model.decoder.output.bias)


def test_single_precision_differs_by_rounding_alone():
    exact = build().double()
    rounded = build()
    memory, tokens, swift = encode(rounded, SOURCES), tokens_of(3, 20), SwiftDecoder(rounded.decoder, native)
    ours, theirs = steps(swift, tokens, swift.begin(memory))[0], forced(exact, encode(exact, SOURCES), tokens)
    torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=2e-4)


# ---------------------------------------------------------------- rows that are repeated, reordered and dropped
def runs(sentences):
    """Where neighbours of one sentence begin and end."""
    starts = [i for i, s in enumerate(sentences) if i == 0 or s != sentences[i - 1]]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(sentences)], strict=True)]


def repeat(sentences, rng):
    copies = rng.choice([2, 3])
    return [row for row in range(len(sentences)) for _ in range(copies)]


def reorder(sentences, rng):
    return [rng.choice(run) for run in runs(sentences) for _ in run]


def thin(sentences, rng):
    return [row for run in runs(sentences) for row in run[: max(1, len(run) - 1)]]


def drop(sentences, rng):
    gone = rng.randrange(len(runs(sentences)))
    return [row for i, run in enumerate(runs(sentences)) for row in run if i != gone]


def scatter(sentences, rng):
    return [rng.randrange(len(sentences)) for _ in range(rng.randint(3, 7))]


def stay(sentences, rng):
    return list(range(len(sentences)))


MOVES = (repeat, reorder, reorder, thin, drop, scatter, stay)


def chain(model, sources, seed, length):
    """The twin against teacher forcing of each row's own past, with a random selection after every token."""
    rng, swift, memory = random.Random(seed), SwiftDecoder(model.decoder, native), encode(model, sources)
    state, sentences, moves = swift.begin(memory), list(range(len(sources))), set()
    past, found = torch.zeros(len(sources), 0).long(), torch.zeros(len(sources), 0, VOCAB)
    for step in range(length):
        past = torch.cat([past, tokens_of(len(past), 1, seed=1000 * seed + step)], 1)
        logits, state = swift(past[:, -1:], state)
        found = torch.cat([found, logits], 1)
        if step % 6 == 5:
            close(found, forced(model, memory.select(torch.tensor(sentences)), past))
        move = rng.choice(MOVES)
        rows = move(sentences, rng)
        if 2 <= len(rows) <= 18:
            moves.add(move)
            state, sentences = state.select(torch.tensor(rows)), [sentences[row] for row in rows]
            past, found = past[rows], found[rows]
    return moves


def test_any_chain_of_selections_is_the_reference_on_each_rows_own_past(model):
    assert chain(model, SOURCES, seed=3, length=42) == set(MOVES)


@pytest.mark.parametrize("seed", range(2))
def test_many_chains_of_selections_agree_with_the_reference(plain, seed):
    chain(plain, [*SOURCES, [9] * 17], seed, length=44)


BEAM = [[0, 1, 2], [0, 0, 0, 1, 1, 1, 2, 2, 2], [1, 0, 1, 5, 4, 3, 6, 7, 6], [0, 0, 2, 3, 3, 3, 8, 7, 6]]
SELECTIONS = {  # one before each token
    "the last row of a group alone": [*BEAM, [2, 5, 8], [2, 1, 0]],
    "a group is dropped": [*BEAM, [0, 1, 2, 6, 7, 7], [3, 3, 4]],
    "groups change places": [*BEAM, [6, 7, 8, 0, 1, 2, 3, 4, 5], [8, 6, 7, 2, 2, 2, 4, 5, 3]],
    "one sentence in two groups": [*BEAM, [0, 1, 3, 4, 2, 0], [5, 4, 3, 2, 1, 0]],
    "unequal groups": [*BEAM, [0, 0, 0, 4, 8, 8], [1, 5, 5, 2], [3, 3, 1, 1, 0, 0]],
    "into groups before the first token": [[0, 0, 1, 1], [1, 0, 3, 2], [3, 3]],
    "into unequal groups before the first token": [[2, 2, 0], [0, 1, 1, 2], [3, 3, 0, 0]],
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selecting_rows_commutes_with_decoding(plain, name):
    swift, memory = SwiftDecoder(plain.decoder, native), encode(plain, SOURCES)
    state, past, sentences = swift.begin(memory), tokens_of(3, 0), torch.arange(3)
    for step, rows in enumerate(SELECTIONS[name]):
        state, past, sentences = state.select(torch.tensor(rows)), past[rows], sentences[rows]
        past = torch.cat([past, tokens_of(len(rows), 1, seed=step)], 1)
        logits, state = swift(past[:, -1:], state)
        close(logits[:, 0], forced(plain, memory.select(sentences), past)[:, -1])


def test_nothing_can_be_selected_and_nothing_begun(plain):
    swift, memory, none = SwiftDecoder(plain.decoder, native), encode(plain, SOURCES), torch.zeros(0, dtype=torch.long)
    for rows in ([0, 1, 2], [0, 0, 1, 1], [2, 0, 2]):
        _, state = swift(tokens_of(len(rows), 1), swift.begin(memory).select(torch.tensor(rows)))
        assert len(state.select(none).select(none).sentence) == 0
    assert len(swift.begin(memory.select(none)).sentence) == 0


# ---------------------------------------------------------------- branches
@pytest.mark.parametrize("rows", [[0, 1, 2], [0, 0, 0, 2, 2, 2], [1, 0, 1]])
@pytest.mark.parametrize("length", [1, 5, 15, 16])
def test_a_state_can_be_continued_twice(plain, rows, length):
    """Neither branch sees the other, and the first goes on as if the second had never been."""
    swift, sentences = SwiftDecoder(plain.decoder, native), torch.tensor(rows)
    memory, past = encode(plain, SOURCES).select(sentences), tokens_of(len(rows), length)
    _, state = steps(swift, past, swift.begin(encode(plain, SOURCES)).select(sentences))
    ways = [tokens_of(len(rows), 6, seed=seed) for seed in (1, 2)]
    expected = [forced(plain, memory, torch.cat([past, way], 1))[:, length:] for way in ways]
    early, first = steps(swift, ways[0][:, :2], state)
    whole, _ = steps(swift, ways[1], state)
    late, _ = steps(swift, ways[0][:, 2:], first)
    close(torch.cat([early, late], 1), expected[0])
    close(whole, expected[1])


@pytest.mark.parametrize("length", [1, 6, 16])
def test_what_is_selected_from_a_state_that_went_on_is_its_own_past(plain, length):
    swift, memory, past = SwiftDecoder(plain.decoder, native), encode(plain, SOURCES), tokens_of(3, length)
    _, state = steps(swift, past, swift.begin(memory))
    after = tokens_of(3, 3, seed=1)
    steps(swift, after, state)
    for rows in ([0, 0, 1, 1, 2, 2], [2, 0], [1, 1, 0]):
        chosen, tail = state.select(torch.tensor(rows)), tokens_of(len(rows), 4, seed=2)
        steps(swift, tail.flip(1)[:, :2], chosen)
        found, _ = steps(swift, tail, chosen)
        close(found, forced(plain, memory.select(torch.tensor(rows)), torch.cat([past[rows], tail], 1))[:, length:])
