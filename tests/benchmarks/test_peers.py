"""What the benchmark does around its measurements: taking turns, counting operations, forming ratios."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import corpus, decoding, stage, training
from benchmarks.decoding import Measured
from benchmarks.peers import batches, plain_training
from benchmarks.peers.environments import HERE, interpreter
from benchmarks.results import page
from benchmarks.training import Rounds
from regard.layers.positions import sinusoids
from regard.recipe.models import TransformerOptions
from regard.studies.flops import Cost

ROOT = Path(__file__).parent.parent.parent
OPTIONS = TransformerOptions(width=24, heads=3, feedforward=40, encoder_layers=2, decoder_layers=3, dropout=0.0)
VOCABULARY = 50


def answers(code: str, given: str) -> list[object]:
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, input=given, capture_output=True, text=True, check=True, timeout=60
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_a_peer_works_one_block_for_each_line_and_ends_with_them():
    code = """
from benchmarks.peers.turns import Turns
turns = Turns(2)
for tokens in range(1, 100):
    print("noise of a library")
    turns.done(tokens)
"""
    found = answers(code, "\n\n")
    assert [answer["tokens"] for answer in found] == [0, 1 + 2, 3 + 4]


def test_a_peer_that_serves_answers_what_it_is_asked():
    code = """
from benchmarks.peers.turns import Answers, serve
serve(Answers(), lambda asked: {"twice": 2 * asked["number"]})
"""
    ready, *found = answers(code, '{"number": 3}\n{"number": 5}\n')
    assert ready == {}
    assert [answer["twice"] for answer in found] == [6, 10]
    assert all(answer["seconds"] >= 0 for answer in found)


def test_a_peer_that_ends_early_is_shown_with_its_last_words(tmp_path):
    peer = stage.Peer("nobody", Path(sys.executable), "nobody_there", "plan")
    player = stage.Player(peer, tmp_path / "log")
    with pytest.raises(SystemExit, match=r"(?s)nobody ended early.*No module named"):
        player.hear()
    player.close()


def test_rounds_go_there_and_back():
    assert [list(stage.in_turns("abc", index)) for index in range(3)] == [list("abc"), list("cba"), list("abc")]


def test_batches_hold_every_pair_once_and_stay_below_their_budget():
    pairs = [([1] * (1 + 7 * i % 11), [2] * (1 + 5 * i % 9)) for i in range(30)]
    found = batches.cut(pairs, 40)
    assert sorted(pair for batch in found for pair in batch) == sorted(pairs)
    assert all(len(batch) * max(len(side) for pair in batch for side in pair) <= 40 for batch in found)


def test_batches_shift_the_target_behind_the_start_token(tmp_path):
    (tmp_path / "train.source").write_text("5 6\n7\n")
    (tmp_path / "train.target").write_text("8\n9 10\n")
    source, inputs, target = next(batches.forever(tmp_path, 100))
    assert source.tolist() == [[5, 6, 3], [7, 3, 0]][:: 1 if source[0, 0] == 5 else -1]
    for given, goal in zip(inputs.tolist(), target.tolist(), strict=True):
        assert given == [2, *goal[:-1]]


def test_the_plain_peer_has_our_sinusoids():
    torch.testing.assert_close(plain_training.sinusoids(9, 8), sinusoids(9, 8).float())


def test_ratios_are_formed_within_a_round():
    speeds = {"Regard": [10.0, 40.0, 90.0], "JoeyNMT": [5.0, 10.0, 30.0]}  # quotients 2, 4, 3
    assert training.ratios(speeds)["train_vs_joeynmt"] == 3


def test_the_best_torch_peer_is_the_one_we_beat_least():
    speeds = {"Regard": [12.0], "Eole": [4.0], "MarianMT": [6.0], "torch.nn.Transformer": [3.0]}
    assert training.ratios(speeds)["train_vs_best_torch_peer"] == 2


def test_the_limit_is_the_best_median_of_all_sizes(tmp_path):
    rounds = Rounds({"Regard": [2.0, 6.0, 1.0]}, {"small": [1e9, 9e9, 2e9], "large": [3e9, 3e9, 1e9]})
    cost = Cost(OPTIONS, VOCABULARY)
    found = corpus.Corpus(tmp_path, None, None, [(3, 2), (9, 8)])
    share = training.of_the_limit(rounds, cost, found)["train_of_roof"]
    assert share == pytest.approx(1.0 * cost.per_target_token(found.lengths) / 1e9)  # of 2/3, 6/3 and 1/1


def test_speeds_are_compared_within_a_round_and_equal_outputs_counted():
    measured = {
        "Regard 2×1": Measured([2.0, 4.0, 2.0], ["a", "b"], 10),
        "CTranslate2 fp32 2×1": Measured([4.0, 4.0, 6.0], ["a", "c"], 10),
        "transformers 1×2": Measured([20.0, 20.0, 20.0], ["a", "b"], 10),
    }
    assert decoding.ratio(measured, "Regard", "CTranslate2 fp32") == 2  # 4/2, 4/4, 6/2
    assert decoding.ratio(measured, "Regard", "transformers") == 10
    assert not decoding.have(measured, "Regard", "CTranslate2 int8")
    assert decoding.equal(measured) == 0.5


def test_text_that_is_not_there_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"REGARD_DATA: found no .*train\.en\.gz"):
        corpus.multi30k(tmp_path)


def test_an_environment_of_these_requirements_is_not_made_again(tmp_path):
    (tmp_path / "eole").mkdir()
    (tmp_path / "eole" / "requirements.txt").write_bytes((HERE / "eole.txt").read_bytes())
    assert interpreter("eole", tmp_path) == tmp_path / "eole" / "bin" / "python"


@pytest.mark.parametrize("name", ["eole", "joeynmt", "transformers"])
def test_every_environment_begins_with_torch_and_pins_everything(name):
    lines = (HERE / f"{name}.txt").read_text().splitlines()
    assert lines[0] == "torch==2.13.0"
    assert all("==" in line for line in lines)


def test_the_page_has_a_table_for_each_set_of_columns():
    figures = {"best": 1.5, "speed, beam 1: ours": 2.0, "speed, beam 1: theirs": 1.0, "size: MB": 3.0}
    facts = dict.fromkeys(("command", "commit", "date", "machine", "minutes"), "x")
    lines = page("bench", {"figures": figures, "notes": "words", **facts}).splitlines()
    assert "| best | 1.5 |" in lines
    assert lines[lines.index("| | ours | theirs |") + 2] == "| speed, beam 1 | 2 | 1 |"
    assert lines[lines.index("| | MB |") + 2] == "| size | 3 |"
