"""SwiftEncoder is TransformerEncoder in other words: the same memory, however few sentences it takes at a time."""

import pytest
import torch
from test_swift import SOURCES, VARIANTS, build, encode

from regard.models.interface import Encoder, SequenceToSequence
from regard.models.swift_encoder import SwiftEncoder
from regard.native.inference import native

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled part of regard, and so a C compiler")


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("tokens", [1, 13, 2048])
@pytest.mark.parametrize("name", VARIANTS)
def test_the_memory_is_that_of_the_reference(name, tokens, monkeypatch):
    monkeypatch.setattr("regard.models.swift_encoder.TOKENS", tokens)
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


def test_weights_and_inputs_stay_as_they_are():
    model = build()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    swift = SwiftEncoder(model.encoder, native)
    tokens = torch.tensor([[4, 8, 5]])
    first, second = (swift(tokens, torch.ones(1, 3, dtype=torch.bool)).values for _ in range(2))
    assert torch.equal(first, second)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert isinstance(swift, Encoder)
