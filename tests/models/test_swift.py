"""SwiftDecoder is TransformerDecoder in other words: whatever a search does with the state, the numbers are equal."""

import random

import pytest
import torch

from regard.decoding.bulk import translate, write
from regard.decoding.greedy import greedy_search
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.sampling import sample
from regard.decoding.search import Ban, beam_search
from regard.decoding.shortlist import Narrowed
from regard.errors import DecodingError
from regard.models.interface import Decoder, Memory, OutputLayer, SequenceToSequence, State
from regard.models.swift import SwiftDecoder
from regard.native.inference import native
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import TransformerOptions
from regard.text.special import BOS, EOS, PAD

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled part of regard, and so a C compiler")

VOCAB, LONGEST = 11, 64
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "encoder_layers": 1, "decoder_layers": 2, "max_length": LONGEST}
VARIANTS = {
    "sinusoids before the norm": {},
    "one head, post-norm": {"heads": 1, "order": "post"},
    "learned, post-norm, GELU": {"order": "post", "activation": "gelu", "positions": "learned"},
    "untied, wide heads, GELU": {"activation": "gelu", "head_width": 6, "tie_output": False},
    "rotary": {"positions": "rotary"},
    "rotary, narrow heads, post-norm": {"positions": "rotary", "head_width": 2, "order": "post"},
    "no positions": {"positions": "none", "scale_embedding": False},
    "pruned to unequal layers": {"kept_heads": {"decoder": [[2], [1, 3]], "cross": [[1, 2, 3], [2]]}},
    "pruned to equal layers, rotary": {
        "positions": "rotary",
        "kept_heads": {"decoder": [[2, 3], [1, 3]], "cross": [[1, 2], [1, 3]]},
    },
    "concatenated": {"position_join": "concatenate", "position_width": 4, "tie_output": False},
    "no biases, another ε": {"bias": False, "norm_epsilon": 0.3},
    "as Marian": {"order": "post", "activation": "silu", "positions": "sinusoid-halves", "output_bias": True},
    "tanh GELU, untied without a bias": {
        "activation": "gelu-tanh",
        "bias": False,
        "tie_output": False,
        "output_bias": False,
    },
}
SOURCES = [[4, 8, 5, 7, 6, 3], [7, 3], [5, 5, 4, 3]]


@pytest.fixture(autouse=True, scope="module")
def _unwritten_memory_is_nan():
    """Storage that is read before it is written must show, and not only when chance left a NaN there."""
    torch.use_deterministic_algorithms(True)
    with torch.no_grad():
        yield
    torch.use_deterministic_algorithms(False)


def build(**chosen) -> SequenceToSequence:
    """With weights large enough that everything has an effect."""
    torch.manual_seed(13)
    model = build_transformer(TransformerOptions(**(SIZES | chosen)), VOCAB, VOCAB, True).eval()
    for parameter in model.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def encode(model, sources) -> Memory:
    width = max(map(len, sources))
    tokens = torch.tensor([source + [PAD] * (width - len(source)) for source in sources])
    return model.encode(tokens, torch.arange(width) < torch.tensor([len(source) for source in sources])[:, None])


@pytest.fixture(params=VARIANTS, scope="module")
def model(request):
    return build(**VARIANTS[request.param])


@pytest.fixture(scope="module")
def plain():
    return build()


@pytest.fixture(scope="module")
def memory(model):
    return encode(model, SOURCES)


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


# ---------------------------------------------------------------- searches
def search(decoder, memory, limits, **settings):
    prefix, adjust = settings.pop("prefix", None), settings.pop("adjust", ())
    return beam_search(
        decoder,
        memory,
        max_lengths=torch.tensor(limits),
        options=SearchOptions(**settings),
        bos=BOS,
        eos=EOS,
        prefix=prefix,
        adjust=adjust,
    )


def same(ours, theirs, close_to=1e-4):
    assert [[(h.tokens, h.finished) for h in found] for found in ours] == [
        [(h.tokens, h.finished) for h in found] for found in theirs
    ]
    for found, expected in zip(ours, theirs, strict=True):
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=close_to)
        for one, other in zip(found, expected, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=close_to)


def test_beam_search_finds_the_same(model, memory):
    swift = SwiftDecoder(model.decoder, native)
    for settings in ({"beam": 1}, {"beam": 4, "n_best": 4, "length_penalty": 0.6}):
        same(*(search(decoder, memory, [12, 4, 7], **settings) for decoder in (swift, model.decoder)))


@pytest.mark.parametrize("listed", [None, [2, 4, 5, 8, 9], range(VOCAB)])
def test_tokens_chosen_in_one_pass_are_those_chosen_in_several(plain, monkeypatch, listed):
    memory, options = encode(plain, SOURCES), SearchOptions(beam=3, n_best=3)
    narrow = None if listed is None else Narrowed(plain.decoder.output, torch.tensor(list(listed)))
    found = []
    for way in (native, None):
        monkeypatch.setattr("regard.decoding.best.native", way)
        found.append(
            beam_search(
                plain.decoder,
                memory,
                max_lengths=torch.tensor([12, 4, 7]),
                options=options,
                bos=BOS,
                eos=EOS,
                adjust=(Ban([0]),),
                narrow=narrow,
            )
        )
    same(*found)


