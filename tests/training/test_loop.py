import itertools
import math

import pytest
import torch
from torch.nn.functional import cross_entropy
from toy_task import ROWS, Toy, toy_model

from regard.errors import TrainingError
from regard.training import checkpoint
from regard.training.averaging import MovingAverage, average
from regard.training.events import Finished, MemoryChecked, Saved, Skipped, Started, Stepped, Stopped, Validated
from regard.training.loop import train
from regard.training.options import TrainingOptions

BASE = TrainingOptions(steps=12, shares=1, learning_rate=0.02, validations=3, saves=3)


def options(**changes):
    return TrainingOptions(**{**BASE.model_dump(exclude={"steps"}), "steps": 12, **changes})


def run(folder, chosen, task=None, model=None, **settings):
    model = model or toy_model()
    return model, list(train(model, task or Toy(), chosen, folder=folder, width=8, **settings))


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_accumulated_batches_are_one_large_batch(tmp_path):
    # 8 rows at once, or twice 4, or 4 times 2: the same order, so the same examples in each step.
    ends = []
    for rows, accumulate in ((8, 1), (4, 2), (2, 4)):
        chosen = options(steps=7, accumulate=accumulate, validations=0)
        model, events = run(tmp_path / f"{rows}", chosen, Toy(rows), toy_model(dropout=0.0))
        ends.append(
            (model.state_dict(), [e.loss for e in only(events, Stepped)], [e.units for e in only(events, Stepped)])
        )
    for other in ends[1:]:
        torch.testing.assert_close(other, ends[0], rtol=1e-9, atol=1e-12)


