"""Regard: train, understand and serve attention models on the machine you have.

regard.train("train.en", "train.de", out="models/en-de")
regard.load("models/en-de").translate(["A man rides a bike."])
"""

from typing import TYPE_CHECKING, Any

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.engine import load
    from regard.run import train

__all__ = ["RegardError", "load", "train"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`load` and `train` bring torch with them, so they are imported when first asked for."""
    if name == "load":
        from regard.engine import load

        return load
    if name == "train":
        from regard.run import train

        return train
    raise AttributeError(f"module 'regard' has no attribute {name!r}")
