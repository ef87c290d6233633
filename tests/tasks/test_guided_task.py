"""Guided attention: one head is taught, the loss of the text is what it was, and nobody else is asked."""

import numpy as np
import pytest
import torch

from regard.data.alignment import piece_links
from regard.data.batches import Share
from regard.data.examples import encode
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.errors import RecipeError
from regard.explaining.alignment import cross_attentions
from regard.explaining.record import watch
from regard.layers.guidance import alignment_cross_entropy
from regard.recipe.build import build
from regard.recipe.models import ByteNetOptions, RecurrentOptions, TransformerOptions
from regard.tasks.guiding import gold_weights, refuse_unteachable, taught_head
from regard.tasks.options import LossOptions
from regard.tasks.translate import TrainingSet, Translation, Validation, Vocabularies, features
from regard.text.characters import Characters

LETTERS = Characters(" abcABC")
PAIRS = [Pair("ab", "BA", "0-0"), Pair("c a", "A C", "0-1 1-0"), Pair("b", "B"), Pair("ca b", "BA C", "0-0 0-1 1-0")]
MODELS = {
    "transformer": TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=3),
    "recurrent": RecurrentOptions(width=6, embedding=5),
}
PLAN = np.array([3, 0, 2, 1])


def model_of(kind):
    return build(MODELS[kind], len(LETTERS), len(LETTERS), shared=True, seed=3).double().eval()


def task_of(options, guided=True):
    examples, pairs = encode(PAIRS, LETTERS, LETTERS, 99)
    links = [piece_links(pair, LETTERS, LETTERS) for pair in pairs] if guided else ()
    data = TrainingSet(examples, pairs, [Share(len(examples))], batch_tokens=16, dropout=0.0, seed=5, links=links)
    return Translation(data, Validation(PAIRS, SearchOptions(), 1), Vocabularies(LETTERS, LETTERS), options)


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


# ---------------------------------------------------------------- where it should look
def test_gold_weights_by_hand():
    """Tokens 0 and 2 of the first row have links; the second row has none. Reading is one step later."""
    links = [np.array([[0, 1], [0, 3], [2, 0]], np.int32), np.zeros((0, 2), np.int32)]
    written = [[[0, 0.5, 0, 0.5], [0] * 4, [1, 0, 0, 0], [0] * 4], [[0] * 4] * 4]
    assert gold_weights(links, 4, 4, "writing").tolist() == written
    read = [[[0] * 4, [0, 0.5, 0, 0.5], [0] * 4, [1, 0, 0, 0]], [[0] * 4] * 4]
    assert gold_weights(links, 4, 4, "reading").tolist() == read


def test_a_batch_says_where_the_tokens_of_linked_words_are():
    """'ca b' → 'BA C': B and A are linked to both words, C to the first, whose tokens are 0 and 1.

    A blank is a part of the word behind it.
    """
    batch = task_of(LossOptions(guided=1.0, guided_step="writing")).collate(PLAN, 0)
    both, first = [1 / 4, 1 / 4, 1 / 4, 1 / 4, 0], [1 / 2, 1 / 2, 0, 0, 0]
    expected = [both, both, first, first, [0] * 5]
    torch.testing.assert_close(batch.alignment[0], torch.tensor(expected))
    assert not batch.alignment[2].any()  # nobody said anything of b → B
    rest = task_of(LossOptions(guided=1.0), guided=False).collate(PLAN, 0)
    for name in ("source", "source_mask", "inputs", "targets", "mask"):
        assert torch.equal(getattr(batch, name), getattr(rest, name))


def test_the_last_layer_but_one_learns_unless_the_recipe_says():
    assert taught_head(LossOptions(), 6) == (5, 1)
    assert taught_head(LossOptions(), 1) == (1, 1)
    assert taught_head(LossOptions(guided_layer=3, guided_head=4), 6) == (3, 4)


# ---------------------------------------------------------------- the loss
@pytest.mark.parametrize("rdrop", [0.0, 5.0])
@pytest.mark.parametrize("kind", MODELS)
def test_without_links_the_loss_is_the_same_to_the_bit(kind, rdrop):
    options = LossOptions(rdrop=rdrop)
    plain, guided = task_of(options, guided=False), task_of(options.model_copy(update={"guided": 0.5}), guided=False)
    model, found = model_of(kind).train(), []
    for task in (plain, guided):
        torch.manual_seed(4)
        loss = task.loss(model, task.collate(PLAN, 0))
        found.append((loss.total.item(), loss.units, gradients(model, loss.total)))
    assert found[0][:2] == found[1][:2]
    assert all(torch.equal(found[0][2][name], found[1][2][name]) for name in found[0][2])


