"""Search is one algorithm for every decoder: where it can look at everything, it finds the best of everything."""

from itertools import product

import pytest
import torch
from families import MODELS, build, encode

from regard.decoding.options import SearchOptions
from regard.decoding.search import beam_search
from regard.text.special import BOS, EOS

SOURCES = [[4, 8, 5, 3], [7, 3]]
VOCAB, LONGEST = 5, 3


@pytest.fixture(params=MODELS, scope="module")
def model(request):
    return build(request.param, VOCAB)


def search(model, sources, lengths, **options):
    return beam_search(
        model.decoder,
        encode(model, sources),
        max_lengths=torch.tensor(lengths),
        options=SearchOptions(**options),
        bos=BOS,
        eos=EOS,
    )


@torch.no_grad()
def every_finished_sequence(model, source):
    """log p of each sequence of at most LONGEST tokens, its end token among them, by teacher forcing."""
    words = [token for token in range(VOCAB) if token != EOS]
    found = {}
    for length in range(LONGEST):
        bodies = list(product(words, repeat=length))
        inputs = torch.tensor([[BOS, *body] for body in bodies])
        outputs = torch.tensor([[*body, EOS] for body in bodies])
        memory = encode(model, [source] * len(bodies))
        log_probs = model.decoder(inputs, model.decoder.begin(memory))[0].log_softmax(-1)
        totals = log_probs.gather(-1, outputs[..., None])[..., 0].sum(-1)
        found.update(zip(bodies, totals.tolist(), strict=True))
    return found


def test_a_wide_beam_is_exhaustive_search(model):
    source, alpha = SOURCES[0], 0.7
    found = search(model, [source], [LONGEST], beam=64, n_best=4, length_penalty=alpha)[0]
    scores = {body: total / (len(body) + 1) ** alpha for body, total in every_finished_sequence(model, source).items()}
    best = sorted(scores, key=lambda body: -scores[body])[:4]
    assert [hypothesis.tokens for hypothesis in found] == best
    assert [hypothesis.score for hypothesis in found] == pytest.approx([scores[body] for body in best])


def test_searching_a_batch_equals_searching_one_by_one(model):
    lengths = [4, 3]
    together = search(model, SOURCES, lengths, beam=2, n_best=2)
    for source, length, ours in zip(SOURCES, lengths, together, strict=True):
        alone = search(model, [source], [length], beam=2, n_best=2)[0]
        assert [h.tokens for h in ours] == [h.tokens for h in alone]
        assert [h.score for h in ours] == pytest.approx([h.score for h in alone])
