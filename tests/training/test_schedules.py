import math

import pytest

from regard.errors import TrainingError
from regard.training.length import BySteps, Moment, crossed, length
from regard.training.options import TrainingOptions
from regard.training.schedules import check_warmup, cosine, inverse_root, linear, noam, rate


def test_noam_by_hand():
    # width 16 → factor 1/4; warm-up 4: step 1 is 1·4^-1.5 = 1/8, the top at 4 is 1/2, step 16 is 1/4.
    assert [noam(step, width=16, warmup=4.0) for step in (1, 4, 16)] == [1 / 32, 1 / 8, 1 / 16]


def test_inverse_root_by_hand():
    assert [inverse_root(step, peak=0.5, warmup=4.0) for step in (1, 2, 4, 16)] == [0.125, 0.25, 0.5, 0.25]


def test_noam_is_an_inverse_root_whose_peak_is_the_width_times_the_warmup_to_the_minus_half():
    for step in range(1, 40):
        ours = inverse_root(step, peak=(32 * 9) ** -0.5, warmup=9.0)
        assert noam(step, width=32, warmup=9.0) == pytest.approx(ours, rel=1e-12)


def test_cosine_and_linear_by_hand():
    assert [cosine(p) for p in (0.0, 1 / 3, 0.5)] == pytest.approx([1.0, 0.75, 0.5])
    assert [linear(p) for p in (0.0, 0.25, 0.5)] == [1.0, 0.75, 0.5]


@pytest.mark.parametrize("shape", [cosine, linear])
@pytest.mark.parametrize("progress", [1.0, 1.7])
def test_a_decay_lands_exactly_at_zero_and_stays(shape, progress):
    assert shape(progress) == 0.0


def rates(options, steps=10):
    return [rate(options, step, (step - 1) / steps, width=16, steps=steps) for step in range(1, steps + 1)]


def test_a_linear_run_by_hand():
    # Ten steps, two of warm-up: half, whole; then eight equal parts down from the moment the warm-up ends.
    options = TrainingOptions(steps=10, schedule="linear", warmup=2, learning_rate=0.8)
    assert rates(options) == pytest.approx([0.4, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("schedule", ["noam", "inverse-root", "cosine", "linear"])
def test_a_fraction_of_the_run_is_as_many_steps(schedule):
    by_steps = TrainingOptions(steps=10, schedule=schedule, warmup=2)
    by_fraction = TrainingOptions(steps=10, schedule=schedule, warmup=0.2)
    assert rates(by_fraction) == pytest.approx(rates(by_steps))


def test_no_warmup_begins_at_the_peak():
    assert rates(TrainingOptions(steps=10, schedule="cosine", warmup=0, learning_rate=0.3))[0] == 0.3


@pytest.mark.parametrize("schedule", ["noam", "inverse-root"])
def test_no_warmup_of_a_root_schedule_is_a_warmup_of_one_step(schedule):
    none = TrainingOptions(steps=10, schedule=schedule, warmup=0)
    one = TrainingOptions(steps=10, schedule=schedule, warmup=1)
    assert rates(none) == rates(one)


def test_a_budget_warms_up_by_the_clock_or_by_steps_and_decays_by_the_clock():
    clock = TrainingOptions(budget=100, schedule="linear", warmup=0.2, learning_rate=1.0)
    assert [rate(clock, 9, p, width=1, steps=None) for p in (0.0, 0.1, 0.2, 0.6, 1.0)] == pytest.approx(
        [0.0, 0.5, 1.0, 0.5, 0.0]
    )
    steps = TrainingOptions(budget=100, schedule="linear", warmup=4, learning_rate=1.0)
    assert rate(steps, 2, 0.5, width=1, steps=None) == 0.25


def test_a_warmup_longer_than_the_run_is_refused_where_a_decay_follows():
    with pytest.raises(TrainingError, match="4000 steps do not fit into a run of 300"):
        check_warmup(TrainingOptions(warmup=4000), 300)
    check_warmup(TrainingOptions(schedule="noam", warmup=4000), 300)


def test_progress_in_each_measure():
    moment = Moment(step=30, passes=1.5, seconds=20.0)
    assert length(TrainingOptions(steps=40), 10).progress(moment) == 0.75
    assert length(TrainingOptions(epochs=6), 10).progress(moment) == 0.25
    assert length(TrainingOptions(budget=50), 10).progress(moment) == 0.4
    assert length(TrainingOptions(), 10).progress(moment) == 1.5 / 30


def test_a_budget_keeps_time_for_its_last_validation_but_at_most_half():
    moment = Moment(step=1, passes=0.1, seconds=20.0)
    assert length(TrainingOptions(budget=50), 10, reserve=10.0).progress(moment) == 0.5
    assert length(TrainingOptions(budget=50), 10, reserve=70.0).progress(moment) == 0.8


def test_the_steps_of_epochs_count_the_short_group_at_the_end_of_each():
    assert length(TrainingOptions(epochs=3, accumulate=4), 10).steps == 9


@pytest.mark.parametrize("marks", [0, 1, 3, 7, 10])
def test_every_mark_of_a_run_is_crossed_once_and_the_last_at_its_end(marks):
    run = BySteps(21)
    progress = [run.progress(Moment(step, 0.0, 0.0)) for step in range(22)]
    found = [step for step in range(1, 22) if crossed(progress[step - 1], progress[step], marks)]
    assert len(found) == marks
    assert found[-1:] == ([21] if marks else [])
    assert all(abs(step - math.ceil((i + 1) * 21 / marks)) <= 1 for i, step in enumerate(found))
