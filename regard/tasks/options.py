"""What the translation loss can be asked."""

from typing import Annotated

from pydantic import Field

from regard.section import Section


class LossOptions(Section):
    smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1  # ε: how much of each target is spread over all words