def late(log_probs, tokens, sentences):
    """The end token is faint, so that sentences are long and end, or are cut, at different steps."""
    return log_probs.index_add(1, torch.tensor([EOS]), log_probs.new_full((len(log_probs), 1), -6.0))


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 3, "n_best": 2, "prefix": [[4, 5], [], [6] * 9]}])
def test_long_beam_searches_find_the_same(plain, settings):
    memory, adjust = encode(plain, SOURCES), (late, Ban([PAD, BOS]))
    ours, theirs = (
        search(decoder, memory, [42, 13, 30], adjust=adjust, **settings)
        for decoder in (SwiftDecoder(plain.decoder, native), plain.decoder)
    )
    same(ours, theirs)
    assert max(len(h.tokens) for found in ours for h in found) > 12


def test_the_same_seed_draws_the_same(model, memory):
    swift = SwiftDecoder(model.decoder, native)
    ours, theirs = (
        sample(
            decoder,
            memory,
            max_lengths=torch.tensor([18, 5, 9]),
            options=SamplingOptions(samples=4, temperature=1.5, top_k=8),
            bos=BOS,
            eos=EOS,
            generator=torch.Generator().manual_seed(6),
        )
        for decoder in (swift, model.decoder)
    )
    same(ours, theirs)


def test_whole_files_are_translated_the_same(plain):
    sources = [[5, 6], [7, 8, 9, 10, 4], [6], [], [9, 9, 4], [4, 5] * 9]
    twin = SequenceToSequence(plain.encoder, SwiftDecoder(plain.decoder, native))
    for beam in (1, 4):
        options = SearchOptions(beam=beam, max_ratio=1.0, max_extra=4)
        same(translate(twin, sources, options, batch_tokens=40), translate(plain, sources, options))
        assert write(twin, sources, options, batch_tokens=40) == write(plain, sources, options)


# ---------------------------------------------------------------- the likeliest tokens, in one call
def written(decoder, memory, limits, **chosen):
    limits = torch.tensor(limits, dtype=torch.long)
    return greedy_search(decoder, memory, max_lengths=limits, bos=BOS, eos=EOS, **chosen)


def test_all_steps_in_one_call_write_what_single_steps_write(model, memory):
    swift, limits = SwiftDecoder(model.decoder, native), [12, 4, 7]
    for chosen in ({"never": [PAD]}, {"never": [PAD, EOS]}):
        assert written(swift, memory, limits, **chosen) == written(model.decoder, memory, limits, **chosen)


def test_rows_that_end_leave_the_others_as_they_were(plain, monkeypatch):
    memory, limits = encode(plain, [SOURCES[i % 3] for i in range(40)]), [1 + 7 * i % 23 for i in range(40)]
    swift = SwiftDecoder(plain.decoder, native)
    expected = written(plain.decoder, memory, limits, never=[EOS])
    assert [len(line) for line in expected] == limits
    for threads in (1, 3):
        monkeypatch.setattr("regard.native.shares.LEAST", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert written(swift, memory, limits, never=[EOS]) == expected


@pytest.mark.parametrize("name", ["sinusoids before the norm", "rotary", "one head, post-norm"])
def test_sentences_that_wait_take_the_places_of_those_that_end(name):
    """Three times as many as grow at a time: each begins at a step of its own, and none notices the others."""
    model, count = build(**VARIANTS[name]), 300
    memory, limits = (
        encode(model, [SOURCES[i % 3][: 1 + i % 5] for i in range(count)]),
        [1 + 7 * i % 23 for i in range(count)],
    )
    swift = SwiftDecoder(model.decoder, native)
    for never in ([PAD], [PAD, EOS]):
        assert written(swift, memory, limits, never=never) == written(model.decoder, memory, limits, never=never)


def test_a_sentence_whose_numbers_are_not_finite_is_named_and_alone(plain):
    memory, swift = encode(plain, SOURCES), SwiftDecoder(plain.decoder, native)
    memory.values[1] = torch.nan
    with pytest.raises(DecodingError, match=r"sentence 1: .* weights are not finite"):
        written(swift, memory, [9, 9, 9])


def test_learned_positions_that_end_before_the_longest_output_are_met_step_by_step():
    model = build(positions="learned")
    memory, swift = encode(model, SOURCES), SwiftDecoder(model.decoder, native)
    limits = [3, 5, LONGEST + 1]
    with pytest.raises(DecodingError, match=f"the model learned {LONGEST} positions"):
        written(swift, memory, limits, never=[EOS])
    always_end = [id for id in range(VOCAB) if id != EOS]
    assert written(swift, memory, limits, never=always_end) == [[EOS]] * 3
