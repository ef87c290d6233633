"""Training FLOPs over a corpus; the formulas are held to torch's count in laws/test_flop_laws.py."""

import pytest

from regard.recipe.models import GptOptions, TransformerOptions
from regard.studies.flops import Cost

OPTIONS = TransformerOptions(width=24, heads=3, feedforward=40, encoder_layers=2, decoder_layers=3, dropout=0.0)
VOCABULARY, SOURCE, TARGET = 50, 7, 5


def test_a_model_that_reads_no_pairs_has_no_cost_of_a_pair():
    with pytest.raises(TypeError, match="gpt"):
        Cost(GptOptions(), VOCABULARY).forward(SOURCE, TARGET)


def test_the_cost_per_token_weighs_sentences_by_their_tokens():
    cost = Cost(OPTIONS, VOCABULARY)
    expected = (cost.training(3, 2) + cost.training(9, 8)) / 10
    assert cost.per_target_token([(3, 2), (9, 8)]) == expected


def test_only_the_experts_that_a_position_goes_to_are_counted():
    two_of_eight = OPTIONS.model_copy(update={"experts": 8, "active": 2, "feedforward": 20})
    gates = (
        2 * 2 * 24 * 8 * (2 * SOURCE + 3 * TARGET)
    )  # of as many hidden values in all, the gates are all that is added
    assert (
        Cost(two_of_eight, VOCABULARY).forward(SOURCE, TARGET)
        == Cost(OPTIONS, VOCABULARY).forward(SOURCE, TARGET) + gates
    )
