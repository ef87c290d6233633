"""SwiftEncoder is TransformerEncoder in other words: the same memory, however few sentences it takes at a time."""

import pytest
import torch
from swift_models import SOURCES, VARIANTS, build, encode

from regard.models.interface import Encoder, SequenceToSequence
from regard.models.swift_encoder import SwiftEncoder
from regard.native.inference import native

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled part of regard, and so a C compiler")


@pytest.mark.parametrize(("tokens", "short"), [(1, 0), (13, 0), (2048, 0), (1, 100)])
@pytest.mark.parametrize("name", VARIANTS)
def test_the_memory_is_that_of_the_reference(name, tokens, short, monkeypatch):
    """Sentence by sentence, some together, all together; and all layers in one call, for `short` sources."""
    monkeypatch.setattr("regard.models.swift_encoder.TOKENS", tokens)
    monkeypatch.setattr("regard.models.swift_encoder.SHORT", short)
    model = build(**VARIANTS[name], encoder_layers=2)
    expected = encode(model, SOURCES)
    found = encode(SequenceToSequence(SwiftEncoder(model.encoder, native), model.decoder), SOURCES)
    assert torch.equal(found.mask, expected.mask)
    torch.testing.assert_close(found.values[found.mask], expected.values[found.mask], rtol=1e-4, atol=1e-5)
    assert found.summary.shape == expected.summary.shape


def test_equally_long_sources_need_no_mask():
    model = build()
    sources = [[4, 8, 5], [7, 3, 3]]
    expected = encode(model, sources)
    found = SwiftEncoder(model.encoder, native)(torch.tensor(sources), expected.mask)
    torch.testing.assert_close(found.values, expected.values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["sinusoids before the norm", "rotary"])
def test_a_source_may_have_holes_or_nothing_at_all(name):
    model, tokens = build(**VARIANTS[name]), torch.tensor([[4, 8, 5, 7], [7, 3, 3, 6], [5, 5, 5, 5]])
    mask = torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=torch.bool)
    expected = model.encode(tokens, mask).values
    found = SwiftEncoder(model.encoder, native)(tokens, mask).values
    torch.testing.assert_close(found[mask], expected[mask], rtol=1e-4, atol=1e-5)
    assert not found[~mask].any()


def test_many_sentences_go_through_in_parts_and_by_several_threads(monkeypatch):
    model = build()
    sources = [[3 + (i * j) % 8 for j in range(1 + i % 37)] for i in range(60)]  # over 1,000 tokens
    expected = encode(model, sources)
    swift = SequenceToSequence(SwiftEncoder(model.encoder, native), model.decoder)
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found = encode(swift, sources)
        torch.testing.assert_close(found.values[found.mask], expected.values[found.mask], rtol=1e-4, atol=1e-4)


def test_weights_and_inputs_stay_as_they_are():
    model = build()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    swift = SwiftEncoder(model.encoder, native)
    tokens = torch.tensor([[4, 8, 5]])
    first, second = (swift(tokens, torch.ones(1, 3, dtype=torch.bool)).values for _ in range(2))
    assert torch.equal(first, second)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert isinstance(swift, Encoder)
