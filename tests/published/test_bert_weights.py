"""BERT of ours against that of transformers, under every head, with weights that go there and back."""

import pytest
import torch
from published_models import as_read, in_ours, load, masked, ordered, pooled_text, scrambled, text_classifier

from regard.errors import ModelFormatError
from regard.published import bert
from regard.published.layout import to_ours, to_theirs

transformers = pytest.importorskip("transformers")

VOCAB = 14
PAD, UNK, CLS, SEP, MASK = 0, 6, 9, 4, 7  # theirs, in an order of their own
ORDER = ordered(VOCAB, [PAD, UNK, CLS, SEP], [MASK])
SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 6,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 9,
    "max_position_embeddings": 11,
}
CONFIGS = {
    "small": {},
    "one layer, relu, three segments": {"num_hidden_layers": 1, "hidden_act": "relu", "type_vocab_size": 3},
    "odd width, tanh gelu": {"hidden_size": 5, "num_attention_heads": 1, "hidden_act": "gelu_new"},
    "three heads, large epsilon": {"num_attention_heads": 3, "layer_norm_eps": 0.1, "num_hidden_layers": 3},
    "untied": {"tie_word_embeddings": False},
}
TOKENS = torch.tensor([[CLS, 3, 12, SEP, 8, 2, SEP], [CLS, 1, MASK, 13, SEP, PAD, PAD], [CLS, SEP, 0, 0, 0, 0, 0]])
REAL = torch.arange(7) < torch.tensor([7, 5, 2])[:, None]
ONE, TWO = torch.zeros_like(TOKENS), torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0], [0] * 7])


@pytest.fixture(params=CONFIGS, scope="module")
def config(request):
    return transformers.BertConfig(**(SMALL | CONFIGS[request.param]))


def layout_of(model):
    return bert.layout(bert.sizes(as_read(model.config)), ORDER, bert.held(model.state_dict()))


def ours_of(model, build):
    """Their model as one of ours."""
    found = build(bert.sizes(as_read(model.config)), VOCAB)
    load(found, to_ours(layout_of(model), model.state_dict(), "bert", like=found.state_dict()))
    return found


def call(model, segments):
    return model(input_ids=TOKENS, attention_mask=REAL.long(), token_type_ids=segments)


def check_round_trip(theirs, ours):
    """What goes back is what came, loads strictly and says the same."""
    layout = layout_of(theirs)
    names = {entry.ours for entry in layout}
    found = to_theirs(layout, {name: x for name, x in ours.state_dict().items() if name in names}, "ours")
    torch.testing.assert_close(found, dict(theirs.state_dict()), rtol=0, atol=0)
    fresh = type(theirs)(theirs.config).eval()
    fresh.load_state_dict(found, strict=True)
    torch.testing.assert_close(call(fresh, TWO)[0], call(theirs, TWO)[0], rtol=0, atol=0)


@torch.no_grad()
def test_masked_logits_are_theirs_at_every_real_position(config):
    theirs = scrambled(transformers.BertForMaskedLM(config))
    ours = ours_of(theirs, masked)
    for segments in (ONE, TWO):
        logits = ours(in_ours(TOKENS, ORDER), REAL, segments)
        expected = call(theirs, segments).logits[..., list(ORDER)]
        torch.testing.assert_close(logits[REAL], expected[REAL], rtol=0, atol=1e-4)
    assert ORDER[VOCAB - 1] == MASK  # the mask is the last id
    if not config.tie_word_embeddings:  # then nothing reads this one, and going back it is as the one that counts
        assert not torch.equal(theirs.cls.predictions.bias, theirs.cls.predictions.decoder.bias)
        theirs.cls.predictions.bias.copy_(theirs.cls.predictions.decoder.bias)
    check_round_trip(theirs, ours)


@torch.no_grad()
def test_classes_are_theirs(config):
    config.num_labels = 5
    theirs = scrambled(transformers.BertForSequenceClassification(config))
    ours = ours_of(theirs, text_classifier)
    for segments in (ONE, TWO):
        logits = ours(in_ours(TOKENS, ORDER), REAL, segments)
        torch.testing.assert_close(logits, call(theirs, segments).logits, rtol=0, atol=1e-4)
    check_round_trip(theirs, ours)


@torch.no_grad()
def test_features_and_the_pooled_vector_are_theirs(config):
    theirs = scrambled(transformers.BertModel(config))
    ours = ours_of(theirs, pooled_text)
    features, expected = ours["encoder"](in_ours(TOKENS, ORDER), REAL, TWO), call(theirs, TWO)
    torch.testing.assert_close(features[REAL], expected.last_hidden_state[REAL], rtol=0, atol=1e-4)
    torch.testing.assert_close(ours["pooler"](features), expected.pooler_output, rtol=0, atol=1e-4)
    check_round_trip(theirs, ours)


