"""A film has the same sentences in every frame, the weights that a replay gives, and never too many frames."""

from itertools import pairwise

import pytest
import torch

from regard.data.pairs import Pair
from regard.errors import DataError
from regard.explaining.film import FRAMES, LONGEST, Frame, Still, read_film, scenes, shoot, thinned, to_lines, views
from regard.explaining.record import record
from regard.explaining.roles import agreement
from regard.recipe.build import build
from regard.recipe.models import RecurrentOptions, TransformerOptions
from regard.text.characters import Characters
from regard.text.special import BOS, EOS

LETTERS = Characters(" abcABC")
PAIRS = [
    Pair("a" * LONGEST, "A"),
    Pair("ab", "BA C"),
    Pair("", "A"),
    Pair("abc", "CBA"),
    Pair("b", "B"),
    Pair("c", "C"),
]
MODELS = {
    "transformer": TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=3),
    "recurrent": RecurrentOptions(width=6, embedding=5),
}


def frame(step):
    return Frame(step=step, layer=1, pictures=(Still(source=("a", "</s>"), target=("x",), layers=(((0.25, 0.75),),)),))


def test_the_first_pairs_that_can_be_seen_at_a_glance_are_followed():
    found = scenes(PAIRS, LETTERS, LETTERS)
    assert [one.columns for one in found] == [("a", "b", "</s>"), ("a", "b", "c", "</s>"), ("b", "</s>")]
    assert [one.rows for one in found] == [("B", "A", "▁", "C", "</s>"), ("C", "B", "A", "</s>"), ("B", "</s>")]
    assert [one.source[-1] for one in found] == [EOS] * 3
    assert scenes(PAIRS[:1], LETTERS, LETTERS) == ()


@pytest.mark.parametrize("kind", MODELS)
def test_a_frame_has_the_mean_of_each_layer_and_names_the_one_whose_tokens_agree_most(kind):
    model = build(MODELS[kind], len(LETTERS), len(LETTERS), shared=True, seed=3).double()
    followed = scenes(PAIRS, LETTERS, LETTERS)
    found = shoot(model, followed, 7)
    maps = []  # [scene][layer]: the mean of the heads, by the recorder
    for one in followed:
        seen = record(model, torch.tensor([one.source]), torch.tensor([[BOS, *one.target[:-1]]]))
        maps.append([each.weights.mean(0) for each in seen if each.kind == "cross"])
    assert len(maps[0]) == (3 if kind == "transformer" else 1)
    scores = [sum(float(agreement(layers[i])) for layers in maps) for i in range(len(maps[0]))]
    assert found.layer == max(i + 1 for i, score in enumerate(scores) if score == max(scores))
    assert found.step == 7
    for picture, layers in zip(found.pictures, maps, strict=True):
        ours = torch.tensor(picture.layers, dtype=torch.float64)
        torch.testing.assert_close(ours, torch.stack(layers), atol=5.1e-4, rtol=0)


@pytest.mark.parametrize("best", [1, 2, 3])
def test_whichever_layer_aligns_is_the_one_that_is_shown(monkeypatch, best):
    """Two heads of three layers: of one layer both look from each token at one of its own, all others look evenly."""

    def made(_model, source, _mask, inputs):
        t, s = inputs.shape[1], source.shape[1]
        firm, even = torch.eye(max(t, s))[:t, :s].flip(1), torch.full((t, s), 1 / s)
        return [(firm if layer == best else even).expand(1, 2, t, s) for layer in (1, 2, 3)]

    monkeypatch.setattr("regard.explaining.film.cross_weights", made)
    model = build(MODELS["transformer"], len(LETTERS), len(LETTERS), shared=True, seed=3)
    followed = scenes(PAIRS, LETTERS, LETTERS)
    found = shoot(model, followed, 1)
    assert found.layer == best
    (view,) = views([found])
    for seen, one in zip(view.maps, followed, strict=True):
        assert seen.max() == 1
        assert view.agreement > 2 / (len(one.source) + len(one.target))


def test_looking_leaves_the_model_in_its_mode_and_draws_no_random_number():
    model = build(MODELS["transformer"], len(LETTERS), len(LETTERS), shared=True, seed=3).train()
    before = torch.random.get_rng_state()
    shoot(model, scenes(PAIRS, LETTERS, LETTERS), 1)
    assert all(module.training for module in model.modules())
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("count", [1, FRAMES, FRAMES + 1, 200])
def test_a_film_that_grows_keeps_its_ends_and_even_steps(count):
    kept = []
    for step in range(count):
        kept = thinned([*kept, frame(10 * step)])
    steps = [one.step for one in kept]
    assert len(kept) == min(count, FRAMES)
    assert (steps[0], steps[-1]) == (0, 10 * (count - 1))
    gaps = [b - a for a, b in pairwise(steps)][:-1]  # the newest has had no time to part from the one before
    assert not gaps or max(gaps) <= 3 * min(gaps)
    assert steps == sorted(set(steps))


def test_a_film_goes_to_disk_and_back(tmp_path):
    frames = [frame(0), frame(20)]
    (tmp_path / "film.jsonl").write_text(to_lines(frames), encoding="utf-8")
    assert read_film(tmp_path / "film.jsonl") == frames
    assert read_film(tmp_path / "none.jsonl") == []


def test_all_frames_are_drawn_by_the_layer_of_the_last():
    def two_layers(step, layer, low, high):
        maps = (((low, 1 - low),), ((high, 1 - high),))
        return Frame(step=step, layer=layer, pictures=(Still(source=("a", "</s>"), target=("x",), layers=maps),))

    frames = [two_layers(0, 2, 0.5, 0.625), two_layers(10, 1, 0.25, 0.75), two_layers(20, 2, 0.125, 0.875)]
    found = views(frames)
    assert [(one.step, one.layer) for one in found] == [(0, 2), (10, 2), (20, 2)]
    assert [one.maps[0].tolist() for one in found] == [[[0.625, 0.375]], [[0.75, 0.25]], [[0.875, 0.125]]]
    # A run that goes on: the last frame so far decides for all of them.
    assert [one.maps[0].tolist() for one in views(frames[:2])] == [[[0.5, 0.5]], [[0.25, 0.75]]]


def test_a_film_of_one_map_a_frame_is_read_and_drawn_by_it(tmp_path):
    line = '{"step":%d,"layer":%d,"pictures":[{"source":["a","</s>"],"target":["x"],"weights":[[0.25,0.75]]}]}\n'
    (tmp_path / "film.jsonl").write_text(line % (0, 3) + line % (20, 2), encoding="utf-8")
    found = views(read_film(tmp_path / "film.jsonl"))
    assert [(one.step, one.layer) for one in found] == [(0, 3), (20, 2)]
    assert [one.maps[0].tolist() for one in found] == [[[0.25, 0.75]]] * 2


def test_a_frame_has_a_map_of_the_layer_that_it_names(tmp_path):
    line = to_lines([frame(0)]).replace('"layers":[', '"layers":[[[0.5,0.5]],').replace('"layer":1', '"layer":3')
    (tmp_path / "film.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1: .*no map of layer 3"):
        read_film(tmp_path / "film.jsonl")


def test_a_line_that_is_no_frame_is_named(tmp_path):
    (tmp_path / "film.jsonl").write_text(to_lines([frame(0)]) + '{"step": -1}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"film\.jsonl, line 2: .*remove the file"):
        read_film(tmp_path / "film.jsonl")
