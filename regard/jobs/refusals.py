"""What a task cannot use, refused by name."""

from collections.abc import Mapping

from regard.errors import RecipeError


def refuse_unused(values: Mapping[str, float], task: str) -> None:
    """The first of these settings that is not 0."""
    for name, value in values.items():
        if value:
            raise RecipeError(f"{name}: {value:g} has no meaning for the task {task}; leave it out")
