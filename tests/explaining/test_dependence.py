"""Maps as part of an explanation: RISE with its errors, every method judged by the same curves, beside chance."""

import itertools
import math

import pytest
import torch

from regard.errors import DecodingError
from regard.explaining import dependence
from regard.explaining.dependence import Wanted, depend, known, seen
from regard.explaining.explain import Output, explain_output
from regard.explaining.explanation import Explanation
from regard.explaining.rise import Saliency as Estimate
from regard.explaining.sides import given, special
from regard.recipe import build as building
from regard.recipe.build_gpt import build_gpt
from regard.recipe.models import GptOptions, RecurrentOptions, TransformerOptions
from regard.text.characters import Characters
from regard.text.special import BOS, EOS

SOURCE, TARGET = Characters(list("abcd .")), Characters(list("ABC D"))
SIZES = {"width": 12, "heads": 3, "feedforward": 7, "dropout": 0.0}
TRANSFORMER = TransformerOptions(**SIZES, encoder_layers=1, decoder_layers=1)
PLAIN = RecurrentOptions(embedding=5, width=6, dropout=0.0, attention="none", input_feeding=False)
ALL = ("rise", "attention", "rollout", "gradient")


def stirred(model):
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return model.double().eval()


@pytest.fixture(scope="module")
def model():
    return stirred(building.build(TRANSFORMER, len(SOURCE), len(TARGET), shared=False, seed=1))


@pytest.fixture(scope="module")
def explained(model):
    return of(model)


def of(model, source="ab d", target="AB"):
    output = Output("tiny", given(SOURCE, source, after=(EOS,)), special(BOS, 0), given(TARGET, target, after=(EOS,)))
    return explain_output(model, output, TARGET, 2)


@pytest.fixture(scope="module")
def judged(model, explained):
    return depend(model, explained, Wanted(ALL, masks=200, faithful=True))


@torch.no_grad()
def probability(model, found, mask, t):
    """p of target token t with what the mask keeps of the source."""
    ids = [token.id for token, keep in zip(found.source.tokens[:-1], mask, strict=True) if keep]
    row = torch.tensor([[*ids, EOS]])
    written = [token.id for token in found.target.tokens]
    logits = model(row, row >= 0, torch.tensor([[BOS, *written[:-1]]]))
    return float(logits[0, t].softmax(-1)[written[t]])


# ---------------------------------------------------------------- RISE
def test_rise_is_within_its_errors_of_the_expectation_over_all_masks(model, explained):
    (found,) = depend(model, explained, Wanted(("rise",), masks=2000)).saliency
    assert found.masks <= 2000
    masks = list(itertools.product((0, 1), repeat=4))
    p = {(mask, t): probability(model, explained, mask, t) for mask in masks for t in range(3)}
    for t, place in itertools.product(range(3), range(4)):
        means = [sum(p[mask, t] for mask in masks if mask[place] == side) / 8 for side in (1, 0)]
        assert abs(found.values[t][place] - (means[0] - means[1])) <= 4 * found.errors[t][place]
    assert max(map(max, found.values)) > 0.01


def test_nothing_is_known_of_what_cannot_be_left_out_and_nothing_comes_from_later_tokens(judged):
    found = judged.saliency[0]
    assert [row[-1] for row in found.values] == [0.0] * 3
    assert [row[-1] for row in found.errors] == [None] * 3
    assert [row[0] for row in found.previous] == [0.0] * 3
    assert [row[0] for row in found.previous_errors] == [None] * 3
    for t, (values, errors) in enumerate(zip(found.previous, found.previous_errors, strict=True)):
        assert all(value == 0 and error == 0 for value, error in zip(values[t + 1 :], errors[t + 1 :], strict=True))
        assert all(value != 0 for value in values[1 : t + 1])


def test_what_comes_later_is_known_to_add_nothing():
    ones = torch.ones(2, 3)
    assert known(Estimate(ones, ones, 5)).values.tolist() == [[0, 1, 1], [0, 0, 1]]
    assert seen(3).tolist() == [[False, False], [True, False], [True, True]]


def test_the_same_question_has_the_same_answer_and_no_more_masks_than_asked(model, explained):
    first, again = (depend(model, explained, Wanted(("rise",), masks=50)).saliency for _ in range(2))
    assert first == again
    assert first[0].masks == 50


