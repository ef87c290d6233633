"""What a run shows of its translations: always the same sentences, at every validation, and no other weights for it."""

import torch
from test_film_reader import LETTERS, PAIRS, SIZES, task

from regard.evaluation.samples import LONGEST, Sample
from regard.explaining.samples import Moment, changes
from regard.recipe.build import build
from regard.training.events import Validated
from regard.training.logs import read_log
from regard.training.loop import train as loop
from regard.training.options import TrainingOptions

OPTIONS = TrainingOptions(steps=9, validations=3, threads=1, shares=1, warmup=1, ema=0.5)


class Silent:
    """The same task, which shows nothing."""

    def __init__(self, inner):
        for name in ("batches", "largest", "collate", "loss", "evaluate"):
            setattr(self, name, getattr(inner, name))


def trained(folder, learned):
    model = build(SIZES, len(LETTERS), len(LETTERS), shared=True, seed=3)
    events = list(loop(model, learned, OPTIONS, folder=folder, width=8))
    return model, [event for event in events if isinstance(event, Validated)]


def test_every_validation_shows_the_same_sentences_by_the_weights_that_it_scores(tmp_path):
    model, validations = trained(tmp_path, task())
    assert [one.step for one in validations] == [3, 6, 9]
    for one in validations:
        assert [(s.source, s.reference) for s in one.samples] == [(p.source, p.target) for p in PAIRS[:2]]
    # The last ones are by the moving average, which the model holds at the end.
    assert validations[-1].samples == tuple(task().samples(model))


def test_showing_changes_no_weight(tmp_path):
    ours, _ = trained(tmp_path / "shown", task())
    theirs, silent = trained(tmp_path / "silent", Silent(task()))
    assert all(torch.equal(mine, other) for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True))
    assert [one.samples for one in silent] == [(), (), ()]


def test_a_sample_has_a_bound_and_an_end():
    assert Sample("a", "b" * LONGEST, "c" * 5000).short == Sample("a", "b" * LONGEST, "c" * (LONGEST - 1) + "…")


def test_a_course_tells_when_an_output_became_another():
    said = [(3, "x"), (6, "x"), (9, "y"), (12, "x"), (15, "x")]
    course = [Moment(step, [Sample("a", output, "b")]) for step, output in said]
    assert changes(course, 0) == [(3, "x"), (9, "y"), (12, "x")]


def test_a_finished_run_has_its_samples_in_log_and_report(model):
    validations = [event for event in read_log(model / "training.jsonl") if isinstance(event, Validated)]
    assert all(len(one.samples) == 4 for one in validations)
    assert len({tuple(sample.source for sample in one.samples) for one in validations}) == 1
    report = (model / "report.html").read_text(encoding="utf-8")
    for sample in validations[-1].samples:
        assert f'<dd dir="auto">{sample.source}</dd>' in report
        assert f'<dd class="now" dir="auto">{sample.output}</dd>' in report
