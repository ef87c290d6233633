"""What an import asks of a published family, and what every family checks."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from regard.errors import ModelFormatError
from regard.published.checkpoint import Checkpoint
from regard.published.layout import Layout
from regard.recipe.folder import Lexicon
from regard.recipe.recipe import Recipe, Tree

PUBLISHED = {"kind": "published"}  # the text section: nothing is learned from text here


@runtime_checkable
class Family(Protocol):
    """What an import asks, in this order. Whatever is wrong with a checkpoint is refused as a ModelFormatError."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """Patterns of tensors that may be there and mean nothing."""
        ...

    def sections(self, found: Checkpoint) -> Tree:
        """The recipe of the model, but for its data, of which there is none."""
        ...

    def words(self, found: Checkpoint) -> Lexicon: ...
    def model(self, recipe: Recipe, lexicon: Lexicon) -> nn.Module: ...
    def tensors(self, found: Checkpoint) -> Mapping[str, Tensor]:
        """Theirs, under the names that the layout asks for."""
        ...

    def layout(self, found: Checkpoint, recipe: Recipe, lexicon: Lexicon) -> Layout: ...


def check_rows(vocab: int, tensors: Mapping[str, Tensor]) -> None:
    """Before anything is made that is as long as the vocabulary."""
    most = max((len(tensor) for tensor in tensors.values() if tensor.dim()), default=0)
    if vocab > most:
        raise ModelFormatError(
            f"config.json: vocab_size: found {vocab:,}, but no tensor has more than {most:,} rows; "
            "copy the checkpoint again"
        )


def other_special(name: str, config: Any, tokeniser: int) -> ModelFormatError:
    return ModelFormatError(
        f"config.json: the id of {name} is {config!s:.40}, but the tokeniser has it at {tokeniser}; "
        "use the checkpoint's own tokeniser"
    )
