"""Learning rates as pure functions of the step, which counts from 1, or of the progress, which runs from 0 to 1."""

import math

from regard.errors import TrainingError
from regard.training.options import TrainingOptions


def noam(step: int, *, width: int, warmup: float) -> float:
    """lr(s) = d^-½ · min(s^-½, s·w^-3/2): linear rise for `warmup` steps, then 1/√s decay.

    Vaswani et al. 2017, eq. 3.
    """
    return float(width**-0.5 * min(step**-0.5, step * warmup**-1.5))


def inverse_root(step: int, *, peak: float, warmup: float) -> float:
    """lr(s) = peak · min(s/w, √(w/s)): the same curve with its top at `peak` instead of (d·w)^-½."""
    return peak * min(step / warmup, math.sqrt(warmup / step))


def cosine(progress: float) -> float:
    """½ (1 + cos πp): from 1 to exactly 0. Loshchilov & Hutter 2017, without restarts."""
    return 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


def linear(progress: float) -> float:
    """1 − p: from 1 to exactly 0."""
    return 1 - min(progress, 1.0)


def rate(options: TrainingOptions, step: int, progress: float, *, width: int, steps: int | None) -> float:
    """The learning rate of `step`; `progress` is that of the run before the step, so a run's end has rate 0.

    `steps` is the length of the run in steps, unknown in a run by wall time. There, cosine and linear warm up and
    decay by the clock.
    """
    warmup = options.warmup if options.warmup >= 1 or steps is None else max(1.0, options.warmup * steps)
    if options.schedule == "noam":
        return noam(step, width=width, warmup=warmup)
    if options.schedule == "inverse-root":
        return inverse_root(step, peak=options.learning_rate, warmup=warmup)
    shape = cosine if options.schedule == "cosine" else linear
    if options.warmup == 0:
        return options.learning_rate * shape(progress)
    flat = options.warmup if options.warmup < 1 else warmup / steps if steps else 0.0  # part of the run before decay
    rise = step / warmup if warmup >= 1 else progress / warmup
    return options.learning_rate * min(1.0, rise) * shape(max(0.0, (progress - flat) / (1 - flat)))


def check_warmup(options: TrainingOptions, steps: int | None) -> None:
    """Refuses a warm-up that leaves a decaying schedule nothing to decay over."""
    if options.schedule in ("cosine", "linear") and steps is not None and options.warmup >= max(1, steps):
        raise TrainingError(
            f"training.warmup: {options.warmup:g} steps do not fit into a run of {steps}; "
            "give fewer, or a fraction such as 0.05"
        )