def test_a_model_without_a_pooler_has_the_encoder_alone(config):
    theirs = scrambled(transformers.BertModel(config, add_pooling_layer=False))
    found = to_ours(layout_of(theirs), theirs.state_dict(), "bert")
    assert {name.split(".")[0] for name in found} == {"encoder"}
    torch.testing.assert_close(to_theirs(layout_of(theirs), found, "ours"), dict(theirs.state_dict()), rtol=0, atol=0)


def test_a_pretraining_checkpoint_holds_both_heads_under_the_first_names_of_norms(config):
    """As the first published files do: γ and β, positions as a tensor, a head for the next sentence."""
    theirs = scrambled(transformers.BertForPreTraining(config))
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in theirs.state_dict().items()
        if "decoder" not in name or not config.tie_word_embeddings  # tied copies, which files leave out
    } | {"bert.embeddings.position_ids": torch.arange(11)[None]}
    sizes, tensors = bert.sizes(as_read(config)), bert.modern(old)
    found = to_ours(bert.layout(sizes, ORDER, bert.held(tensors)), tensors, "bert", bert.IGNORED)
    assert {name.split(".")[0] for name in found} == {"encoder", "pooler", "head"}
    assert not any("seq_relationship" in name for name in found)
    gains = found["encoder.entrance.norm.gain"], found["head.norm.shift"]
    expected = theirs.bert.embeddings.LayerNorm.weight, theirs.cls.predictions.transform.LayerNorm.bias
    torch.testing.assert_close(gains, tuple(x.detach() for x in expected), rtol=0, atol=0)


@torch.no_grad()
def test_a_masked_model_is_the_start_of_a_classifier(config):
    """The encoder's names are the same under both heads."""
    sizes = bert.sizes(as_read(config))
    first, second = scrambled(masked(sizes, VOCAB)), text_classifier(sizes, VOCAB)
    start = {name: x for name, x in first.state_dict().items() if name.startswith("encoder.")}
    missing, unexpected = second.load_state_dict(start, strict=False)
    assert not unexpected
    assert {name.split(".")[0] for name in missing} == {"pooler", "output"}
    arguments = (TOKENS, REAL, TWO)
    torch.testing.assert_close(first.features(*arguments), second.features(*arguments), rtol=0, atol=0)


# ---------------------------------------------------------------- bad input
CONFIG = SMALL | {"model_type": "bert"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type: found 'relative_key', expected 'abso"),
        ({"is_decoder": True}, "is_decoder: found True, expected False"),
        ({"hidden_act": "tanh"}, "hidden_act: found 'tanh'"),
        ({"problem_type": "regression"}, "problem_type: found 'regression'"),
        ({"num_attention_heads": 4}, "num_attention_heads: found 4, expected a divisor of the width 6"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps: found 0.0"),
        ({"id2label": {"0": "a", "2": "b"}}, "id2label: found '0, 2', expected the numbers of the classes from 0 on"),
        ({"id2label": {}}, "id2label: found ''"),
        ({"id2label": {"0": 3}}, "id2label.0: found 3, expected a valid string"),
        ({"model_type": "roberta"}, "model_type: found 'roberta', expected 'bert'"),
    ],
)
def test_a_config_that_cannot_be_is_refused_by_name(change, message):
    with pytest.raises(ModelFormatError, match=message):
        bert.sizes(CONFIG | change)


def test_labels_and_dropouts_are_in_our_words():
    sizes = bert.sizes(CONFIG | {"id2label": {"1": "no", "0": "yes"}, "hidden_dropout_prob": 0.2})
    assert (sizes.labels, sizes.dropout, sizes.classifier_dropout) == (("yes", "no"), 0.2, 0.2)
    assert bert.sizes(CONFIG).labels == ("LABEL_0", "LABEL_1")
    assert bert.sizes(CONFIG | {"classifier_dropout": 0.4}).classifier_dropout == 0.4


def test_copies_of_a_tied_weight_that_differ_are_refused():
    theirs = scrambled(transformers.BertForMaskedLM(transformers.BertConfig(**SMALL)))
    tensors = dict(theirs.state_dict())
    tensors[bert.HEAD] = tensors[bert.HEAD] + 1
    with pytest.raises(
        ModelFormatError, match=rf"m: tensors 'bert.embeddings.word_embeddings.weight', '{bert.HEAD}' dif"
    ):
        to_ours(layout_of(theirs), tensors, "m")