def test_a_step_agrees_with_a_plain_loop_in_torch(tmp_path):
    chosen = options(steps=5, warmup=0, schedule="linear", clip=0.5, validations=0)
    model, _ = run(tmp_path, chosen, model=toy_model(dropout=0.0))
    plain, task = toy_model(dropout=0.0), Toy()
    groups = [
        {"params": [p for p in plain.parameters() if p.ndim > 1]},
        {"params": [p for p in plain.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups, lr=0.02, betas=chosen.betas, eps=chosen.epsilon, weight_decay=chosen.weight_decay)
    for step, plan in enumerate(task.batches(0)[:5]):
        for group in adam.param_groups:
            group["lr"] = 0.02 * (1 - step / 5)
        adam.zero_grad()
        cross_entropy(plain(task.x[plan]), task.y[plan]).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
        adam.step()
    torch.testing.assert_close(model.state_dict(), plain.state_dict())


def test_a_step_leaves_nothing_queued_for_devices_that_are_not_there(tmp_path):
    stream = train(toy_model(), Toy(), options(validations=0), folder=tmp_path, width=8)
    queued = [len(torch.cuda._queued_calls) for event in stream if isinstance(event, Stepped)]
    assert queued == [queued[0]] * 12


def test_training_lowers_the_loss(tmp_path):
    _, events = run(tmp_path, options(steps=90, validations=2, learning_rate=0.05))
    assert events[-1].scores["loss"] < 0.7 * math.log(3)


def test_a_run_tells_its_story_in_order(tmp_path):
    _, events = run(tmp_path, options(steps=6, validations=2, saves=2))
    told = [type(event) for event in events]
    half = [Stepped] * 3 + [Validated, Saved]
    assert told == [Started, MemoryChecked, *half, *half, Stopped, Finished]
    assert [e.step for e in only(events, Stepped)] == [1, 2, 3, 4, 5, 6]
    assert events[-2].reason == "done"
    assert events[0] == Started(5 * 7 + 7 + 7 + 7 + 7 * 3 + 3, 6, None, None, None)


def test_epochs_see_every_row_once_each(tmp_path):
    seen = []

    class Watched(Toy):
        def collate(self, plan, epoch):
            seen.append((epoch, plan))
            return super().collate(plan, epoch)

    _, events = run(tmp_path, options(steps=None, epochs=2.5, accumulate=4, validations=0), Watched())
    for epoch in (0, 1):
        rows = [row for e, plan in seen[1:] if e == epoch for row in plan]  # the first one is the rehearsal
        assert sorted(rows) == list(range(ROWS))
    # Six batches in groups of four: two steps an epoch; half an epoch is reached within one.
    assert (events[-1].steps, events[-1].epochs) == (5, pytest.approx(2 + 4 / 6))


def test_the_rehearsal_leaves_no_trace(tmp_path):
    first = next(e for e in train(toy_model(), Toy(), options(), folder=tmp_path, width=8) if isinstance(e, Stepped))

    class Large(Toy):
        def largest(self):
            return list(range(ROWS))

    stream = train(toy_model(), Large(), options(), folder=tmp_path, width=8)
    other = next(e for e in stream if isinstance(e, Stepped))
    assert (first.loss, first.gradient_norm) == (other.loss, other.gradient_norm)


class Ticking:
    """A clock that moves when the task works: a second for each loss, `validation` for each validation."""

    def __init__(self, validation=0.0):
        self.now, self.validation = 100.0, validation
        clock = self

        class Slow(Toy):
            def loss(self, model, batch):
                clock.now += 1.0
                return super().loss(model, batch)

            def evaluate(self, model):
                clock.now += clock.validation
                return super().evaluate(model)

        self.task = Slow()

    def __call__(self):
        return self.now


def test_a_budget_lands_the_learning_rate_at_zero_at_the_deadline(tmp_path):
    clock = Ticking()
    chosen = options(steps=None, budget=21.0, schedule="linear", warmup=0, learning_rate=1.0)
    _, events = run(tmp_path, chosen, clock.task, clock=clock)
    # The rehearsal takes the first of 21 seconds, so twenty steps of a second each remain.
    rates = [e.learning_rate for e in only(events, Stepped)]
    assert rates == pytest.approx([1 - (1 + i) / 21 for i in range(20)])
    assert [e.seconds_left for e in only(events, Stepped)] == [19.0 - i for i in range(20)]
    assert events[-1].seconds == clock.now - 100 == 21


def test_a_budget_counts_from_when_the_user_began(tmp_path):
    clock = Ticking()
    _, events = run(tmp_path, options(steps=None, budget=21.0), clock.task, clock=clock, started=90.0)
    assert len(only(events, Stepped)) == 10
    assert events[-1].seconds == 21


def test_a_budget_includes_its_last_validation(tmp_path):
    clock = Ticking(validation=3.0)
    _, events = run(tmp_path, options(steps=None, budget=60.0, validations=4), clock.task, clock=clock)
    assert 59 <= events[-1].seconds <= 61
    assert isinstance([e for e in events if not isinstance(e, Saved)][-3], Validated)


def test_a_budget_that_was_interrupted_goes_on_with_what_is_left(tmp_path):
    clock = Ticking()
    chosen = options(steps=None, budget=30.0)
    asked = itertools.chain([False] * 8, itertools.repeat(True))
    run(tmp_path, chosen, clock.task, clock=clock, stop=lambda: next(asked))
    clock.now += 1000
    _, events = run(tmp_path, chosen, clock.task, clock=clock)
    assert events[-1].seconds == 30
    assert events[-1].steps == 28  # two of the thirty seconds were rehearsals


def test_time_left_is_foretold_from_the_pace_of_this_part(tmp_path):
    clock = Ticking()
    _, events = run(tmp_path, options(steps=5, validations=0), clock.task, clock=clock)
    assert [e.seconds_left for e in only(events, Stepped)] == pytest.approx([4, 3, 2, 1, 0])
    assert all(e.units_per_second == e.units for e in only(events, Stepped))


def test_patience_stops_a_run_that_no_longer_improves_and_keeps_the_best(tmp_path):
    task = Toy(scores=[3.0, 2.0, 2.5, 2.0, 1.0])
    model, events = run(tmp_path, options(validations=6, patience=2), task)
    assert [e.best for e in only(events, Validated)] == [True, True, False, False]
    assert (events[-2].reason, events[-2].step) == ("early", 8)
    assert (events[-1].weights, events[-1].best, events[-1].scores["loss"]) == ("best", 2.0, 2.0)
    best, place = checkpoint.read(tmp_path / "checkpoints" / "best")
    assert place.step == 4
    assert all(torch.equal(tensor, best["model"][name]) for name, tensor in model.state_dict().items())


def test_a_run_that_stopped_early_stays_stopped(tmp_path):
    chosen = options(validations=6, patience=2)
    model, _ = run(tmp_path, chosen, Toy(scores=[1.0, 2.0, 2.0]))
    again, events = run(tmp_path, chosen)
    assert [type(e) for e in events] == [Started, MemoryChecked, Stopped, Finished]
    assert events[-2].reason == "early"
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_more_bleu_is_better(tmp_path):
    _, events = run(tmp_path, options(validations=3, stop_on="bleu"), Toy(scores=[3.0, 2.0, math.nan]))
    assert [e.best for e in only(events, Validated)] == [True, True, False]
    assert events[-1].best == -2.0


def test_patience_for_a_score_that_is_not_there_is_refused(tmp_path):
    class Scoreless(Toy):
        def evaluate(self, _model):
            return {"accuracy": 1.0}

    with pytest.raises(TrainingError, match=r"stop_on: validation gave no 'loss' but \['accuracy'\]"):
        run(tmp_path, options(patience=1), Scoreless())
    _, events = run(tmp_path, options(), Scoreless())
    assert events[-1].best is None


def test_scores_are_those_of_the_moving_average(tmp_path):
    followed, means = toy_model(), []

    class Spying(Toy):
        def evaluate(self, model):
            means.append({name: p.detach().clone() for name, p in model.named_parameters()})
            return super().evaluate(model)

    ema = MovingAverage(followed, 0.9)
    for event in train(followed, Spying(), options(ema=0.9), folder=tmp_path, width=8):
        if isinstance(event, Stepped):
            ema.update(event.step, list(followed.parameters()))  # an average of our own, beside the loop's
        if isinstance(event, Validated):
            assert all(torch.equal(ema.means[name], mean) for name, mean in means[-1].items())
    assert event.weights == "ema"
    assert all(torch.equal(ema.means[name], p) for name, p in followed.named_parameters())


def test_averaging_ends_with_the_mean_of_the_last_checkpoints(tmp_path):
    chosen = options(average=3, keep=1, saves=6)
    model, events = run(tmp_path, chosen)
    kept = checkpoint.steps(tmp_path / "checkpoints")
    assert [int(path.name[5:]) for path in kept] == [8, 10, 12]
    mean = average([path / "model.safetensors" for path in kept])
    assert all(torch.equal(tensor, mean[name]) for name, tensor in model.state_dict().items())
    assert events[-1].weights == "average"
    task = Toy()
    assert events[-1].scores["loss"] == pytest.approx(cross_entropy(model(task.x), task.y).item())


def test_patience_keeps_the_best_weights_also_of_a_moving_average(tmp_path):
    model, events = run(tmp_path, options(ema=0.5, patience=2), Toy(scores=[1.0, 2.0, 3.0]))
    best, _ = checkpoint.read(tmp_path / "checkpoints" / "best")
    assert events[-1].weights == "best"
    assert events[-1].scores["loss"] == 1.0
    assert all(torch.equal(tensor, best["model"][name]) for name, tensor in model.state_dict().items())


def test_without_any_of_these_the_last_weights_stay(tmp_path):
    model, events = run(tmp_path, options(), Toy(scores=[1.0, 2.0, 3.0]))
    last, _ = checkpoint.read(checkpoint.path_of(tmp_path / "checkpoints", 12))
    assert events[-1].weights == "last"
    assert all(torch.equal(tensor, last["model"][name]) for name, tensor in model.state_dict().items())
    assert not model.training


def test_checkpoints_come_when_asked_for(tmp_path):
    _, events = run(tmp_path, options(save_every=5, keep=2, validations=0))
    assert [e.step for e in only(events, Saved)] == [5, 10, 12]
    assert [int(path.name[5:]) for path in checkpoint.steps(tmp_path / "checkpoints")] == [10, 12]


def test_a_step_that_is_not_finite_changes_no_weight(tmp_path):
    model, seen = toy_model(), {}
    for event in train(model, Toy(spoiled={3, 4}), options(ema=0.5), folder=tmp_path, width=8):
        if isinstance(event, Stepped | Skipped):
            seen[event.step] = {name: p.detach().clone() for name, p in model.named_parameters()}
        if isinstance(event, Skipped):
            assert all(torch.equal(p, seen[event.step - 1][name]) for name, p in model.named_parameters())
            assert event.in_a_row == event.step - 2
    assert sorted(seen) == list(range(1, 13))
    assert all(p.isfinite().all() for p in model.parameters())


def test_five_steps_in_a_row_that_are_not_finite_end_the_run(tmp_path):
    stream = train(toy_model(), Toy(spoiled=set(range(5, 10))), options(), folder=tmp_path, width=8)
    events = []
    with pytest.raises(TrainingError, match=r"step 9: loss nan.* 5 steps in a row; lower training\.learning_rate"):
        events.extend(stream)
    kept = checkpoint.latest(tmp_path / "checkpoints")
    assert kept is not None
    assert all(tensor.isfinite().all() for tensor in checkpoint.read(kept)[0]["model"].values())


def test_four_in_a_row_do_not(tmp_path):
    spoiled = {2, 3, 4, 5, 7, 8, 9, 10}
    _, events = run(tmp_path, options(), Toy(spoiled=spoiled))
    assert [e.in_a_row for e in only(events, Skipped)] == [1, 2, 3, 4, 1, 2, 3, 4]


def test_data_that_gives_nothing_is_refused(tmp_path):
    class Empty(Toy):
        def batches(self, _epoch):
            return []

    class Wordless(Toy):
        def loss(self, model, batch):
            return type(super().loss(model, batch))(super().loss(model, batch).total, 0)

    with pytest.raises(TrainingError, match="epoch 0 has no batch"):
        run(tmp_path, options(), Empty())
    with pytest.raises(TrainingError, match="nothing to predict"):
        run(tmp_path, options(), Wordless())


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_a_batch_that_does_not_fit_says_what_to_lower(tmp_path, error):
    class Huge(Toy):
        def loss(self, _model, _batch):
            raise error

    with pytest.raises(TrainingError, match=r"lower data\.batch_tokens"):
        run(tmp_path, options(), Huge())
    assert not list(tmp_path.iterdir())


def test_an_error_of_ours_is_not_mistaken_for_a_lack_of_memory(tmp_path):
    class Wrong(Toy):
        def loss(self, _model, _batch):
            raise RuntimeError("shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="multiplied"):
        run(tmp_path, options(), Wrong())


def test_the_peak_of_memory_covers_what_was_held(tmp_path):
    class Large(Toy):
        def largest(self):
            torch.ones(16, 2**20)  # 64 MB
            return super().largest()

    before = next(
        e for e in train(toy_model(), Toy(), options(), folder=tmp_path, width=8) if isinstance(e, MemoryChecked)
    )
    after = next(
        e for e in train(toy_model(), Large(), options(), folder=tmp_path, width=8) if isinstance(e, MemoryChecked)
    )
    assert 2**26 < before.peak <= after.peak


def test_the_number_of_threads_is_set(tmp_path):
    before = torch.get_num_threads()
    try:
        run(tmp_path, options(threads=2, steps=1, validations=0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
