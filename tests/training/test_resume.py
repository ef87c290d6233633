import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from toy_task import LONG, Toy, toy_model

from regard.errors import ModelFormatError
from regard.training import checkpoint
from regard.training.events import Finished, Saved, Started, Stepped, Stopped
from regard.training.loop import train
from regard.training.options import TrainingOptions

SHORT = TrainingOptions(steps=17, accumulate=2, ema=0.9, saves=4, learning_rate=0.02, validations=3, seed=2)


def finished(options, folder, **settings):
    """The weights at the end of a run and its events."""
    model = toy_model()
    events = list(train(model, Toy(), options, folder=folder, width=8, **settings))
    return model.state_dict(), events


def assert_equal_to_the_bit(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def test_a_run_killed_by_the_system_ends_with_the_same_weights_to_the_bit(tmp_path):
    after = random.randrange(12, 60)  # any moment will do; mid-epoch and mid-save are among them
    program = [sys.executable, str(Path(__file__).with_name("toy_task.py")), str(tmp_path / "killed")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        for line in child.stdout:
            if int(line) >= after:
                time.sleep(random.random() / 100)
                child.send_signal(signal.SIGKILL)
                break
    assert child.returncode == -signal.SIGKILL
    whole, _ = finished(LONG, tmp_path / "whole")
    resumed, events = finished(LONG, tmp_path / "killed")
    assert events[0].resumed_from is not None, f"killed after step {after}"
    assert_equal_to_the_bit(resumed, whole)


@pytest.mark.parametrize(
    "options", [SHORT, SHORT.model_copy(update={"ema": 0.0, "average": 3})], ids=["ema", "average"]
)
def test_a_run_left_after_any_event_ends_with_the_same_weights_to_the_bit(tmp_path, options):
    whole, events = finished(options, tmp_path / "whole")
    for cut in range(2, len(events), 7):
        folder = tmp_path / f"cut-{cut}"
        left = train(toy_model(), Toy(), options, folder=folder, width=8)
        for _ in range(cut):
            next(left)
        left.close()
        resumed, _ = finished(options, folder)
        assert_equal_to_the_bit(resumed, whole)


def test_interrupting_after_every_step_changes_nothing(tmp_path):
    options = SHORT.model_copy(update={"ema": 0.0, "average": 3})  # must not see the checkpoints of the interrupts
    whole, _ = finished(options, tmp_path / "whole")
    for _ in range(options.steps - 1):
        _, events = finished(options, tmp_path / "halting", stop=lambda: True)
        assert [sum(isinstance(e, kind) for e in events) for kind in (Stepped, Saved, Stopped)] == [1, 1, 1]
        assert events[-1].reason == "interrupted"
    resumed, events = finished(options, tmp_path / "halting")
    assert events[0].resumed_from == options.steps - 1
    assert_equal_to_the_bit(resumed, whole)


def test_a_finished_run_takes_no_further_step(tmp_path):
    whole, events = finished(SHORT, tmp_path)
    again, more = finished(SHORT, tmp_path)
    assert not [e for e in more if isinstance(e, Stepped)]
    assert isinstance(more[-1], Finished)
    assert (more[-1].steps, more[-1].best, more[-1].scores) == (events[-1].steps, events[-1].best, events[-1].scores)
    assert_equal_to_the_bit(again, whole)


def test_a_finished_run_goes_on_when_it_is_made_longer(tmp_path):
    finished(SHORT, tmp_path)
    _, more = finished(SHORT.model_copy(update={"steps": 20}), tmp_path)
    assert [e.step for e in more if isinstance(e, Stepped)] == [18, 19, 20]


def test_the_global_state_of_the_random_generator_does_not_matter(tmp_path):
    whole, _ = finished(SHORT, tmp_path / "whole")
    model = toy_model()
    for _ in train(model, Toy(), SHORT, folder=tmp_path / "disturbed", width=8):
        torch.rand(3)
    assert_equal_to_the_bit(model.state_dict(), whole)


def test_another_seed_is_another_run(tmp_path):
    one, _ = finished(SHORT, tmp_path / "one")
    other, _ = finished(SHORT.model_copy(update={"seed": 3}), tmp_path / "other")
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_damaged_checkpoint_is_passed_over_and_the_end_is_the_same(tmp_path):
    whole, _ = finished(SHORT, tmp_path / "whole")
    left = train(toy_model(), Toy(), SHORT, folder=tmp_path / "cut", width=8)
    saves = 0
    while saves < 3:
        saves += isinstance(next(left), Saved)
    left.close()
    kept = checkpoint.steps(tmp_path / "cut" / "checkpoints")
    with (kept[-1] / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x99")
    resumed, events = finished(SHORT, tmp_path / "cut")
    assert isinstance(events[0], Started)
    assert events[0].resumed_from == int(kept[-2].name.removeprefix("step-"))
    assert_equal_to_the_bit(resumed, whole)


def test_a_model_of_another_size_does_not_resume_and_the_tensor_is_named(tmp_path):
    finished(SHORT, tmp_path)
    other = toy_model()
    other[3] = torch.nn.Linear(7, 4).double()
    with pytest.raises(ModelFormatError, match=r"tensor '3\.(bias|weight)' is torch.float64 \(3"):
        list(train(other, Toy(), SHORT, folder=tmp_path, width=8))


def test_a_moving_average_cannot_appear_in_the_middle_of_a_run(tmp_path):
    finished(SHORT.model_copy(update={"ema": 0.0}), tmp_path)
    with pytest.raises(ModelFormatError, match=r"ema\.safetensors: no tensor '0\.bias'"):
        finished(SHORT, tmp_path)
