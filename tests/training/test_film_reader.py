"""A run that is filmed is the run that it would have been, and its film tells one story."""

import json

import torch

from regard.data.batches import Share
from regard.data.examples import encode
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.explaining.film import read_film, scenes
from regard.recipe.build import build
from regard.recipe.models import TransformerOptions
from regard.tasks.options import LossOptions
from regard.tasks.translate import TrainingSet, Translation, Validation, Vocabularies
from regard.text.characters import Characters
from regard.training.film import Film
from regard.training.loop import train as loop
from regard.training.options import TrainingOptions

LETTERS = Characters(" abcABC")
PAIRS = [Pair("ab", "BA"), Pair("abc", "CBA"), Pair("b", "B"), Pair("cab ab", "BA BAC")]
SIZES = TransformerOptions(width=8, heads=2, feedforward=12, encoder_layers=1, decoder_layers=1, dropout=0.2)
OPTIONS = TrainingOptions(steps=9, save_every=2, validations=0, threads=1, shares=1, warmup=1)


def task():
    examples, pairs = encode(PAIRS, LETTERS, LETTERS, 99)
    data = TrainingSet(examples, pairs, [Share(len(examples))], batch_tokens=16, dropout=0.0, seed=5)
    validation = Validation(PAIRS, SearchOptions(beam=1, cap=6), 2)
    return Translation(data, validation, Vocabularies(LETTERS, LETTERS), LossOptions(smoothing=0.1))


def trained(folder, *, filmed=True, until=None):
    """The weights after a run, or what there is of it after so many steps."""
    model = build(SIZES, len(LETTERS), len(LETTERS), shared=True, seed=3)
    film = Film(folder / "film.jsonl", model, scenes(PAIRS, LETTERS, LETTERS))
    for event in loop(model, task(), OPTIONS, folder=folder, width=8):
        if filmed:
            film.read(event)
        if until is not None and getattr(event, "step", 0) >= until:
            break
    return model.state_dict()


def test_filming_changes_no_weight(tmp_path):
    ours, theirs = trained(tmp_path / "filmed"), trained(tmp_path / "alone", filmed=False)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_there_is_a_frame_before_the_first_step_and_one_for_each_checkpoint(tmp_path):
    trained(tmp_path)
    frames = read_film(tmp_path / "film.jsonl")
    assert [frame.step for frame in frames] == [0, 2, 4, 6, 8, 9]
    assert len({frame.pictures for frame in frames}) == 6
    line = json.loads((tmp_path / "film.jsonl").read_text().splitlines()[0])
    assert list(line) == ["step", "layer", "pictures"]
    assert list(line["pictures"][0]) == ["source", "target", "layers"]


def test_a_run_that_was_killed_and_resumed_leaves_the_film_of_one_that_was_not(tmp_path):
    trained(tmp_path / "whole")
    trained(tmp_path / "killed", until=5)
    # As if the killed run had filmed a step that no checkpoint holds.
    film = tmp_path / "killed" / "film.jsonl"
    film.write_text(film.read_text() + (tmp_path / "whole" / "film.jsonl").read_text().splitlines()[-1] + "\n")
    trained(tmp_path / "killed")
    assert read_film(film) == read_film(tmp_path / "whole" / "film.jsonl")