def test_whoever_watches_sees_every_estimate(model, explained, monkeypatch):
    counts = {}
    monkeypatch.setattr(dependence, "MASKS", 60)

    def watch(name, estimates, stop):
        for found in estimates:
            counts.setdefault(name, []).append((found.masks, stop.most))
        return found

    depend(model, explained, Wanted(("rise",), masks=150, watch=watch))
    steps = [(60, 150), (120, 150), (150, 150)]
    assert counts == {"rise, source": steps, "rise, output": steps}


def test_a_plain_recurrent_network_has_a_map_too():
    plain = stirred(building.build(PLAIN, len(SOURCE), len(TARGET), shared=False, seed=1))
    found = depend(plain, of(plain), Wanted(("rise", "rise"), masks=60))
    assert [one.method for one in found.saliency] == ["rise"]
    assert Explanation.from_json(found.to_json()) == found


# ---------------------------------------------------------------- faithfulness
def test_deletion_and_insertion_go_by_each_token_s_own_order(model, judged):
    for found in judged.saliency:
        falls, rises = [], []
        for t, row in enumerate(found.values):
            order = sorted(range(4), key=lambda place: -row[place])
            fall = [probability(model, judged, [place not in order[:k] for place in range(4)], t) for k in range(5)]
            rise = [probability(model, judged, [place in order[:k] for place in range(4)], t) for k in range(5)]
            falls.append(sum((a + b) / 2 for a, b in itertools.pairwise(fall)) / 4)
            rises.append(sum((a + b) / 2 for a, b in itertools.pairwise(rise)) / 4)
        assert found.faithful.deletion == pytest.approx(sum(falls) / 3)
        assert found.faithful.insertion == pytest.approx(sum(rises) / 3)


def test_chance_is_one_for_all_and_rise_is_better(judged):
    assert len({(one.chance.deletion, one.chance.insertion) for one in judged.saliency}) == 1
    rise = judged.saliency[0]
    assert rise.faithful.deletion < rise.chance.deletion
    assert rise.faithful.insertion > rise.chance.insertion


def test_without_a_name_all_maps_are_judged_and_without_a_wish_there_is_none(model, explained):
    found = depend(model, explained, Wanted(faithful=True, masks=20))
    assert [one.method for one in found.saliency] == list(ALL)
    assert depend(model, explained, Wanted()) == explained


# ---------------------------------------------------------------- language models
@pytest.fixture(scope="module")
def bard():
    return stirred(build_gpt(GptOptions(**SIZES, layers=2, max_length=9), len(TARGET)))


def read_by(bard, text):
    return explain_output(bard, Output("bard", None, special(EOS, 0), given(TARGET, text)), TARGET, 2)


def test_a_language_model_depends_on_what_it_read(bard):
    found = depend(bard, read_by(bard, "ABC"), Wanted(ALL, masks=400, faithful=True))
    assert Explanation.from_json(found.to_json()) == found
    written = [token.id for token in found.target.tokens]
    rise = found.saliency[0]
    assert rise.values == ((), (), ())
    none = torch.zeros(1, 0, dtype=torch.long)

    @torch.no_grad()
    def p(read, token):
        return float(bard(none, none.bool(), torch.tensor([[EOS, *read]]))[0, -1].softmax(-1)[token])

    with_b, without_b = (p([*a, *b], written[2]) for a, b in (((), written[1:2]), ((), ())))
    both, without = p(written[:2], written[2]), p(written[:1], written[2])
    expected = (with_b + both) / 2 - (without_b + without) / 2  # of the second token, the first kept or not
    assert abs(rise.previous[2][2] - expected) <= 4 * rise.previous_errors[2][2]
    assert all(math.isfinite(one.faithful.deletion) for one in found.saliency)


# ---------------------------------------------------------------- bad input
def test_what_cannot_be_asked_is_refused(model, explained, bard, monkeypatch):
    with pytest.raises(DecodingError, match=r"^rise: 2 masks tell nothing"):
        depend(model, explained, Wanted(("rise",), masks=2))
    with pytest.raises(DecodingError, match=r"^text: has no token that could be left out.*longer"):
        depend(bard, read_by(bard, "A"), Wanted(("rise",)))
    monkeypatch.setattr(dependence, "MOST_ASKED", 29)  # 2 · 3 · 5 = 30
    with pytest.raises(DecodingError, match=r"^text: .* asked 30 times, expected at most 29; give a shorter text"):
        depend(model, explained, Wanted(("attention",), faithful=True))