@pytest.mark.parametrize("rdrop", [0.0, 5.0])
@pytest.mark.parametrize("step", ["reading", "writing"])
@pytest.mark.parametrize("kind", MODELS)
def test_shown_is_the_text_and_learned_from_is_the_head_too(kind, step, rdrop):
    head = {"guided_head": 2, "guided_layer": 2} if kind == "transformer" else {}
    options = LossOptions(guided=0.3, guided_step=step, rdrop=rdrop, **head)
    task, plain = task_of(options), task_of(options, guided=False)
    model, batch, passes = model_of(kind).train(), task.collate(PLAN, 0), 2 if rdrop else 1

    def drawn(compute):
        torch.manual_seed(4)
        return compute()

    before = drawn(lambda: plain.loss(model, plain.collate(PLAN, 0)))
    of_text = gradients(model, before.total)
    with watch(model.decoder) as calls:
        drawn(lambda: features(model, batch, passes))
    name = "layers.1.cross.kernel" if kind == "transformer" else "readout.attention"
    weights = torch.cat(calls[name], dim=2)[:, options.guided_head - 1]
    of_head = gradients(model, alignment_cross_entropy(weights, batch.alignment.double()))
    found = drawn(lambda: task.loss(model, batch))
    assert (found.total.item(), found.units) == (pytest.approx(before.total.item()), before.units)
    for name, gradient in gradients(model, found.total).items():
        wanted = of_text[name] + 0.3 * of_head.get(name, torch.zeros(()))
        torch.testing.assert_close(gradient, wanted)


def test_layers_above_the_head_learn_the_text_alone():
    options = LossOptions(guided=9.0, guided_layer=2)
    model, task, plain = model_of("transformer"), task_of(options), task_of(options, guided=False)
    guided = gradients(model, task.loss(model, task.collate(PLAN, 0)).total)
    alone = gradients(model, plain.loss(model, plain.collate(PLAN, 0)).total)
    changed = {name for name in guided if not torch.allclose(guided[name], alone[name])}
    assert "decoder.layers.1.cross.query.weight" in changed
    assert any(name.startswith("encoder.") for name in changed)
    above = [name for name in guided if name.startswith(("decoder.layers.2", "decoder.norm"))]
    assert above
    assert not changed & set(above)


def test_the_compiled_kernels_learn_the_same():
    """In 32 bits attention is computed by other code, whose gradients meet those of the head."""
    task = task_of(LossOptions(guided=2.0))
    batch, exact = task.collate(PLAN, 0), model_of("transformer")
    wanted = gradients(exact, task.loss(exact, batch).total)
    rounded = model_of("transformer").float()
    for name, gradient in gradients(rounded, task.loss(rounded, batch).total).items():
        torch.testing.assert_close(gradient.double(), wanted[name], rtol=1e-3, atol=1e-4)


def test_a_few_steps_teach_the_head():
    task, model = task_of(LossOptions(guided=1.0)), model_of("transformer")
    batch = task.collate(PLAN, 0)
    optimiser = torch.optim.Adam(model.parameters(), 0.02)

    def astray():
        with torch.no_grad(), watch(cross_attentions(model)[1]) as calls:
            features(model, batch, 1)
        return alignment_cross_entropy(calls[""][0][:, 0], batch.alignment.double()).item()

    before = astray()
    for _ in range(30):
        optimiser.zero_grad()
        task.loss(model, batch).total.backward()
        optimiser.step()
    known = batch.alignment[batch.alignment > 0].double()
    least = -(known * known.log()).sum().item()  # where it looks exactly as it should
    assert astray() - least < (before - least) / 2


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("options", "asked", "words"),
    [
        (MODELS["transformer"], {"guided_layer": 4}, "loss.guided_layer: 4, but .* 3 layers of 2 heads; say 1 to 3"),
        (MODELS["transformer"], {"guided_head": 3}, "loss.guided_head: 3, but .* 3 layers of 2 heads; say 1 to 2"),
        (MODELS["recurrent"], {"guided_head": 2}, "loss.guided_head: 2, but .* 1 layers of 1 heads; say 1 to 1"),
        (ByteNetOptions(width=6), {}, "loss.guided: 0.05, but this model has no attention"),
    ],
)
def test_a_head_that_is_not_there_cannot_learn(options, asked, words):
    model = build(options, 9, 9, shared=True, seed=1)
    with pytest.raises(RecipeError, match=words):
        refuse_unteachable(model, LossOptions(guided=0.05, **asked))


def test_a_head_that_is_there_can_learn():
    for kind in MODELS:
        refuse_unteachable(model_of(kind).float(), LossOptions(guided=0.05))
