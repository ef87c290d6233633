"""How a checkpoint of each published family becomes a recipe, words and weights of ours: one entry of a table each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor, nn

from regard.published import gpt2, marian, t5
from regard.published.checkpoint import Checkpoint, read_object
from regard.published.config import Published, read
from regard.published.encoders import Bert, Vit
from regard.published.family import PUBLISHED, Family, check_rows, other_special
from regard.published.layout import Layout
from regard.published.vocabulary import Order
from regard.recipe.folder import Lexicon, fresh_model
from regard.recipe.models import Positive, TransformerOptions
from regard.recipe.recipe import Recipe, Tree
from regard.tasks.translate import Vocabularies
from regard.text.byte_level import ByteLevel
from regard.text.pieces import SentencePieces
from regard.text.published import read_byte_level, read_marian, read_t5
from regard.text.special import EOS, NAMES

GENERATION = "generation_config.json"


class Gpt2:
    """A language model whose documents begin after the end of the one before."""

    ignored = gpt2.IGNORED

    def sections(self, found: Checkpoint) -> Tree:
        sizes = gpt2.sizes(found.config)
        model = {
            "kind": "gpt",
            "width": sizes.width,
            "heads": sizes.heads,
            "feedforward": sizes.feedforward,
            "dropout": sizes.dropout,
            "attention_dropout": sizes.attention_dropout,
            "norm_epsilon": sizes.epsilon,
            "activation": sizes.activation,
            "max_length": sizes.max_length,
            "tie_output": sizes.tied,
            "output_bias": "silent",
            "layers": sizes.layers,
        }
        task = {"kind": "language-model", "context": sizes.max_length, "start": "eos"}
        return {"task": task, "text": PUBLISHED, "model": model, "loss": {"smoothing": 0.0}}

    def words(self, found: Checkpoint) -> Vocabularies:
        vocab = gpt2.sizes(found.config).vocab
        check_rows(vocab, found.tensors)
        tokeniser = read_byte_level(found.folder).rows(vocab)
        end = found.config.get("eos_token_id")
        if end is not None and end != tokeniser.order[EOS]:
            raise other_special("EOS", end, tokeniser.order[EOS])
        return Vocabularies(tokeniser, tokeniser)

    def model(self, recipe: Recipe, lexicon: Lexicon) -> nn.Module:
        assert isinstance(lexicon, Vocabularies)
        return fresh_model(recipe, lexicon)

    def tensors(self, found: Checkpoint) -> Mapping[str, Tensor]:
        return found.tensors

    def layout(self, found: Checkpoint, recipe: Recipe, lexicon: Lexicon) -> Layout:  # noqa: ARG002
        return gpt2.layout(gpt2.sizes(found.config), order_of(lexicon), gpt2.held(found.tensors))


@dataclass(frozen=True)
class Translator:
    """T5 or Marian: `family` is its module of this folder, `read` gives the tokenisers of source and target."""

    family: ModuleType
    read: Callable[[Path], tuple[SentencePieces, SentencePieces]]
    loss: Mapping[str, Any]  # as it was trained

    @property
    def ignored(self) -> tuple[str, ...]:
        return tuple(self.family.IGNORED)

    def sections(self, found: Checkpoint) -> Tree:
        options: TransformerOptions = self.family.options(found.config, found.tensors)
        search = searching(found)
        return {"text": PUBLISHED, "model": options.model_dump(), "loss": dict(self.loss), "decoding": search}

    def words(self, found: Checkpoint) -> Vocabularies:
        vocab = int(found.config["vocab_size"])
        check_rows(vocab, found.tensors)
        expected: Order = self.family.order(found.config)
        source, target = self.read(found.folder)
        for name, theirs, ours in zip(NAMES, expected, source.order, strict=False):
            if theirs != ours:
                raise other_special(name, theirs, ours)
        if source is target:
            source = source.rows(vocab)
            return Vocabularies(source, source)
        return Vocabularies(source.rows(vocab), target.rows(vocab))

    def model(self, recipe: Recipe, lexicon: Lexicon) -> nn.Module:
        assert isinstance(lexicon, Vocabularies)
        return fresh_model(recipe, lexicon)

    def tensors(self, found: Checkpoint) -> Mapping[str, Tensor]:
        return found.tensors

    def layout(self, found: Checkpoint, recipe: Recipe, lexicon: Lexicon) -> Layout:
        held = self.family.held(found.config, found.tensors)
        layout: Layout = self.family.layout(recipe.model, order_of(lexicon), held)
        return layout


def read_one(folder: Path) -> tuple[SentencePieces, SentencePieces]:
    """T5's one tokeniser, for both sides."""
    both = read_t5(folder)
    return both, both


FAMILIES: dict[str, Family] = {
    "gpt2": Gpt2(),
    "bert": Bert(),
    "t5": Translator(t5, read_one, {"smoothing": 0.0}),
    "marian": Translator(marian, read_marian, {"smoothing": 0.1}),
    "vit": Vit(),
}


def order_of(lexicon: Lexicon) -> Order:
    """Which id of theirs each of ours stands for; every id of a tokeniser of our own stands for itself."""
    assert isinstance(lexicon, Vocabularies)
    target = lexicon.target
    return target.order if isinstance(target, ByteLevel | SentencePieces) else tuple(range(len(target)))


# ---------------------------------------------------------------- how it wants to be searched
class Generation(Published):
    """Their search settings, where they are given."""

    num_beams: Annotated[int, Field(ge=1, le=64)] | None = None
    length_penalty: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max_length: Annotated[int, Field(ge=2)] | None = None  # with the token that starts a text
    max_new_tokens: Positive | None = None


def searching(found: Checkpoint) -> Tree:
    """The decoding section: what the checkpoint says, and our defaults where it says nothing.

    Older files have in config.json what newer ones have in generation_config.json.
    """
    path = found.folder / GENERATION
    theirs = read(Generation, {**found.config, **(read_object(path) if path.is_file() else {})}, GENERATION)
    cap = theirs.max_new_tokens or (theirs.max_length - 1 if theirs.max_length else None)
    given = {"beam": theirs.num_beams, "length_penalty": theirs.length_penalty, "cap": cap, "max_extra": cap}
    return {key: value for key, value in given.items() if value is not None}
