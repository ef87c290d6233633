import pytest
from pydantic import ValidationError

from regard.training.options import TrainingOptions


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20m", 1200),
        ("1h30m", 5400),
        ("90s", 90),
        ("1h 2m 3s", 3723),
        ("90", 90),
        ("0.5h", 1800),
        (45, 45),
        ("2M", 120),
    ],
)
def test_a_budget_is_read_as_people_write_it(text, seconds):
    assert TrainingOptions(budget=text).budget == seconds


@pytest.mark.parametrize("text", ["soon", "", "m", "20 minutes", "1h30", "-5s", "0s", 0, -3, "inf", float("nan")])
def test_a_budget_that_is_no_duration_is_refused(text):
    with pytest.raises(ValidationError):
        TrainingOptions(budget=text)


def test_a_run_has_one_length():
    with pytest.raises(ValidationError, match="steps and budget both say how long the run is"):
        TrainingOptions(steps=3, budget="20m")
    assert TrainingOptions().passes == 30
    assert TrainingOptions(epochs=2.5).passes == 2.5
    assert TrainingOptions(steps=3).passes is None
    assert TrainingOptions(budget=3).passes is None


def test_a_written_section_reads_back_the_same():
    options = TrainingOptions(budget="20m", betas=(0.8, 0.9), patience=3)
    assert TrainingOptions.model_validate(options.model_dump(mode="json")) == options


@pytest.mark.parametrize(
    "settings",
    [
        {"patience": 3, "validations": 0},
        {"budget": 60, "schedule": "noam", "warmup": 0.1},
        {"ema": 1.0},
        {"clip": -1.0},
        {"learning_rate": 0.0},
        {"accumulate": 0},
        {"lr": 1.0},
    ],
)
def test_what_makes_no_sense_is_refused(settings):
    with pytest.raises(ValidationError):
        TrainingOptions(**settings)


def test_averaging_keeps_the_checkpoints_it_needs():
    assert TrainingOptions(keep=2, average=5).kept == 5
    assert TrainingOptions(keep=4).kept == 4
