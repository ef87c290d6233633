"""The training loop: a generator of events. A run killed at any moment goes on to the same weights, to the bit."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.errors import TrainingError
from regard.evaluation.samples import Sample
from regard.models.interface import parameters
from regard.tasks.interface import Showing, Task
from regard.training import checkpoint
from regard.training.averaging import average
from regard.training.checkpoint import Place
from regard.training.crew import Crew, shares
from regard.training.events import (
    Event,
    Finished,
    MemoryChecked,
    Saved,
    Skipped,
    Source,
    Started,
    Stepped,
    Stopped,
    Validated,
)
from regard.training.length import Length, Moment, crossed, length
from regard.training.memory import memory_refused, rehearse
from regard.training.optimiser import moments, restore_moments
from regard.training.options import TrainingOptions
from regard.training.schedules import check_warmup, rate
from regard.training.tensors import fill, weights
from regard.training.update import Update

SKIPS = 5  # steps in a row without a finite gradient that end a run
HIGHER_IS_BETTER = {"bleu", "accuracy"}


def never() -> bool:
    return False


def train(
    model: nn.Module,
    task: Task[Any, Any],
    options: TrainingOptions,
    *,
    folder: Path,
    width: int,
    stop: Callable[[], bool] = never,
    clock: Callable[[], float] = time.monotonic,
    started: float | None = None,
) -> Iterator[Event]:
    """Trains `model` in place and tells what happens; goes on from `folder/checkpoints` when there are any.

    At the end the model, in evaluation mode, holds: the best validated weights if `patience` is set (of the moving
    average, if that is on); else the moving average if `ema` is on; else the mean of the last checkpoints if `average`
    is on; else the last weights.
    After "interrupted" it holds the last weights, and the same call again goes on.

    The random numbers of a step are a function of (seed, step): all generators are seeded at every step.
    `stop` is asked after every step. `started` is the clock's time from which a budget counts, if that was earlier.
    """
    if options.threads:
        torch.set_num_threads(options.threads)
    watch = Watch(clock, clock() if started is None else started)
    with Crew(model, task, shares(options)) as crew:
        run = Run(model, crew, options, folder=folder / "checkpoints", width=width, watch=watch)
        newest = checkpoint.latest(run.folder)
        resumed = checkpoint.read_place(newest).step if newest else None
        yield Started(parameters(model), options.steps, options.passes, options.budget, resumed)
        # Before the restore: whatever the rehearsal leaves in buffers is overwritten.
        yield MemoryChecked(rehearse(model, task, crew))
        run.begin(newest)
        yield from run.steps(stop)
        if run.over:
            yield from run.finish()


@dataclass(frozen=True)
class Watch:
    """Seconds since `origin` on a clock."""

    clock: Callable[[], float]
    origin: float

    def __call__(self) -> float:
        return self.clock() - self.origin


class Run:
    """The state of one run. `place` changes by whole values, so that what is saved is what was true."""

    def __init__(
        self,
        model: nn.Module,
        crew: Crew,
        options: TrainingOptions,
        *,
        folder: Path,
        width: int,
        watch: Watch,
    ) -> None:
        self.model, self.crew, self.task, self.options = model, crew, crew.task, options
        self.folder, self.width, self.watch = folder, width, watch
        self.update = Update(model, crew, options)
        self.ema = self.update.ema
        self.place = Place()
        self.plans = self._plans(0)
        self.epoch_of_plans = 0
        self.first_epoch_batches = len(self.plans)
        self.progress = self.progress_at_start = self.began = 0.0
        self.saved_step: int | None = None
        check_warmup(options, self.length.steps)

    # ------------------------------------------------------------ where the run stands
    @property
    def length(self) -> Length:
        return length(self.options, self.first_epoch_batches, self.place.reserve)

    @property
    def seconds(self) -> float:
        """Of the whole run: those of earlier parts, and those since this part began."""
        return self.place.elapsed + self.watch()

    @property
    def passes(self) -> float:
        return self.place.epoch + self.place.position / len(self.plans)

    @property
    def exhausted(self) -> bool:
        return self.options.patience is not None and self.place.worse >= self.options.patience

    @property
    def over(self) -> bool:
        return self.progress >= 1 or self.exhausted

    def _due(self, before: float, after: float) -> bool:
        every = self.options.save_every
        return self.place.step % every == 0 if every else crossed(before, after, self.options.saves)

    def _advance(self) -> None:
        """Progress never falls, even when a quicker validation gives time back to a budget."""
        self.progress = max(self.progress, self.length.progress(Moment(self.place.step, self.passes, self.seconds)))

    def _plans(self, epoch: int) -> list[Any]:
        plans = self.task.batches(epoch)
        if not plans:
            raise TrainingError(f"epoch {epoch} has no batch; expected at least one example in the training data")
        return plans

    # ------------------------------------------------------------ steps
    def begin(self, newest: Path | None) -> None:
        if newest:
            self._restore(newest)
        self._advance()
        self.progress_at_start, self.began = self.progress, self.watch()

    def steps(self, stop: Callable[[], bool]) -> Iterator[Event]:
        """Step after step, with validations and checkpoints between, until the run is over or `stop` says so."""
        before = self.progress
        while not self.over:
            yield self.step()
            after = self.progress
            if crossed(before, after, self.options.validations) and not self.over:
                yield self.validate()
            interrupted, due = stop(), self._due(before, after)
            if (due or interrupted) and not self.over:
                yield self.save(scheduled=due)
            if interrupted and not self.over:
                yield Stopped(self.place.step, "interrupted")
                return
            before = after
            self._advance()  # a budget also runs between steps

    def step(self) -> Stepped | Skipped:
        """Σ totals / Σ units over the next `accumulate` batches of the epoch, one optimiser step."""
        began, place = self.watch(), self.place
        self._load_epoch()
        step = place.step + 1
        group = self.plans[place.position : place.position + self.options.accumulate]
        learning_rate = rate(self.options, step, min(self.progress, 1.0), width=self.width, steps=self.length.steps)
        self.crew.seed(f"{self.options.seed}/{step}")
        loss, norm, units = self._gradients(group, place.epoch)
        healthy = math.isfinite(loss) and math.isfinite(norm)
        if healthy:
            self.update.step(step, learning_rate, norm, units)
        self.update.clear()
        self._move_on(step, len(group), 0 if healthy else place.skipped + 1)
        if not healthy:
            return self._skip(loss, norm)
        speed, left = units / max(self.watch() - began, 1e-9), self._seconds_left()
        return Stepped(
            step, place.epoch, loss, learning_rate, norm, units, speed, min(self.progress, 1.0), self.seconds, left
        )

    def _gradients(self, group: list[Any], epoch: int) -> tuple[float, float, int]:
        """Mean loss, gradient norm and units of a group of batches; its gradients are left on the parameters."""
        with memory_refused():
            losses = [self.crew.backward(plan, epoch) for plan in group]
            norm = self.crew.gather()
        loss = sum(losses[1:], losses[0])
        if loss.units == 0:
            raise TrainingError(f"step {self.place.step + 1}: its batches hold nothing to predict; check the data")
        return float(loss.total) / loss.units, norm / loss.units, loss.units

    def _move_on(self, step: int, taken: int, skipped: int) -> None:
        epoch, position = self.place.epoch, self.place.position + taken
        if position >= len(self.plans):
            epoch, position = epoch + 1, 0
        self.place = replace(self.place, step=step, epoch=epoch, position=position, skipped=skipped)
        self._advance()

    def _load_epoch(self) -> None:
        if self.place.epoch != self.epoch_of_plans:
            self.plans, self.epoch_of_plans = self._plans(self.place.epoch), self.place.epoch

    def _skip(self, loss: float, norm: float) -> Skipped:
        if self.place.skipped >= SKIPS:
            raise TrainingError(
                f"step {self.place.step}: loss {loss:g}, gradient norm {norm:g}, not finite {SKIPS} steps in a row; "
                "lower training.learning_rate or lengthen training.warmup, then start again from the last checkpoint"
            )
        return Skipped(self.place.step, loss, norm, self.place.skipped)

    def _seconds_left(self) -> float | None:
        if self.options.budget is not None:
            return max(0.0, self.options.budget - self.seconds)
        done = self.progress - self.progress_at_start
        return (self.watch() - self.began) * (1 - min(self.progress, 1.0)) / done if done > 0 else None

    # ------------------------------------------------------------ validation
    def _evaluate(self) -> tuple[dict[str, float], tuple[Sample, ...]]:
        self.crew.seed(f"{self.options.seed}/{self.place.step}")
        self.model.eval()
        with torch.no_grad(), self.crew.resting():
            scores = self.task.evaluate(self.model)
            return scores, tuple(self.task.samples(self.model)) if isinstance(self.task, Showing) else ()

    def validate(self, *, last: bool = False) -> Validated:
        """Scores of the moving average if there is one; better ones are kept as `checkpoints/best`."""
        began, place, wanted = self.watch(), self.place, self.options.stop_on
        with self.ema.swapped() if self.ema else nullcontext():
            scores, samples = self._evaluate()
            if wanted not in scores and self.options.patience is not None:
                raise TrainingError(
                    f"training.stop_on: validation gave no {wanted!r} but {sorted(scores)}; choose one of these"
                )
            better = self._better(scores.get(wanted, math.nan))
            self.place = replace(
                place,
                best=scores[wanted] if better else place.best,
                worse=0 if better else place.worse + 1,
                validated=place.step,
                scores=scores,
                # The last one keeps the reserve it was given, or a finished run would look unfinished.
                reserve=place.reserve if last else self.watch() - began,
            )
            if better:
                checkpoint.save(self.folder / "best", {"model": weights(self.model)}, self._snapshot())
        return Validated(place.step, self.seconds, scores, better, samples)

    def _better(self, score: float) -> bool:
        best = self.place.best
        if math.isnan(score):
            return False
        return best is None or (score > best if self.options.stop_on in HIGHER_IS_BETTER else score < best)

    # ------------------------------------------------------------ disk
    def _snapshot(self, scheduled: bool = True) -> Place:
        return replace(self.place, elapsed=self.seconds, scheduled=scheduled)

    def save(self, *, scheduled: bool) -> Saved:
        tensors = {"model": weights(self.model), "optimiser": moments(self.model, self.update.optimisers)}
        if self.ema:
            tensors["ema"] = self.ema.means
        path = checkpoint.path_of(self.folder, self.place.step)
        checkpoint.save(path, tensors, self._snapshot(scheduled))
        checkpoint.prune(self.folder, path, self.options.kept)
        self.saved_step = self.place.step
        return Saved(self.place.step, str(path))

    def _restore(self, path: Path) -> None:
        """Everything as it was when `path` was saved."""
        tensors, self.place = checkpoint.read(path)
        fill(weights(self.model), tensors.get("model", {}), path / "model.safetensors")
        found = tensors.get("optimiser", {})
        restore_moments(self.model, self.update.optimisers, found, path / "optimiser.safetensors")
        fill(self.ema.means if self.ema else {}, tensors.get("ema", {}), path / "ema.safetensors")
        self.saved_step = self.place.step
        self._load_epoch()

    # ------------------------------------------------------------ the end
    def finish(self) -> Iterator[Event]:
        if self.options.validations and self.place.validated != self.place.step:
            yield self.validate(last=True)
        if self.saved_step != self.place.step:
            yield self.save(scheduled=True)
        yield Stopped(self.place.step, "early" if self.exhausted else "done")
        source = self._settle_weights()
        scores = self.place.scores
        if source == "average" and self.options.validations:
            scores, samples = self._evaluate()
            better = self._better(scores.get(self.options.stop_on, math.nan))
            yield Validated(self.place.step, self.seconds, scores, better, samples)
        if source == "best":
            scores = checkpoint.read_place(self.folder / "best").scores
        self.model.eval()
        yield Finished(self.place.step, self.passes, self.seconds, self.place.best, scores, source)

    def _settle_weights(self) -> Source:
        best = self.folder / "best"
        if self.options.patience is not None and best.exists():
            fill(weights(self.model), checkpoint.read(best)[0]["model"], best / "model.safetensors")
            return "best"
        if self.ema:
            self.ema.impose()
            return "ema"
        if self.options.average:
            paths = [path / "model.safetensors" for path in checkpoint.scheduled(self.folder)[-self.options.average :]]
            fill(weights(self.model), average(paths), paths[-1])
            return "average"
        return "last"
