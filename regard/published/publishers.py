"""What an export asks of each published family: one entry each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.image_lexicon import ImageLexicon
from regard.errors import RecipeError
from regard.published import bert, configs, gpt2, marian, t5, vit
from regard.published.checkpoint import CONFIG
from regard.published.encoders import read_by, rows_of
from regard.published.families import GENERATION, order_of
from regard.published.layout import Layout
from regard.published.preprocessing import PREPROCESSOR, preprocessor_config
from regard.recipe.folder import Lexicon
from regard.recipe.models import BertOptions, GptOptions, ModelOptions, TransformerOptions, VitOptions
from regard.recipe.recipe import Recipe
from regard.tasks.classify import Classes
from regard.tasks.translate import Vocabularies
from regard.text.byte_level import ByteLevel
from regard.text.pieces import SentencePieces
from regard.text.publish import write_byte_level, write_marian, write_t5, write_wordpiece
from regard.text.wordpiece import WordPiece

Files = Mapping[str, Mapping[str, Any]]  # the content of each JSON file by its name; config.json is one


@dataclass(frozen=True)
class Publisher:
    """What an export asks of a family. A lexicon is of the kind that its models have."""

    name: str
    refuse: Callable[[Any], None]  # of a model section: RecipeError names what the family cannot have
    files: Callable[[Recipe, Any], Files]
    layout: Callable[[Recipe, Any], Layout]
    words: Callable[[Any, Path], bool]  # writes the tokeniser's files; false: the family has no such one


# ---------------------------------------------------------------- models that write
def gpt2_files(recipe: Recipe, words: Vocabularies) -> Files:
    order = order_of(words)
    return {CONFIG: configs.gpt2_config(recipe, order), GENERATION: configs.search_config(recipe, order)}


def gpt2_layout(recipe: Recipe, words: Vocabularies) -> Layout:
    order = order_of(words)
    sizes = gpt2.sizes(configs.gpt2_config(recipe, order))
    return gpt2.layout(sizes, order, gpt2.Held("transformer.", head=not sizes.tied))


def gpt2_words(words: Vocabularies, folder: Path) -> bool:
    tokeniser = words.target
    if not isinstance(tokeniser, ByteLevel):
        return False
    write_byte_level(tokeniser, folder)
    return True


def t5_files(recipe: Recipe, words: Vocabularies) -> Files:
    order = order_of(words)
    return {CONFIG: configs.t5_config(recipe, order), GENERATION: configs.search_config(recipe, order)}


def t5_layout(recipe: Recipe, words: Vocabularies) -> Layout:
    assert isinstance(recipe.model, TransformerOptions)
    return t5.layout(recipe.model, order_of(words))


def t5_words(words: Vocabularies, folder: Path) -> bool:
    tokeniser = words.target
    if not isinstance(tokeniser, SentencePieces):
        return False
    write_t5(tokeniser, folder)
    return True


def marian_files(recipe: Recipe, words: Vocabularies) -> Files:
    order = order_of(words)
    return {CONFIG: configs.marian_config(recipe, order), GENERATION: configs.search_config(recipe, order)}


def marian_layout(recipe: Recipe, words: Vocabularies) -> Layout:
    assert isinstance(recipe.model, TransformerOptions)
    return marian.layout(recipe.model, order_of(words))


def marian_words(words: Vocabularies, folder: Path) -> bool:
    """T5's tokeniser would be one for both sides."""
    source, target = words.source, words.target
    if words.shared or not isinstance(source, SentencePieces) or not isinstance(target, SentencePieces):
        return False
    write_marian(source, target, folder)
    return True


# ---------------------------------------------------------------- models that read
def bert_files(recipe: Recipe, lexicon: Lexicon) -> Files:
    labels = lexicon.labels.names if isinstance(lexicon, Classes) else ()
    return {CONFIG: configs.bert_config(recipe, rows_of(lexicon), labels)}


def bert_layout(recipe: Recipe, lexicon: Lexicon) -> Layout:
    sizes, sorting = bert.sizes(bert_files(recipe, lexicon)[CONFIG]), isinstance(lexicon, Classes)
    copies = frozenset() if sizes.tied else frozenset({bert.HEAD_BIAS})
    held = bert.Held("bert.", pooler=sorting, masked=not sorting, copies=copies, classifier=sorting)
    return bert.layout(sizes, rows_of(lexicon), held)


def bert_words(lexicon: Lexicon, folder: Path) -> bool:
    tokeniser = read_by(lexicon)
    if not isinstance(tokeniser, WordPiece):
        return False
    write_wordpiece(tokeniser, folder)
    return True


def vit_files(recipe: Recipe, lexicon: ImageLexicon) -> Files:
    return {CONFIG: configs.vit_config(recipe, lexicon), PREPROCESSOR: preprocessor_config(lexicon)}


def vit_layout(recipe: Recipe, lexicon: ImageLexicon) -> Layout:
    return vit.layout(vit.sizes(configs.vit_config(recipe, lexicon)), vit.Held("vit.", pooler=False, classifier=True))


def no_words(lexicon: ImageLexicon, folder: Path) -> bool:  # noqa: ARG001
    """Images have none, so none are missing."""
    return True


# ---------------------------------------------------------------- the table
GPT2 = Publisher("GPT-2", configs.refuse_gpt2, gpt2_files, gpt2_layout, gpt2_words)
T5 = Publisher("T5", configs.refuse_t5, t5_files, t5_layout, t5_words)
MARIAN = Publisher("Marian", configs.refuse_marian, marian_files, marian_layout, marian_words)
BERT = Publisher("BERT", configs.refuse_bert, bert_files, bert_layout, bert_words)
VIT = Publisher("ViT", configs.refuse_vit, vit_files, vit_layout, no_words)


def publisher(options: ModelOptions) -> Publisher:
    """The published family that is nearest to a model."""
    match options:
        case GptOptions():
            return GPT2
        case TransformerOptions(positions="relative"):
            return T5
        case TransformerOptions():
            return MARIAN
        case BertOptions():
            return BERT
        case VitOptions():
            return VIT
        case _:
            raise RecipeError(
                f"model.kind: found {options.kind}, of which there is no published family; expected gpt, transformer, "
                "bert or vit"
            )
