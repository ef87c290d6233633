"""What is learned, and what the loss can be asked."""

from typing import Annotated, Literal

from pydantic import Field

from regard.data.spans import SpanOptions
from regard.section import Section
from regard.text.special import BOS, EOS

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


class TranslateOptions(Section):
    """Pairs of texts: the second from the first."""

    kind: Literal["translate"] = "translate"


class LanguageModelOptions(Section):
    """Plain text: each token from those before it."""

    kind: Literal["language-model"] = "language-model"
    context: Annotated[int, Field(gt=1)] = 256  # tokens that are seen together
    rows: Literal["packed", "cropped"] = "packed"  # every token once an epoch, or stretches that begin anywhere
    start: Literal["bos", "eos"] = "bos"  # what a document begins after; GPT-2 knows only the end of the one before

    @property
    def start_id(self) -> int:
        return BOS if self.start == "bos" else EOS


class MaskedOptions(Section):
    """Plain text: hidden tokens from all around them."""

    kind: Literal["masked"] = "masked"
    context: Annotated[int, Field(gt=2)] = 128  # tokens that are seen together, with the start and the end
    share: Annotated[float, Field(gt=0, le=1)] = 0.15  # of the tokens that are to be predicted
    whole_words: bool = True  # all pieces of a word or none


class DenoiseOptions(SpanOptions):
    """Plain text: stretches that were left out, from what is around them."""

    kind: Literal["denoise"] = "denoise"
    context: Annotated[int, Field(gt=1)] = 128  # tokens that are seen together, before anything is left out


class ClassifyOptions(Section):
    """Texts with a label each: the label from the text, or from a pair of texts."""

    kind: Literal["classify"] = "classify"


class ClassifyImagesOptions(Section):
    """Images with a label each: the label from the image."""

    kind: Literal["classify-images"] = "classify-images"


class ParseOptions(Section):
    """Trees: the brackets of a sentence from its words."""

    kind: Literal["parse"] = "parse"
    chains: Annotated[int, Field(ge=1, le=50)] = 4  # constituents that may each be all that is in the one around it
    numbers: Annotated[int, Field(ge=0, le=50)] = 0  # of words, in sentence and tree; then from 1 again. 0: XX for all


TaskOptions = Annotated[
    TranslateOptions
    | LanguageModelOptions
    | MaskedOptions
    | DenoiseOptions
    | ClassifyOptions
    | ClassifyImagesOptions
    | ParseOptions,
    Field(discriminator="kind"),
]


class LossOptions(Section):
    smoothing: Probability = 0.1  # ε: how much of each target is spread over all words
    rdrop: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0  # α of Liang et al. 2021, who use 5; 0: one pass
    source_word_dropout: Probability = 0.0  # of source tokens, seen as <unk>
    target_word_dropout: Probability = 0.0  # of the target tokens that the decoder is shown, not of those it predicts
    # λ of Garg et al. 2019, who use 0.05: one head of cross-attention learns data.corpora[].alignment, or which word
    # of a tree comes next; 0: none does.
    guided: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0
    guided_layer: Annotated[int, Field(ge=1)] | None = None  # of the decoder, counted from 1; none: the last but one
    guided_head: Annotated[int, Field(ge=1)] = 1
    guided_step: Literal["reading", "writing"] = "reading"  # of a target token: where it goes in, or where it comes out
