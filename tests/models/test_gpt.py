"""GPT as a decoder without a source: searched, sampled and scored by what serves every decoder.

Its laws as a decoder are in tests/laws: it stands in the table of families.
"""

from itertools import product

import pytest
import torch
from torch import nn

from regard.decoding.greedy import greedy_search
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.sampling import sample
from regard.decoding.scoring import score
from regard.decoding.search import beam_search
from regard.layers.attention import SelfAttention, attend
from regard.layers.dropout import Dropout
from regard.layers.embedding import TokenEmbedding
from regard.layers.feedforward import FeedForward
from regard.layers.kernels import Full
from regard.layers.norm import LayerNorm
from regard.layers.positions import Added, Learned
from regard.layers.relations import Unrelated
from regard.layers.residual import PreNorm
from regard.models.gpt import Gpt, Nothing
from regard.models.interface import Decoder, Encoder, SequenceToSequence
from regard.models.transformer import EncoderLayer, Entrance
from regard.text.special import BOS, EOS

VOCAB, WIDTH, LONGEST = 6, 8, 3


def layer():
    around = (PreNorm(LayerNorm(WIDTH), Dropout(0.0)) for _ in range(2))
    return EncoderLayer(
        SelfAttention(WIDTH, 2, 4, Full(causal=True)), FeedForward(WIDTH, 5, nn.functional.gelu), *around
    )


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(21)
    entrance = Entrance(TokenEmbedding(VOCAB, WIDTH, 1.0), Added(Learned(9, WIDTH)), Dropout(0.0))
    gpt = Gpt(entrance, Unrelated(), [layer(), layer()], LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB))
    for parameter in gpt.parameters():
        nn.init.normal_(parameter, std=0.5)
    return SequenceToSequence(Nothing(), gpt).double().eval()


def memory_of(model, rows):
    tokens = torch.zeros(rows, 3, dtype=torch.long)
    return model.encode(tokens, torch.ones_like(tokens, dtype=torch.bool))


def log_probability(model, tokens):
    """log p of the tokens one by one, each from the whole beginning, with nothing remembered."""
    total = 0.0
    for i, token in enumerate(tokens):
        state = model.decoder.begin(memory_of(model, 1))
        logits, _ = model.decoder(torch.tensor([[BOS, *tokens[:i]]]), state)
        total += float(logits[0, -1].log_softmax(-1)[token])
    return total


def sequences(prefix, longest):
    """Every finished sequence that begins with the prefix, of at most `longest` tokens, the end token among them."""
    words = [token for token in range(VOCAB) if token != EOS]
    for length in range(longest - len(prefix)):
        for body in product(words, repeat=length):
            yield (*prefix, *body)


def test_it_is_an_encoder_and_a_decoder_by_their_contracts(model):
    assert isinstance(model.encoder, Encoder)
    assert isinstance(model.decoder, Decoder)


def test_nothing_remembers_rows_and_no_position(model):
    memory = memory_of(model, 5)
    assert (memory.values.shape[:2], memory.mask.shape) == ((5, 0), (5, 0))
    assert len(memory.select(torch.tensor([3, 3])).mask) == 2


def test_the_source_means_nothing(model):
    first, second, target = torch.randint(VOCAB, (2, 3)), torch.randint(VOCAB, (2, 7)), torch.randint(VOCAB, (2, 4))
    logits = [model(x, torch.ones_like(x, dtype=torch.bool), target) for x in (first, second)]
    torch.testing.assert_close(*logits, rtol=0, atol=0)


@torch.no_grad()
def test_a_layer_is_the_equation(model):
    """x + A(LN x), then + F(LN ·), with attention over the past by the reference, worked out from the weights."""
    layer, x = model.decoder.layers[0], torch.randn(2, 5, WIDTH, dtype=torch.float64)
    attention, network = layer.attention, layer.feedforward
    q, k, v = attention.packed(layer.around_attention.norm(x)).chunk(3, -1)
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    heads = [attend(*(part.split(4, -1)[i] for part in (q, k, v)), mask=past)[0] for i in range(2)]
    expected = x + attention.output(torch.cat(heads, -1))
    hidden = nn.functional.gelu(network.inner(layer.around_feedforward.norm(expected)))
    expected = expected + network.outer(hidden)
    torch.testing.assert_close(layer(x, None, Unrelated()(5, 0)), expected)


@torch.no_grad()
def test_a_wide_beam_after_a_prefix_is_exhaustive_search(model):
    prefixes = [[], [4], [1, 5]]
    found = beam_search(
        model.decoder,
        memory_of(model, 3),
        max_lengths=torch.tensor([LONGEST] * 3),
        options=SearchOptions(beam=64, n_best=3, length_penalty=0.6),
        bos=BOS,
        eos=EOS,
        prefix=prefixes,
    )
    for prefix, best in zip(prefixes, found, strict=True):
        scores = {
            body: log_probability(model, [*body, EOS]) / (len(body) + 1) ** 0.6 for body in sequences(prefix, LONGEST)
        }
        expected = sorted(scores, key=lambda body: -scores[body])[:3]
        assert [h.tokens for h in best] == expected
        assert [h.score for h in best] == pytest.approx([scores[body] for body in expected])


def forced(prefixes):
    """An Adjust that lets only the prefix of each sentence out, then everything, at the model's own values."""

    def change(log_probs, tokens, sentences):
        for row, sentence in enumerate(sentences.tolist()):
            prefix, here = prefixes[sentence], tokens.shape[1]
            if here < len(prefix):
                own = log_probs[row, prefix[here]].clone()
                log_probs[row] = -torch.inf
                log_probs[row, prefix[here]] = own
        return log_probs

    return change


@torch.no_grad()
def test_samples_begin_with_their_prefix_and_report_the_models_own_probabilities(model):
    prefixes = [[4, 1], [], [5]]
    drawn = sample(
        model.decoder,
        memory_of(model, 3),
        max_lengths=torch.tensor([6, 5, 4]),
        options=SamplingOptions(samples=4, temperature=1.3),
        bos=BOS,
        eos=EOS,
        generator=torch.Generator().manual_seed(3),
        adjust=[forced(prefixes)],
    )
    for prefix, hypotheses in zip(prefixes, drawn, strict=True):
        assert len(hypotheses) == 4
        for found in hypotheses:
            assert list(found.tokens[: len(prefix)]) == prefix
            tokens = [*found.tokens, EOS] if found.finished else found.tokens
            assert found.log_probability == pytest.approx(log_probability(model, tokens))


@torch.no_grad()
def test_scores_are_those_of_each_token_from_the_whole_beginning(model):
    rows = [[4, 1, 5, EOS], [5, EOS, 0, 0]]
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    scores = score(model.decoder, memory_of(model, 2), torch.tensor(rows), mask, bos=BOS)
    assert scores.sum(1).tolist() == pytest.approx(
        [log_probability(model, rows[0]), log_probability(model, rows[1][:2])]
    )


@torch.no_grad()
def test_greedy_search_takes_the_likeliest_token_of_each_step(model):
    (found,) = greedy_search(model.decoder, memory_of(model, 1), max_lengths=torch.tensor([7]), bos=BOS, eos=EOS)
    for i, token in enumerate(found):
        state = model.decoder.begin(memory_of(model, 1))
        logits, _ = model.decoder(torch.tensor([[BOS, *found[:i]]]), state)
        assert int(logits[0, -1].argmax()) == token
