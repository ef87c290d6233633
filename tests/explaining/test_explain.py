"""An explanation says what the model says elsewhere: its probabilities, its scores, its weights."""

import math

import pytest
import torch

from regard.decoding.bulk import score_pairs
from regard.errors import DecodingError
from regard.explaining import explain as module
from regard.explaining.explain import Output, explain_output, explain_reading
from regard.explaining.record import record
from regard.explaining.sides import given, special, written
from regard.models.interface import SequenceToSequence
from regard.recipe.build_bert import build_masked
from regard.recipe.build_gpt import build_gpt
from regard.recipe.build_recurrent import build_recurrent
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import BertOptions, GptOptions, RecurrentOptions, TransformerOptions
from regard.text.characters import Characters
from regard.text.special import BOS, EOS

SOURCE, TARGET = Characters(list("abcd .")), Characters(list("ABC D"))
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "dropout": 0.0}


def transformer():
    torch.manual_seed(3)
    options = TransformerOptions(**SIZES, encoder_layers=1, decoder_layers=2)
    model = build_transformer(options, len(SOURCE), len(TARGET), shared=False).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="module")
def model():
    return transformer()


def output(target="AB C", penalty=0.0, end=(EOS,)):
    return Output(
        "tiny", given(SOURCE, "ab d.", after=(EOS,)), special(BOS, 0), given(TARGET, target, after=end), penalty
    )


@pytest.fixture(scope="module")
def explained(model):
    return explain_output(model, output(penalty=0.7), TARGET, 4)


def test_probabilities_are_those_by_which_pairs_are_scored(model, explained):
    (log_probs,) = score_pairs(model.eval(), [SOURCE.encode("ab d.")], [TARGET.encode("AB C")])
    assert [math.log(step.probability) for step in explained.steps] == pytest.approx(log_probs)
    assert explained.log_probability == pytest.approx(sum(log_probs))
    assert explained.score == pytest.approx(sum(log_probs) / 5**0.7)


def test_alternatives_are_the_likeliest_tokens_and_ranks_count_them(model, explained):
    source = torch.tensor([[*SOURCE.encode("ab d."), EOS]])
    ids = [*TARGET.encode("AB C"), EOS]
    logits = model(source, source > 0, torch.tensor([[BOS, *ids[:-1]]]))[0]
    for id, p, step in zip(ids, logits.softmax(-1).tolist(), explained.steps, strict=True):
        order = sorted(range(3, len(p)), key=lambda token: -p[token])  # padding, unknown and start are never written
        assert [one.id for one in step.alternatives] == order[:4]
        assert [one.text for one in step.alternatives] == [TARGET.name(token) for token in order[:4]]
        assert [one.probability for one in step.alternatives] == pytest.approx([p[token] for token in order[:4]])
        assert step.rank == 1 + order.index(id)
        assert step.probability == pytest.approx(p[id])


def test_more_alternatives_than_tokens_are_all_of_them(model):
    steps = explain_output(model, output(), TARGET, 100).steps
    for step in steps:
        assert {one.id for one in step.alternatives} == set(range(3, len(TARGET)))
    assert explain_output(model, output(), TARGET, 0).steps[0].alternatives == ()


def test_every_head_has_a_block_with_the_recorded_weights(model, explained):
    source = torch.tensor([[*SOURCE.encode("ab d."), EOS]])
    maps = record(model, source, torch.tensor([[BOS, *TARGET.encode("AB C")]]))
    expected = [(one.kind, one.layer + 1, head + 1) for one in maps for head in range(3)]
    assert [(block.kind, block.layer, block.head) for block in explained.attention] == expected
    assert len(expected) == 15
    weights = [head for one in maps for head in one.weights]
    for block, exact in zip(explained.attention, weights, strict=True):
        torch.testing.assert_close(torch.tensor(block.weights, dtype=torch.float64), exact, rtol=0, atol=5.1e-7)
        each = [-sum(w * math.log(w) for w in row if w) for row in exact.tolist()]
        assert block.entropy == pytest.approx(sum(each) / len(each))


def test_an_output_that_was_cut_has_no_end(model):
    whole, cut = (explain_output(model, output(end=end), TARGET, 2) for end in ((EOS,), ()))
    assert cut.steps == whole.steps[:-1]
    assert [token.text for token in cut.target.tokens] == ["A", "B", "▁", "C"]


def test_a_hypothesis_is_explained_by_its_own_ids(model):
    ids = TARGET.encode("AB C")
    told = Output("tiny", output().source, special(BOS, 0), written(TARGET, ids, after=(EOS,)))
    assert explain_output(model, told, TARGET, 4) == explain_output(model, output(), TARGET, 4)


def test_a_model_without_attention_still_tells_what_it_expected():
    options = RecurrentOptions(embedding=5, width=6, attention="none", input_feeding=False)
    plain = build_recurrent(options, len(SOURCE), len(TARGET), shared=False)
    found = explain_output(plain, output(), TARGET, 2)
    assert found.attention == ()
    assert len(found.steps) == 5


def test_a_language_model_has_no_source_and_looks_back_only():
    torch.manual_seed(1)
    gpt = build_gpt(GptOptions(**SIZES, layers=2, max_length=9), len(TARGET))
    assert isinstance(gpt, SequenceToSequence)
    found = explain_output(gpt, Output("bard", None, special(EOS, 0), given(TARGET, "AB C")), TARGET, 2)
    assert found.source is None
    assert {block.kind for block in found.attention} == {"decoder"}
    assert [token.text for token in found.axes("decoder")[1]] == ["</s>", "A", "B", "▁"]
    assert found.score == found.log_probability


def test_an_encoder_writes_nothing_and_looks_everywhere():
    torch.manual_seed(1)
    bert = build_masked(BertOptions(**SIZES, layers=2, max_length=9), len(SOURCE) + 1, 1)
    found = explain_reading(bert, "reader", given(SOURCE, "ab d.", (BOS,), (EOS,)))
    assert (found.target, found.steps, found.log_probability) == (None, (), None)
    assert [(block.kind, block.layer, block.head) for block in found.attention] == [
        ("encoder", layer, head) for layer in (1, 2) for head in (1, 2, 3)
    ]
    assert all(len(block.weights) == 7 for block in found.attention)


def test_a_head_whose_queries_are_nothing_looks_evenly_and_has_no_role():
    model = transformer()
    cross = model.decoder.layers[1].cross
    with torch.no_grad():
        for parameter in (cross.query.weight, cross.query.bias):
            parameter.zero_()
    blocks = [
        one for one in explain_output(model, output(), TARGET, 1).attention if (one.kind, one.layer) == ("cross", 2)
    ]
    assert [block.roles for block in blocks] == [()] * 3
    assert [block.entropy for block in blocks] == pytest.approx([math.log(6)] * 3)


def test_more_weights_than_anyone_can_read_are_refused(model, monkeypatch):
    monkeypatch.setattr(module, "MOST_WEIGHTS", 100)
    with pytest.raises(DecodingError, match=r"attention weights.*at most 100.*split"):
        explain_output(model, output(), TARGET, 1)


def test_a_token_that_can_never_be_written_is_refused():
    options = RecurrentOptions(embedding=5, width=6)
    model = build_recurrent(options, len(SOURCE), len(TARGET), shared=False)
    with torch.no_grad():
        model.decoder.output.bias[TARGET.encode("C")[0]] = -torch.inf
    with pytest.raises(DecodingError, match="never write"):
        explain_output(model, output(), TARGET, 1)
