"""A section of the recipe: frozen, typed, closed to unknown keys. Each default of the package is in one of these."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Lives beside the code that reads it; `recipe/recipe.py` puts the sections together."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
