"""How a run goes: its length, its learning rate, what it saves and when it stops. Every default of training is here."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from regard.section import Section

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(gt=0)]
Amount = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
EPOCHS = 30.0  # the length of a run for which none was asked
DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def seconds(value: Any) -> Any:
    """ "1h30m" → 5400.0, "20m" → 1200.0, "90s" and "90" → 90.0; what is not text stays as it is."""
    if not isinstance(value, str):
        return value
    text = value.replace(" ", "").lower()
    found = DURATION.fullmatch(f"{text}s" if text[-1:].isdigit() and not set(text) & set("hm") else text)
    if not found or not any(found.groups()):
        raise ValueError(f"{value!r} is not a duration; write 90s, 20m or 1h30m")
    hours, minutes, rest = (float(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + rest


class TrainingOptions(Section):
    """At most one of `steps`, `epochs` and `budget` says how long the run is; none of them means 30 epochs."""

    steps: Positive | None = None
    epochs: Amount | None = None
    budget: Annotated[Amount, BeforeValidator(seconds)] | None = None  # wall time: 20m, 1h30m, or seconds

    seed: Count = 1
    threads: Positive | None = None  # of torch; none: as torch finds it. Another number is another rounding
    shares: Positive | None = None  # of a batch, a thread for each; none: as many as threads, at most 4
    accumulate: Positive = 1  # batches per step; the loss is still one mean over all their units
    clip: Annotated[float, Field(ge=0.0)] = 1.0  # global gradient norm; 0: off

    optimiser: Literal["adamw", "muon"] = "adamw"  # muon: further with the same text, for a third more time a step
    learning_rate: Amount = 1e-3  # the peak; "noam" takes its peak from the width instead
    rest_rate: Amount = 1.0  # × learning_rate, for what muon leaves to AdamW: tables of words, biases, norms
    schedule: Literal["noam", "inverse-root", "cosine", "linear"] = "cosine"
    warmup: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.05  # steps; below 1: a fraction of the run
    betas: tuple[Annotated[float, Field(ge=0.0, lt=1.0)], Annotated[float, Field(ge=0.0, lt=1.0)]] = (0.9, 0.98)
    epsilon: Amount = 1e-9
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01  # of matrices; never of biases and norms

    validations: Count = 10  # over the whole run, the last one at its end; 0: none
    patience: Positive | None = None  # validations in a row without a better score before the run stops
    stop_on: Literal["loss", "bleu", "accuracy"] = "loss"  # the score that makes a checkpoint the best

    ema: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0  # decay of the moving average of weights; 0: off
    average: Count = 0  # the model is the mean of this many last checkpoints; 0: off

    saves: Positive = 20  # checkpoints over the whole run, the last one at its end
    save_every: Positive | None = None  # steps; instead of `saves`
    keep: Positive = 5  # newest checkpoints that stay on disk

    @model_validator(mode="after")
    def _consistent(self) -> "TrainingOptions":
        asked = [name for name in ("steps", "epochs", "budget") if getattr(self, name) is not None]
        if len(asked) > 1:
            raise ValueError(f"{' and '.join(asked)} both say how long the run is; keep one")
        if self.patience and not self.validations:
            raise ValueError("patience counts validations, and validations is 0; set validations to 1 or more")
        if self.budget and self.schedule in ("noam", "inverse-root") and self.warmup < 1:
            raise ValueError(
                f"warmup: {self.warmup:g} is a fraction of the run, but {self.schedule} counts steps, and a budget in "
                "seconds does not say how many there will be; give warmup in steps, or use cosine or linear"
            )
        return self

    @property
    def passes(self) -> float | None:
        """Epochs of a run that is measured in epochs, asked for or not."""
        return EPOCHS if not (self.steps or self.epochs or self.budget) else self.epochs

    @property
    def kept(self) -> int:
        """Checkpoints to keep on disk: averaging needs its last ones."""
        return max(self.keep, self.average)
