"""Greedy search is beam search of width 1, and who wants texts alone gets the same texts."""

import pytest
import torch
from toy_decoders import BOS, EOS, KINDS, next_of, toy, toy_memory

from regard.decoding.bulk import NEVER, max_lengths, never, pad, source_rows, translate, write
from regard.decoding.greedy import greedy_search
from regard.decoding.options import SearchOptions
from regard.decoding.search import Ban, beam_search
from regard.decoding.shortlist import Narrowed, Shortlist
from regard.errors import DecodingError
from regard.recipe.build import build
from regard.recipe.inference import for_inference
from regard.recipe.models import RecurrentOptions, TransformerOptions
from regard.text import special

kinds = pytest.mark.parametrize("kind", KINDS)
LIMITS = [4, 8, 8, 2, 12]


def greedy(decoder, memory, limits, never=()):
    limits = torch.tensor(limits, dtype=torch.long)
    return greedy_search(decoder, memory, max_lengths=limits, bos=BOS, eos=EOS, never=never)


def width_one(decoder, memory, limits, never=()):
    """What beam search of width 1 writes, its end token included."""
    limits, options = torch.tensor(limits, dtype=torch.long), SearchOptions(beam=1)
    found = beam_search(
        decoder, memory, max_lengths=limits, options=options, bos=BOS, eos=EOS, adjust=(Ban(never),) if never else ()
    )
    return [[*best.tokens, EOS] if best.finished else list(best.tokens) for (best,) in found]


# ---------------------------------------------------------------- toys
@kinds
@pytest.mark.parametrize("never", [(), (2, 5), (EOS,)])
def test_greedy_is_a_beam_of_one(kind, never):
    for seed in range(3):
        decoder, memory = toy(kind, vocab=9, seed=seed), toy_memory(5)
        assert greedy(decoder, memory, LIMITS, never) == width_one(decoder, memory, LIMITS, never)


@kinds
def test_greedy_is_the_argmax_loop(kind):
    decoder, memory = toy(kind, vocab=9, seed=3), toy_memory(5)
    for row, found in enumerate(greedy(decoder, memory, LIMITS)):
        tokens = []
        while len(tokens) < LIMITS[row] and EOS not in tokens:
            values = next_of(decoder, memory, row, tokens)
            tokens.append(values.index(max(values)))
        assert found == tokens


def test_limits_are_met_exactly_where_nothing_ends():
    found = greedy(toy("caching", vocab=5), toy_memory(5), LIMITS, never=[EOS])
    assert [len(tokens) for tokens in found] == LIMITS


def test_the_end_token_comes_last_or_not_at_all():
    found = greedy(toy("recurrent", vocab=4, seed=2), toy_memory(9), 9 * [30])
    assert all(EOS not in tokens[:-1] for tokens in found)
    assert all(tokens[-1] == EOS or len(tokens) == 30 for tokens in found)


def test_a_vocabulary_longer_than_a_stack_is_searched_to_its_end():
    for vocab in (64, 65, 200):
        decoder, memory = toy("recurrent", vocab=vocab, seed=1), toy_memory(3)
        torch.nn.init.constant_(decoder.out.bias[vocab - 1 :].data, 5.0)
        found = greedy(decoder, memory, [6, 6, 6])
        assert found == width_one(decoder, memory, [6, 6, 6])
        assert vocab - 1 in {token for tokens in found for token in tokens}


@kinds
def test_a_few_finished_sentences_stay_and_change_nothing_for_greedy(kind):
    """1 of 20 stays and 6 of 20 leave; whoever is beside it, each sentence is searched as if alone."""
    decoder, memory, rows = toy(kind, vocab=6, seed=1), toy_memory(20), []
    limits, inner = [5, 1, 5, 4, 2, 2, 5, 2, 5, 2, 5, 2] + 8 * [5], decoder.features

    def features(tokens, state):
        rows.append(len(tokens))
        return inner(tokens, state)

    decoder.features = features
    found = greedy(decoder, memory, limits, never=[EOS])
    assert rows == [20, 20, 14, 14, 14]
    for row, limit in enumerate(limits):
        assert greedy(decoder, memory.select(torch.tensor([row])), [limit], never=[EOS]) == [found[row]]


@kinds
def test_permuting_sentences_permutes_texts(kind):
    decoder, memory, order = toy(kind, vocab=7, seed=4), toy_memory(5), [2, 0, 4, 3, 1]
    straight = greedy(decoder, memory, LIMITS)
    permuted = greedy(decoder, memory.select(torch.tensor(order)), [LIMITS[i] for i in order])
    assert permuted == [straight[i] for i in order]


def test_no_sentences_have_no_texts():
    assert greedy(toy("recurrent", vocab=4), toy_memory(0), []) == []


