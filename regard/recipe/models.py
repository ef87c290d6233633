"""The model sections of a recipe: every size and choice of each family, with its default."""

from typing import Annotated, Literal

from pydantic import Field

from regard.explaining.explanation import Kind
from regard.section import Section

Positive = Annotated[int, Field(gt=0)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Epsilon = Annotated[float, Field(ge=0.0, lt=1.0)]
FEWEST_BUCKETS = 4  # two ways, near and far
Activation = Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu", "geglu", "geglu-tanh", "reglu"]


Layers = tuple[tuple[Positive, ...], ...]  # for each layer, lowest first, some of its heads, counted from 1


class KeptHeads(Section):
    """The heads that a pruned model still has; a kind of attention that is not said has all of them."""

    encoder: Layers = ()
    decoder: Layers = ()
    cross: Layers = ()


class StackOptions(Section):
    """What every stack of attention layers has, whichever family it belongs to."""

    kind: str  # each family says its own
    width: Positive = 256  # d_model
    heads: Positive = 4
    head_width: Positive | None = None  # d_k = d_v of one head; none: width / heads
    kept_heads: KeptHeads | None = None  # what `regard heads --prune` left; none: all
    feedforward: Positive = 1024
    dropout: Probability = 0.1
    attention_dropout: Probability = 0.0  # above 0 leaves the CPU's flash kernel
    norm: Literal["layer", "layer-outside", "rms"] = "layer"  # ε inside the root, ε outside it, no mean
    norm_epsilon: Epsilon = 1e-5
    order: Literal["pre", "post"] = "pre"
    activation: Activation = "relu"
    bias: bool = True  # of the linear layers of attention and feed-forward
    attention: Literal["full", "window", "linear"] = "full"  # self-attention; cross-attention is always full
    window: Positive = 64  # positions each side, for "window"

    @property
    def stacks(self) -> dict[Kind, int]:
        """Who looks at whom in this family, and in how many layers."""
        raise NotImplementedError

    def heads_of(self, kind: Kind) -> Layers:
        """The heads that each layer has."""
        kept: Layers = getattr(self.kept_heads, kind, ())
        return kept or (tuple(range(1, self.heads + 1)),) * self.stacks[kind]


Positions = Literal["sinusoid", "sinusoid-halves", "learned", "relative", "rotary", "alibi", "none"]


class PlacedOptions(StackOptions):
    """A stack over tokens, which must be told their order."""

    positions: Positions = "sinusoid"
    position_join: Literal["add", "concatenate"] = "add"  # for sinusoids and learned
    position_width: Positive | None = None  # when concatenated; none: width / 4
    position_base: Annotated[float, Field(gt=1.0)] = 10_000.0  # C of the sinusoids and of rotary
    position_buckets: Annotated[int, Field(ge=FEWEST_BUCKETS)] = 32  # of relative: distances that are told apart
    position_farthest: Positive = 128  # of relative: the distance from which all share the last bucket
    max_length: Positive = 1024  # rows of the position table
    scale_embedding: bool = True  # × √width
    tie_output: bool = True  # output layer = embedding of what is written
    # Of the output layer; none: it has one unless it is tied. Silent: one that is never trained, and only keeps out the
    # ids that a published vocabulary lacks.
    output_bias: bool | Literal["silent"] | None = None


class TransformerOptions(PlacedOptions):
    """Vaswani et al. 2017, and what came after it, one choice per line."""

    kind: Literal["transformer"] = "transformer"
    experts: Positive | None = None  # feed-forward networks in each layer; none: one, for all positions
    active: Annotated[int, Field(ge=2)] = 2  # experts of each position; the weight of one alone would teach no gate
    balance: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.01  # weight of the loss that spreads the load
    encoder_layers: Positive = 4
    decoder_layers: Positive = 4
    share_embeddings: bool = True  # source = target embedding, with a joint vocabulary

    @property
    def stacks(self) -> dict[Kind, int]:
        return {"encoder": self.encoder_layers, "decoder": self.decoder_layers, "cross": self.decoder_layers}


class GptOptions(PlacedOptions):
    """Radford et al. 2018, 2019: one stack that sees what came before, and nothing else."""

    kind: Literal["gpt"] = "gpt"
    activation: Activation = "gelu"
    positions: Positions = "learned"
    scale_embedding: bool = False  # × √width
    layers: Positive = 4

    @property
    def stacks(self) -> dict[Kind, int]:
        return {"decoder": self.layers}


class BertOptions(PlacedOptions):
    """Devlin et al. 2019: one stack that sees all of a text, under a head for hidden words or for classes."""

    kind: Literal["bert"] = "bert"
    activation: Activation = "gelu"
    positions: Positions = "learned"
    scale_embedding: bool = False  # × √width
    output_bias: bool | None = True  # of the layer that names a hidden token
    layers: Positive = 4
    segments: Positive = 2  # texts that are told apart: the first and the second of a pair

    @property
    def stacks(self) -> dict[Kind, int]:
        return {"encoder": self.layers}


class VitOptions(StackOptions):
    """Dosovitskiy et al. 2021: an image as a sequence of patches. Size and colours of images come with the data."""

    kind: Literal["vit"] = "vit"
    activation: Activation = "gelu"
    layers: Positive = 6
    patch: Positive = 16  # rows and columns of pixels of a patch; must divide those of the images

    @property
    def stacks(self) -> dict[Kind, int]:
        return {"encoder": self.layers}


class RecurrentOptions(Section):
    """The encoder–decoders of the lectures: plain, simple attention, parameterised, bidirectional; deep ones."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["tanh", "lstm", "gru"] = "gru"
    embedding: Positive = 256
    width: Positive = 256
    encoder_layers: Positive = 1
    decoder_layers: Positive = 1
    stack: Literal["plain", "residual", "fast-forward"] = "plain"  # how layers stand upon each other
    bidirectional: bool = True
    attention: Literal["none", "dot", "scaled-dot", "general", "additive", "parameterised"] = "additive"
    input_feeding: bool = True
    coverage: bool = False
    shared_cell: bool = False  # the deck's one W^h for encoder and decoder
    dropout: Probability = 0.2
    tie_output: bool = False
    share_embeddings: bool = True


class ByteNetOptions(Section):
    """Kalchbrenner et al. 2016: dilated convolutions, the decoder standing on the encoder."""

    kind: Literal["bytenet"] = "bytenet"
    width: Positive = 256  # of every vector between blocks; half of it inside them
    taps: Positive = 3  # positions that a convolution sees
    rates: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1, 2, 4, 8, 16)  # one block each, lowest first
    encoder_rounds: Positive = 2  # times that all rates are gone through
    decoder_rounds: Positive = 2
    stretch: Annotated[float, Field(ge=1.0, allow_inf_nan=False)] = 1.2  # columns of memory for each source token
    dropout: Probability = 0.1
    tie_output: bool = True
    share_embeddings: bool = True


class ConvS2SOptions(Section):
    """Gehring et al. 2017: gated convolutions, attention in every layer of the decoder."""

    kind: Literal["convs2s"] = "convs2s"
    width: Positive = 256  # of embeddings and of every vector between layers
    taps: Positive = 3  # positions that a convolution sees
    encoder_layers: Positive = 4
    decoder_layers: Positive = 4
    dropout: Probability = 0.1
    max_length: Positive = 1024  # learned positions
    tie_output: bool = True
    share_embeddings: bool = True


ModelOptions = Annotated[
    TransformerOptions | RecurrentOptions | ByteNetOptions | ConvS2SOptions | GptOptions | BertOptions | VitOptions,
    Field(discriminator="kind"),
]
