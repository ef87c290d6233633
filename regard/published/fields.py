"""What the configs of several families have in common."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from regard.errors import ModelFormatError

Layers = Annotated[int, Field(gt=0, le=1000)]  # bounded: each makes a dozen entries of a layout
Epsilon = Annotated[float, Field(gt=0.0, lt=1.0)]
Activation = Literal["relu", "gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "silu", "swish"]
OURS: dict[str, str] = {  # their name of an activation → ours
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}


def check_heads(key: str, heads: int, width: int) -> None:
    if width % heads:
        raise ModelFormatError(f"config.json: {key}: found {heads}, expected a divisor of the width {width}")


def labels(names: Mapping[str, str] | None) -> tuple[str, ...]:
    """The classes by number, of `id2label`; two without a name where the config does not say."""
    if names is None:
        return ("LABEL_0", "LABEL_1")
    keys = [str(i) for i in range(len(names))]
    if not names or names.keys() != set(keys):
        raise ModelFormatError(
            f"config.json: id2label: found {', '.join(list(names)[:5])[:80]!r}, expected the numbers of the classes "
            "from 0 on"
        )
    return tuple(names[key] for key in keys)


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """The names of the classes; one that stood before gets its number: ImageNet has two kinds of crane."""
    if len(names) < 2:
        raise ModelFormatError(
            "config.json: id2label: found 1 class, expected two or more; Regard sorts, and this model measures"
        )
    found: dict[str, None] = {}
    for number, name in enumerate(names):
        fresh = f"{name} ({number})" if name in found else name
        if fresh in found or not fresh.strip():
            raise ModelFormatError(
                f"config.json: id2label: class {number} is named {name!r:.80}, expected a name of its own; give it one"
            )
        found[fresh] = None
    return tuple(found)
