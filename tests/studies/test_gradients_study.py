"""Gradients by distance, against differences and against an RNN whose gradient is known."""

import math

import pytest
import torch

from regard.data.pairs import Pair
from regard.errors import DataError
from regard.models.interface import parameters
from regard.recipe.build import build
from regard.recipe.models import RecurrentOptions, TransformerOptions
from regard.recipe.recipe import parse
from regard.studies.gradients import Prepared, by_distance, distances, fresh, gradient_norms, measure, slope
from regard.studies.rows import MULTI30K, Plan, Row
from regard.tasks.translate import Vocabularies, collate
from regard.text.characters import Characters

VOCAB = 11
BATCH = collate([[5, 6, 7, 8], [9, 5]], [[4, 5, 6], [7]])
MODELS = {
    "rnn": RecurrentOptions(
        cell="tanh", embedding=4, width=5, bidirectional=False, attention="none", input_feeding=False, dropout=0.0
    ),
    "transformer": TransformerOptions(
        width=8, heads=2, feedforward=6, encoder_layers=1, decoder_layers=1, dropout=0.0, positions="relative"
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_norm_is_that_of_the_change_of_the_loss_with_one_embedding(name):
    """Finite differences of −log p(last token) for a word that stands in one place only."""
    model = build(MODELS[name], VOCAB, VOCAB, shared=False, seed=3).double().eval()
    norms = gradient_norms(model, BATCH)
    table = next(m for m in model.encoder.modules() if isinstance(m, torch.nn.Embedding) and m.num_embeddings == VOCAB)
    row, position, word = 0, 1, 6  # it occurs there alone

    def loss():
        with torch.no_grad():
            logits = model(BATCH.source, BATCH.source_mask, BATCH.inputs)
        last = int(BATCH.mask[row].sum()) - 1
        return -logits[row, last].log_softmax(-1)[BATCH.targets[row, last]].item()

    differences, step = [], 1e-6
    for i in range(table.weight.shape[1]):
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                table.weight[word, i] += sign * step
                ends.append(loss())
                table.weight[word, i] -= sign * step
        differences.append((ends[0] - ends[1]) / (2 * step))
    assert norms[row, position].item() == pytest.approx(math.hypot(*differences), rel=1e-5)


def test_a_fresh_model_is_as_large_as_the_one_that_is_trained():
    """For so much text and so little time that its size follows from the time."""
    plan = Plan(MULTI30K, budget="8m")
    asked = parse({"data": {}, "training": {"budget": plan.budget}}, "asked")
    words = Vocabularies(Characters("ab"), Characters("ab"))
    pairs = [Pair("a" * 40, "b" * 40)] * 100_000
    model = fresh(Row("transformer", "transformer"), plan, Prepared(asked, pairs, [], words))
    sizes = {"width": 192, "heads": 4, "feedforward": 768, "encoder_layers": 3, "decoder_layers": 3}
    trained = build(TransformerOptions(**sizes, positions="rotary"), 6, 6, shared=True, seed=1)
    assert parameters(model) == parameters(trained)


def test_padding_has_no_gradient_and_changes_none():
    model = build(MODELS["rnn"], VOCAB, VOCAB, shared=True, seed=3).double().eval()
    both, alone = gradient_norms(model, BATCH), gradient_norms(model, collate([[9, 5]], [[7]]))
    assert (both[~BATCH.source_mask] == 0).all()
    torch.testing.assert_close(both[1, :3], alone[0])


def test_a_distance_counts_the_steps_between_reading_a_word_and_the_last_prediction():
    # Sources of 5 and 3 tokens, targets of 4 and 2, end tokens among them.
    assert distances(BATCH)[0].tolist() == [8, 7, 6, 5, 4]
    assert distances(BATCH)[1, :3].tolist() == [4, 3, 2]


def test_the_mean_of_a_distance_is_geometric_and_leaves_out_what_few_sentences_have():
    batch = collate([[5]] * 5 + [[5, 6]], [[4]] * 6)
    norms = torch.tensor([[1e-1, 1.0, 0.0]] * 3 + [[1e-3, 1.0, 0.0]] * 2 + [[1.0, 1e-4, 1.0]])
    found = by_distance(norms, batch)
    assert list(found) == [2, 3]  # 4 steps: one word alone
    assert found[2] == pytest.approx(0.0)
    assert found[3] == pytest.approx((3 * -1 + 2 * -3 + -4) / 6)


def test_a_gradient_that_is_gone_has_a_logarithm_too():
    batch = collate([[]] * 5, [[4]] * 5)
    assert list(by_distance(torch.zeros(5, 1), batch).values()) == [pytest.approx(-30.0)]


def test_text_too_short_for_a_slope_is_refused_in_a_line():
    words = Characters("ab")
    model = build(MODELS["rnn"], VOCAB, VOCAB, shared=True, seed=3)
    with pytest.raises(DataError, match=r"0 distances .* at least 2"):
        measure(model, Vocabularies(words, words), [Pair("ab", "a")] * 4)


def test_the_slope_is_the_powers_of_ten_lost_in_ten_steps():
    assert slope({k: 1.5 - 0.2 * k for k in range(3, 9)}) == pytest.approx(-2.0)
    assert slope({3: 0.0, 4: 1.0, 5: 0.5}) == pytest.approx(2.5)  # Σ (k − 4)(y − ½) / Σ (k − 4)² = ½ / 2


def test_the_gradient_of_a_linear_recurrence_falls_by_the_same_factor_at_every_step():
    """With U = λ times an orthogonal matrix and tiny weights elsewhere, tanh is the identity: ‖∂ℓ/∂x‖ ∝ λ^k."""
    model = build(MODELS["rnn"], VOCAB, VOCAB, shared=True, seed=3).double().eval()
    factor = 0.5
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("recurrent.weight"):
                parameter.copy_(factor * torch.eye(5, dtype=torch.float64))
            else:
                parameter.mul_(1e-3)
    norms = gradient_norms(model, BATCH)[0]
    ratios = norms[:-1] / norms[1:]
    torch.testing.assert_close(ratios, torch.full_like(ratios, factor), rtol=1e-3, atol=0.0)
