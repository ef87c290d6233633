"""Wishes of a user laid over a section of the recipe."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from regard.errors import DecodingError
from regard.section import Section

S = TypeVar("S", bound=Section)


def checked(own: S, asked: Mapping[str, Any]) -> S:
    """The section with the values that were asked for, none being no wish; one line about the first impossible one."""
    wishes = {name: value for name, value in asked.items() if value is not None}
    try:
        return type(own).model_validate({**own.model_dump(), **wishes})
    except ValidationError as error:
        problem = error.errors()[0]
        where = "".join(f"{part}: " for part in problem["loc"])
        raise DecodingError(where + problem["msg"].removeprefix("Value error, ")) from None