def test_forbidding_every_token_is_refused_by_greedy():
    with pytest.raises(DecodingError, match="sentence 0: no token has a finite"):
        greedy(toy("recurrent", vocab=3), toy_memory(2), [3, 3], never=[0, 1, 2])


def test_the_sentence_whose_numbers_are_not_finite_is_named():
    decoder, memory = toy("caching", vocab=4), toy_memory(3)
    memory.values[1, 0] = torch.nan
    with pytest.raises(DecodingError, match=r"sentence 1: .* weights are not finite"):
        greedy(decoder, memory, [3, 3, 3])


@pytest.mark.parametrize(("limits", "message"), [([3], "1 lengths for 2 sentences"), ([3, 0], "found 0")])
def test_impossible_lengths_are_refused_by_greedy(limits, message):
    with pytest.raises(DecodingError, match=message):
        greedy(toy("recurrent", vocab=4), toy_memory(2), limits)


# ---------------------------------------------------------------- models
VOCAB = 90
OPTIONS = {
    "recurrent": RecurrentOptions(width=6, embedding=5),
    "transformer": TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1),
}
SOURCES = [[5, 6], [70, 8, 9, 10, 4], [6], [], [9, 89, 4], [4, 5], [4] * 7, [10, 20], [80], [81, 82, 83, 84]]
SHORT = Shortlist(torch.arange(2 * VOCAB).reshape(VOCAB, 2) % VOCAB, torch.arange(4, 40, 3), VOCAB)


@pytest.fixture(params=[*OPTIONS, "swift"], scope="module")
def model(request):
    options = OPTIONS["transformer" if request.param == "swift" else request.param]
    made = build(options, VOCAB, VOCAB, shared=True, seed=2).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return for_inference(options, made) if request.param == "swift" else made


def searched(model, narrow):
    """Greedy search and beam search of width 1, both over what is listed."""
    (tokens, mask), options = pad(source_rows(SOURCES)), SearchOptions(beam=1, max_extra=5)
    shared = {"max_lengths": max_lengths(mask, options), "bos": special.BOS, "eos": special.EOS, "narrow": narrow}
    with torch.no_grad():
        memory = model.encode(tokens, mask)
    ours = greedy_search(model.decoder, memory, never=never(narrow), **shared)
    theirs = beam_search(model.decoder, memory, options=options, adjust=(Ban(never(narrow)),), **shared)
    return ours, [[*best.tokens, *[special.EOS] * best.finished] for (best,) in theirs]


def test_greedy_is_a_beam_of_one_for_models(model):
    ours, theirs = searched(model, None)
    assert ours == theirs
    assert len({len(tokens) for tokens in ours}) > 2  # they end at different steps


def test_greedy_is_a_beam_of_one_over_a_narrow_output_layer(model):
    ids = torch.tensor([special.BOS, special.EOS, 7, 8, 30, 31, 64, 65, 88])
    ours, theirs = searched(model, Narrowed(model.decoder.output, ids))
    assert ours == theirs
    assert {token for tokens in ours for token in tokens} <= set(ids.tolist()) - {special.BOS}


def test_a_narrow_output_layer_bans_what_is_not_listed(model):
    listed = [special.EOS, *range(6, VOCAB, 2)]
    tokens, mask = pad(source_rows(SOURCES))
    shared = {"max_lengths": mask.sum(1) + 4, "bos": special.BOS, "eos": special.EOS}
    with torch.no_grad():
        memory = model.encode(tokens, mask)
    narrow = greedy_search(model.decoder, memory, narrow=Narrowed(model.decoder.output, torch.tensor(listed)), **shared)
    assert narrow == greedy_search(
        model.decoder, memory, never=[token for token in range(VOCAB) if token not in listed], **shared
    )


@pytest.mark.parametrize("shortlist", [None, SHORT], ids=["whole", "short"])
@pytest.mark.parametrize("beam", [1, 5])
def test_writing_is_translating_without_the_numbers(model, beam, shortlist):
    options = SearchOptions(beam=beam, n_best=beam, max_ratio=1.0, max_extra=2)
    shared = {"shortlist": shortlist, "batch_tokens": 20 * beam}
    found = write(model, SOURCES, options, **shared)
    assert found == [hypotheses[0].tokens for hypotheses in translate(model, SOURCES, options, **shared)]
    assert not {*NEVER, special.EOS} & {token for tokens in found for token in tokens}
    assert write(model, [], options, shortlist=shortlist) == []


def test_sentences_are_written_as_if_each_were_alone(model):
    options = SearchOptions(beam=1, max_ratio=1.0, max_extra=2)
    together = write(model, SOURCES, options)
    assert together == [write(model, [source], options)[0] for source in SOURCES]
    assert len(set(together)) > 4
