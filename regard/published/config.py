"""The config.json of a published checkpoint: the facts that a family needs, typed; what it cannot have is refused."""

import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from regard.errors import ModelFormatError


class Published(BaseModel):
    """Their keys under their names. A key that is not asked for means nothing to us; a choice we lack has one value."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


P = TypeVar("P", bound=Published)


def read(schema: type[P], config: Mapping[str, Any], where: str = "config.json") -> P:
    """The facts of `schema`; ModelFormatError names the first key that is missing or cannot be."""
    try:
        return schema.model_validate(dict(config))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            raise ModelFormatError(f"{where}: {key}: missing; copy the checkpoint again") from None
        found, expected = reprlib.repr(first["input"]), first["msg"].replace("Input should be", "expected", 1)
        raise ModelFormatError(
            f"{where}: {key}: found {found:.80}, {expected}; Regard cannot compute another"
        ) from None
