"""The settings of search and of sampling, each default written here and nowhere else."""

from typing import Annotated

from pydantic import Field, model_validator

from regard.section import Section

Finite = Annotated[float, Field(allow_inf_nan=False)]


class SearchOptions(Section):
    """Beam search under log p / length**length_penalty, for targets of at most ratio · source + extra tokens."""

    beam: Annotated[int, Field(ge=1, le=64)] = 5  # 1 is greedy
    length_penalty: Finite = 1.0  # 0: plain log p; above 0 favours long outputs, below 0 short ones
    max_ratio: Annotated[Finite, Field(ge=0.0)] = 2.0
    max_extra: Annotated[int, Field(ge=0)] = 20
    cap: Annotated[int, Field(ge=1)] = 512
    n_best: Annotated[int, Field(ge=1)] = 1
    # A search ends once patience · beam hypotheses have finished (Kasai et al. 2022); none: when `beam` have, and no
    # other is ahead of the best of them.
    patience: Annotated[Finite, Field(gt=0.0)] | None = None

    @model_validator(mode="after")
    def _beam_holds_n_best(self) -> "SearchOptions":
        if self.n_best > self.beam:
            raise ValueError(f"n_best: {self.n_best} is more than beam {self.beam}; raise beam or lower n_best")
        return self

    def max_length(self, source: int) -> int:
        """Most tokens, the end token among them, that a source of `source` tokens may produce."""
        return max(1, min(self.cap, int(self.max_ratio * source) + self.max_extra))


class SamplingOptions(Section):
    """Draws from softmax(logits / temperature), cut to the top_k likeliest tokens, then to the top_p of the mass."""

    temperature: Annotated[Finite, Field(gt=0.0)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0  # 0: all
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0  # 1: all
    samples: Annotated[int, Field(ge=1)] = 1
