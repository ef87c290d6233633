"""Going on from a prompt: what a loop without a cache would draw."""

import itertools

import pytest
import torch

from regard.decoding.continuing import follow
from regard.decoding.options import SamplingOptions
from regard.decoding.search import Ban
from regard.errors import DecodingError
from regard.models.interface import nothing_read
from regard.recipe.build import build
from regard.recipe.models import GptOptions

VOCAB = 11
LIKELIEST = SamplingOptions(top_k=1)


@pytest.fixture(scope="module")
def decoder():
    model = build(GptOptions(width=8, heads=2, feedforward=12, layers=2), VOCAB, VOCAB, shared=True, seed=5).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return model.decoder


def going_on(decoder, prompt, **options):
    settings = {"options": LIKELIEST, "limit": 12, "context": 64, "generator": torch.Generator().manual_seed(2)}
    return list(follow(decoder, prompt, **(settings | options)))


def likeliest_after(decoder, tokens):
    with torch.no_grad():
        return int(decoder(torch.tensor([tokens]), decoder.begin(nothing_read(1)))[0][0, -1].argmax())


def test_the_likeliest_tokens_follow_one_another_as_if_all_were_read_anew(decoder):
    tokens = [2, 5, 7]
    for _ in range(12):
        tokens.append(likeliest_after(decoder, tokens))
    assert going_on(decoder, [2, 5, 7]) == tokens[3:]


def test_a_full_context_forgets_its_older_half(decoder):
    context, tokens, seen = 6, [2, 5, 7, 4], [2, 5, 7, 4]
    for _ in range(12):
        if len(seen) > context:
            seen = tokens[-context // 2 :]
        tokens.append(likeliest_after(decoder, seen))
        seen = [*seen, tokens[-1]]
    assert going_on(decoder, [2, 5, 7, 4], context=context) == tokens[4:]


def test_of_a_prompt_beyond_the_context_the_end_is_read(decoder):
    long = [4, 9, 8, 2, 5, 7]
    assert going_on(decoder, long, context=3, limit=1) == going_on(decoder, long[-3:], limit=1)


def test_tokens_come_as_they_are_drawn_and_nothing_is_computed_in_advance(decoder):
    drawn = follow(decoder, [2], LIKELIEST, limit=10**9, context=64, generator=torch.Generator())
    assert list(itertools.islice(drawn, 3)) == going_on(decoder, [2])[:3]


def test_the_same_seed_draws_the_same_and_another_seed_another_text(decoder):
    options = SamplingOptions(temperature=2.0)
    texts = [
        going_on(decoder, [2], options=options, limit=40, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_what_is_banned_is_never_drawn(decoder):
    free = going_on(decoder, [2], options=SamplingOptions(temperature=3.0), limit=200)
    assert 9 in free
    held = going_on(decoder, [2], options=SamplingOptions(temperature=3.0), limit=200, adjust=(Ban([9]),))
    assert 9 not in held


def test_an_empty_prompt_is_refused(decoder):
    with pytest.raises(DecodingError, match="at least one token"):
        going_on(decoder, [])
