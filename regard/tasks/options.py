"""What the translation loss can be asked."""

from typing import Annotated

from pydantic import Field

from regard.section import Section

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


class LossOptions(Section):
    smoothing: Probability = 0.1  # ε: how much of each target is spread over all words
    rdrop: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0  # α of Liang et al. 2021, who use 5; 0: one pass
    source_word_dropout: Probability = 0.0  # of source tokens, seen as <unk>
    target_word_dropout: Probability = 0.0  # of the target tokens that the decoder is shown, not of those it predicts
