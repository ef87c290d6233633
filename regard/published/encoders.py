"""How a BERT or a ViT becomes a recipe, words and weights of ours: families that read and do not write."""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor, nn

from regard.data.image_lexicon import ImageLexicon
from regard.data.labels import Labels
from regard.data.masking import MASK, mask_id
from regard.errors import ModelFormatError
from regard.published import bert, vit
from regard.published.checkpoint import Checkpoint
from regard.published.family import PUBLISHED, check_rows, other_special
from regard.published.fields import told_apart
from regard.published.layout import Layout
from regard.published.preprocessing import read_normalisation
from regard.published.vocabulary import Order
from regard.recipe.folder import Lexicon
from regard.recipe.reading import fresh_classifier, fresh_masked
from regard.recipe.recipe import Recipe, Tree
from regard.recipe.seeing import fresh_image_classifier
from regard.tasks.classify import Classes
from regard.tasks.translate import Vocabularies
from regard.text.published import read_wordpiece
from regard.text.special import PAD
from regard.text.tokeniser import Tokeniser
from regard.text.wordpiece import WordPiece

POOLER = "*pooler.dense.*"  # that no head stands upon
PLAIN_LOSS = {"smoothing": 0.0}


class Bert:
    """A model that names hidden tokens, or one that sorts texts: its head decides."""

    ignored = (*bert.IGNORED, POOLER)

    def sections(self, found: Checkpoint) -> Tree:
        sizes, held = bert.sizes(found.config), bert.held(found.tensors)
        refuse_headless(found, held)
        model = {
            "kind": "bert",
            "width": sizes.width,
            "heads": sizes.heads,
            "feedforward": sizes.feedforward,
            "dropout": sizes.dropout,
            "attention_dropout": sizes.attention_dropout,
            "norm_epsilon": sizes.epsilon,
            "order": "post",
            "activation": sizes.activation,
            "max_length": sizes.max_length,
            "layers": sizes.layers,
            "segments": sizes.segments,
            "tie_output": sizes.tied,
        }
        shared = {"text": PUBLISHED, "model": model, "loss": PLAIN_LOSS}
        if held.classifier:
            return {"task": {"kind": "classify"}, "data": {"max_tokens": sizes.max_length}, **shared}
        return {"task": {"kind": "masked", "context": sizes.max_length}, **shared}

    def words(self, found: Checkpoint) -> Lexicon:
        """A checkpoint does not say whether it learned from pairs of texts: single ones are taken for granted."""
        sizes = bert.sizes(found.config)
        check_rows(sizes.vocab, found.tensors)
        tokeniser = read_wordpiece(found.folder).rows(sizes.vocab)
        pad, last = found.config.get("pad_token_id"), tokeniser.name(len(tokeniser) - 1)
        if pad is not None and pad != tokeniser.order[PAD]:
            raise other_special("PAD", pad, tokeniser.order[PAD])
        if last != MASK:
            raise ModelFormatError(
                f"tokenizer_config.json: mask_token: found {last:.40}, expected {MASK}; Regard knows no other mask"
            )
        if bert.held(found.tensors).classifier:
            return Classes(tokeniser, Labels(told_apart(sizes.labels)), pairs=False)
        return Vocabularies(tokeniser, tokeniser)

    def model(self, recipe: Recipe, lexicon: Lexicon) -> nn.Module:
        if isinstance(lexicon, Classes):
            return fresh_classifier(recipe, lexicon)
        return fresh_masked(recipe, read_by(lexicon))

    def tensors(self, found: Checkpoint) -> Mapping[str, Tensor]:
        return bert.modern(found.tensors)

    def layout(self, found: Checkpoint, recipe: Recipe, lexicon: Lexicon) -> Layout:  # noqa: ARG002
        sorting = isinstance(lexicon, Classes)
        held = replace(bert.held(found.tensors), pooler=sorting, masked=not sorting, classifier=sorting)
        return bert.layout(bert.sizes(found.config), rows_of(lexicon), held)


def refuse_headless(found: Checkpoint, held: bert.Held) -> None:
    if held.classifier and not held.pooler:
        raise ModelFormatError(
            f"{found.folder}: found a classifier upon every token (there is no pooler.dense), expected one of whole "
            "texts; Regard has no model that labels tokens"
        )
    if not held.classifier and not held.masked:
        raise ModelFormatError(
            f"{found.folder}: found an encoder alone, expected a head upon it: cls.predictions for hidden tokens, or "
            "classifier for classes; use a checkpoint that has one"
        )


def read_by(lexicon: Lexicon) -> Tokeniser:
    """The tokeniser of a model that reads texts."""
    if isinstance(lexicon, Classes):
        return lexicon.tokeniser
    assert isinstance(lexicon, Vocabularies)
    return lexicon.target


def rows_of(lexicon: Lexicon) -> Order:
    """Which id of theirs each row of ours stands for; with a tokeniser of our own each for itself, the mask too."""
    tokeniser = read_by(lexicon)
    return tokeniser.order if isinstance(tokeniser, WordPiece) else tuple(range(mask_id(tokeniser) + 1))


class Vit:
    """A model that tells images apart."""

    ignored = (POOLER,)

    def sections(self, found: Checkpoint) -> Tree:
        sizes = vit.sizes(found.config)
        if not vit.held(found.tensors).classifier:
            raise ModelFormatError(
                f"{found.folder}: found an encoder alone, expected a classifier upon it; use a checkpoint that has one"
            )
        model = {
            "kind": "vit",
            "width": sizes.width,
            "heads": sizes.heads,
            "feedforward": sizes.feedforward,
            "dropout": sizes.dropout,
            "attention_dropout": sizes.attention_dropout,
            "norm_epsilon": sizes.epsilon,
            "activation": sizes.activation,
            "layers": sizes.layers,
            "patch": sizes.patch,
        }
        return {"task": {"kind": "classify-images"}, "model": model, "loss": PLAIN_LOSS}

    def words(self, found: Checkpoint) -> ImageLexicon:
        sizes = vit.sizes(found.config)
        refuse_more_places(sizes, found.tensors)
        if sizes.channels not in (1, 3):
            raise ModelFormatError(
                f"config.json: num_channels: found {sizes.channels}, expected 1 (grey) or 3 (colour); Regard reads no "
                "other images"
            )
        content = {"size": sizes.image, "channels": sizes.channels, "labels": told_apart(sizes.labels)}
        normalisation = read_normalisation(found.folder, sizes.image, sizes.channels)
        return ImageLexicon.model_validate({**content, "normalisation": normalisation})

    def model(self, recipe: Recipe, lexicon: Lexicon) -> nn.Module:
        assert isinstance(lexicon, ImageLexicon)
        return fresh_image_classifier(recipe, lexicon)

    def tensors(self, found: Checkpoint) -> Mapping[str, Tensor]:
        return found.tensors

    def layout(self, found: Checkpoint, recipe: Recipe, lexicon: Lexicon) -> Layout:  # noqa: ARG002
        held = replace(vit.held(found.tensors), pooler=False)
        return vit.layout(vit.sizes(found.config), held)


def refuse_more_places(sizes: vit.Sizes, tensors: Mapping[str, Tensor]) -> None:
    """Before a table is made that has a row for each place of the image."""
    (rows, columns), most = sizes.grid, max((tensor.numel() for tensor in tensors.values()), default=0)
    if rows * columns > most:
        raise ModelFormatError(
            f"config.json: image_size: found {sizes.image[0]:,} × {sizes.image[1]:,}, but no tensor holds more than "
            f"{most:,} numbers; copy the checkpoint again"
        )
