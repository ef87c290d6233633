import builtins
import io
import json
import math

import pytest
from toy_task import Toy, toy_model

from regard.errors import DataError, RegardError
from regard.evaluation.samples import Sample
from regard.training.console import Console, duration, sentence
from regard.training.events import (
    Finished,
    MemoryChecked,
    Saved,
    Skipped,
    Started,
    Stepped,
    Stopped,
    Validated,
    from_json,
    to_json,
)
from regard.training.logs import JsonLog, Reader, TensorBoardLog, read_log
from regard.training.loop import train
from regard.training.options import TrainingOptions


def stepped(step, units_per_second=50.0):
    return Stepped(step, 0, 1.5, 1e-3, 0.7, 100, units_per_second, step / 40, 2.0 * step, 60.0)


EVENTS = [
    Started(1234567, 40, None, None, None),
    MemoryChecked(2**28),
    stepped(1),
    Skipped(2, math.nan, math.inf, 1),
    Validated(2, 4.0, {"loss": 1.25, "bleu": 30.0}, True),
    Validated(2, 4.0, {"loss": 1.25}, False, (Sample("a\n1", "nan", "ü"), Sample("", "2", "3"))),
    Saved(2, "models/m/checkpoints/step-00000002"),
    Stopped(2, "early"),
    Finished(2, 1.5, 5025.0, 1.25, {"loss": 1.25}, "best"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_survives_its_line(event):
    line = to_json(event)
    assert "\n" not in line
    assert json.loads(line, parse_constant=pytest.fail)["event"] == type(event).__name__
    again = from_json(line)
    if isinstance(event, Skipped):  # nan is not equal to itself
        assert math.isnan(again.loss)
        assert again.gradient_norm == math.inf
    else:
        assert again == event


HALF = '{"event": "Validated", "step": 1, "seconds": 1, "scores": {}, "best": true, "samples": [{"source": ""}]}'


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"event": "Sung"}', '{"event": "Saved", "step": 1}', HALF])
def test_a_line_that_is_no_event_is_refused(line):
    with pytest.raises(DataError, match="not an event"):
        from_json(line)


def tell(path, events):
    with JsonLog(path, every=1) as log:
        for event in events:
            log.read(event)


def test_a_log_reads_back_as_the_events(tmp_path):
    path = tmp_path / "training.jsonl"
    story = [event for event in EVENTS if not isinstance(event, Skipped)]
    tell(path, story)
    assert read_log(path) == story
    tell(path, story[:2])
    assert read_log(path) == story[:2], "a run that starts anew starts its log anew"


def test_a_log_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.jsonl: No such file"):
        read_log(tmp_path / "none.jsonl")


def test_a_log_keeps_the_first_and_every_tenth_step(tmp_path):
    with JsonLog(tmp_path / "log") as log:
        for event in [EVENTS[0], *map(stepped, range(1, 31))]:
            log.read(event)
    assert [e.step for e in read_log(tmp_path / "log")[1:]] == [1, 10, 20, 30]


def test_a_resumed_log_is_cut_back_to_its_step_and_a_torn_line_goes(tmp_path):
    path = tmp_path / "log"
    tell(path, [EVENTS[0], *map(stepped, range(1, 6))])
    with path.open("a") as file:
        file.write('{"event": "Step')
    again = Started(1234567, 40, None, None, 3)
    tell(path, [again, stepped(4)])
    assert read_log(path) == [EVENTS[0], stepped(1), stepped(2), stepped(3), again, stepped(4)]


def test_a_resumed_run_without_a_log_begins_one(tmp_path):
    tell(tmp_path / "log", [Started(1, 40, None, None, 3), stepped(4)])
    assert len(read_log(tmp_path / "log")) == 2


def test_a_killed_and_resumed_run_logs_what_an_uninterrupted_one_logs(tmp_path):
    chosen = TrainingOptions(steps=14, saves=3, validations=2)

    def learned(name, limit):
        with JsonLog(tmp_path / name / "log", every=1) as log:
            stream = train(toy_model(), Toy(), chosen, folder=tmp_path / name, width=8)
            for _, event in zip(range(limit), stream, strict=False):
                log.read(event)
        return [
            (e.step, e.loss) if isinstance(e, Stepped) else (e.step, e.scores)
            for e in read_log(tmp_path / name / "log")
            if isinstance(e, Stepped | Validated)
        ]

    whole = learned("whole", 100)
    learned("killed", 12)
    assert learned("killed", 100) == whole


def test_tensorboard_shows_the_curves_of_the_events(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with TensorBoardLog(tmp_path) as board:
        for event in EVENTS:
            board.read(event)
    found = accumulator.EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(e.step, e.value) for e in found.Scalars("validation/bleu")] == [(2, 30.0)]
    assert [(e.step, e.value) for e in found.Scalars("training/loss")] == [(1, 1.5)]


def test_tensorboard_that_is_not_installed_says_how_to_install_it(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RegardError, match=r"pip install 'regard\[tensorboard\]'"):
        TensorBoardLog(tmp_path)


@pytest.mark.parametrize(("seconds", "text"), [(9.4, "9s"), (59.7, "1m00s"), (125.0, "2m05s"), (5025.0, "1h23m")])
def test_durations_read_as_people_write_them(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (EVENTS[0], "1,234,567 parameters, 40 steps"),
        (Started(10, None, 2.5, None, 7), "10 parameters, 2.5 epochs, going on after step 7"),
        (Started(10, None, None, 1200.0, None), "10 parameters, 20m00s"),
        (MemoryChecked(2**28), "largest batch fits: peak memory 256 MB"),
        (EVENTS[3], "step 2: loss nan, gradient norm inf: skipped"),
        (EVENTS[4], "step 2: validation  loss 1.25  bleu 30  (best)"),
        (EVENTS[-1], "2 steps, 1.5 epochs in 1h23m; weights: best"),
    ],
)
def test_each_event_is_one_sentence(event, text):
    assert sentence(event) == text


def test_plain_lines_tell_of_steps_every_ten_seconds():
    stream, now = io.StringIO(), 0.0
    with Console(["read 7 pairs"], stream, lambda: now) as view:
        assert isinstance(view, Reader)
        for step in range(1, 31):
            now += 1.0
            view.read(stepped(step, units_per_second=25.0 if step % 2 else 100.0))
        view.read(EVENTS[4])
    lines = stream.getvalue().splitlines()
    assert lines[0] == "read 7 pairs"
    # 100 units a step, in 4 s and 1 s by turns: 1000 units in 25 s.
    assert lines[1] == " 25%  step 10  epoch 1  loss 1.5000  40 tokens/s  1m00s left"
    assert [line.split()[2] for line in lines[2:4]] == ["20", "30"]
    assert lines[4] == sentence(EVENTS[4])
    assert len(lines) == 5


class Tty(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_bar_with_the_state_and_the_lines_above_it():
    stream = Tty()
    with Console((), stream) as view:
        for event in [*EVENTS[:3], *EVENTS[4:]]:
            view.read(event)
    shown = stream.getvalue()
    assert "step 1  epoch 1  loss 1.5000" in shown
    assert sentence(EVENTS[4]) in shown
    assert "2%" in shown


def test_the_console_writes_to_standard_error(capsys):
    with Console(["hello"]):
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")
