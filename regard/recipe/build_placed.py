"""From options to the parts of a stack that reads tokens: embedding, positions, output layer."""

from torch import nn

from regard.errors import RecipeError
from regard.layers.dropout import Dropout
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.layers.initialise import xavier
from regard.layers.positions import (
    Added,
    Concatenated,
    Learned,
    Sinusoid,
    Unplaced,
    Waves,
    sinusoids,
    sinusoids_in_halves,
)
from regard.layers.relations import Alibi, Relation, RelativeBias, Rotary, Unrelated
from regard.models.interface import OutputLayer
from regard.models.transformer import Entrance
from regard.recipe.build_stack import refuse_heads, refuse_linear
from regard.recipe.models import PlacedOptions

SINUSOIDS: dict[str, Waves] = {"sinusoid": sinusoids, "sinusoid-halves": sinusoids_in_halves}
TABLES = (*SINUSOIDS, "learned")  # positions that join the input; the others act inside attention


class PlacedParts:
    """Each choice of the options as a finished part."""

    def __init__(self, options: PlacedOptions) -> None:
        self.options = options
        self.head_width = options.head_width or options.width // options.heads
        self.position_width = position_width(options)

    def embedding(self, vocab: int) -> TokenEmbedding:
        width = self.options.width - self.position_width
        return TokenEmbedding(vocab, width, width**0.5 if self.options.scale_embedding else 1.0)

    def entrance(self, embedding: TokenEmbedding) -> Entrance:
        return Entrance(embedding, self.positions(), Dropout(self.options.dropout))

    def positions(self) -> nn.Module:
        o = self.options
        if o.positions not in TABLES:
            return Unplaced()
        width = self.position_width or o.width
        if o.positions == "learned":
            table: Learned | Sinusoid = Learned(o.max_length, width)
        else:
            table = Sinusoid(o.max_length, width, o.position_base, SINUSOIDS[o.positions])
        return Concatenated(table) if self.position_width else Added(table)

    def relation(self, causal: bool) -> Relation:
        o = self.options
        match o.positions:
            case "relative":
                return RelativeBias(o.heads, causal, o.position_buckets, o.position_farthest)
            case "rotary":
                return Rotary(o.max_length, self.head_width, o.position_base)
            case "alibi":
                return Alibi(o.heads)
            case _:
                return Unrelated()

    def output(self, target: TokenEmbedding) -> OutputLayer:
        o, vocab = self.options, target.table.num_embeddings
        bias = not o.tie_output if o.output_bias is None else bool(o.output_bias)
        output: OutputLayer = TiedOutput(target, bias) if o.tie_output else xavier(nn.Linear(o.width, vocab, bias))
        if o.output_bias == "silent" and output.bias is not None:
            output.bias.requires_grad_(False)
        return output


def position_width(options: PlacedOptions) -> int:
    """Width of what is concatenated to the embedding; 0 where nothing is."""
    if options.positions not in TABLES or options.position_join == "add":
        return 0
    return options.position_width or options.width // 4


def refuse_unplaceable(options: PlacedOptions) -> None:
    """Say which sizes and choices do not go together, before a layer trips over them."""
    refuse_heads(options)
    refuse_linear(options)
    refuse_positions(options)
    refuse_concatenation(options)


def refuse_positions(options: PlacedOptions) -> None:
    width = options.width
    if options.positions == "rotary" and (head_width := options.head_width or width // options.heads) % 2:
        raise RecipeError(
            f"model.head_width: {head_width} is odd, but rotary positions turn pairs of numbers; use an even one"
        )
    if options.positions in SINUSOIDS and options.position_join == "add" and width % 2:
        raise RecipeError(f"model.width: {width} is odd, but sinusoids come in pairs; use an even one")
    if options.positions == "relative" and options.position_farthest <= options.position_buckets // 2:
        raise RecipeError(
            f"model.position_farthest: {options.position_farthest} is not beyond the {options.position_buckets // 2} "
            f"distances that half of model.position_buckets {options.position_buckets} hold one by one; raise it"
        )
    if options.attention == "linear" and options.positions not in (*TABLES, "none"):
        raise RecipeError(
            f"model.positions: {options.positions} acts on pairs of tokens, which model.attention linear never "
            "forms; use sinusoid, learned or none"
        )


def refuse_concatenation(options: PlacedOptions) -> None:
    if options.positions not in TABLES or options.position_join == "add":
        return
    place = position_width(options)
    if not 0 < place < options.width:
        raise RecipeError(
            f"model.position_width: {place} leaves {options.width - place} of model.width {options.width} "
            f"for the token; use 1 to {options.width - 1}"
        )
    if options.positions in SINUSOIDS and place % 2:
        raise RecipeError(f"model.position_width: {place} is odd, but sinusoids come in pairs; use an even one")
    if options.tie_output:
        raise RecipeError(
            f"model.tie_output: an output layer of width {options.width} cannot be an embedding of width "
            f"{options.width - place} beside concatenated positions; set model.tie_output false"
        )
