"""The config.json of a model of ours as a published family would say it, or one line about what that cannot say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.data.image_lexicon import ImageLexicon
from regard.errors import RecipeError
from regard.published import t5
from regard.published.vocabulary import NONE, Order
from regard.recipe.models import BertOptions, GptOptions, PlacedOptions, StackOptions, TransformerOptions, VitOptions
from regard.recipe.recipe import Recipe
from regard.tasks.options import LanguageModelOptions
from regard.text.special import BOS, EOS, PAD, UNK

PLAIN = {"relu": "relu", "gelu": "gelu", "gelu-tanh": "gelu_new", "silu": "silu"}  # our activations → theirs
T5_ACTIVATIONS = {ours: theirs for theirs, ours in t5.ACTIVATIONS.items()}
TORCH_EPSILON = 1e-5  # of a layer norm that has no setting for it

Able = Mapping[str, tuple[Any, ...]]  # model key → the values that a family can have there

COMMON: Able = {"attention": ("full",)}
GPT2: Able = {
    "positions": ("learned",),
    "position_join": ("add",),
    "order": ("pre",),
    "norm": ("layer",),
    "activation": tuple(PLAIN),
    "bias": (True,),
    "scale_embedding": (False,),
}
BERT: Able = {
    "positions": ("learned",),
    "position_join": ("add",),
    "order": ("post",),
    "norm": ("layer",),
    "activation": tuple(PLAIN),
    "bias": (True,),
    "scale_embedding": (False,),
    "output_bias": (True,),
}
VIT: Able = {"order": ("pre",), "norm": ("layer",), "activation": tuple(PLAIN), "bias": (True,)}
T5: Able = {
    "positions": ("relative",),
    "position_join": ("add",),
    "experts": (None,),
    "order": ("pre",),
    "norm": ("rms",),
    "activation": tuple(T5_ACTIVATIONS),
    "bias": (False,),
    "scale_embedding": (False,),
    "share_embeddings": (True,),
}
MARIAN: Able = {
    "positions": ("sinusoid-halves",),
    "position_join": ("add",),
    "experts": (None,),
    "order": ("post",),
    "norm": ("layer",),
    "norm_epsilon": (TORCH_EPSILON,),
    "position_base": (10_000.0,),
    "activation": tuple(PLAIN),
    "bias": (True,),
}


@dataclass(frozen=True)
class Ids:
    """Their ids of what is special."""

    pad: int
    start: int
    end: int
    never: tuple[int, ...]  # that no output may hold


def ids_of(order: Order) -> Ids:
    """A family that has no id of its own for padding pads with what starts a text."""
    pad = order[BOS] if order[PAD] == NONE else order[PAD]
    return Ids(pad, order[BOS], order[EOS], tuple(order[id] for id in (PAD, UNK, BOS) if order[id] != NONE))


# ---------------------------------------------------------------- what cannot be said
def refuse_gpt2(options: GptOptions) -> None:
    refuse("GPT-2", options, GPT2)
    refuse_head_width("GPT-2", options)
    refuse_bias("GPT-2", options)


def refuse_bert(options: BertOptions) -> None:
    refuse("BERT", options, BERT)
    refuse_head_width("BERT", options)


def refuse_vit(options: VitOptions) -> None:
    refuse("ViT", options, VIT)
    refuse_head_width("ViT", options)


def refuse_t5(options: TransformerOptions) -> None:
    refuse("T5", options, T5)
    refuse_bias("T5", options)


def refuse_marian(options: TransformerOptions) -> None:
    refuse("Marian", options, MARIAN)
    refuse_head_width("Marian", options)


def refuse(family: str, options: StackOptions, able: Able) -> None:
    if options.kept_heads is not None:
        raise RecipeError(
            f"model.kept_heads: this model has lost heads, but {family}, the published family nearest to it, has all "
            "of them; export the model that it was pruned from"
        )
    for key, values in {**able, **COMMON}.items():
        found = getattr(options, key)
        if found not in values:
            raise refusal(family, key, shown(found), " or ".join(map(shown, values)))


def refuse_head_width(family: str, options: StackOptions) -> None:
    if options.head_width not in (None, options.width // options.heads):
        raise refusal(family, "head_width", shown(options.head_width), f"{options.width} / {options.heads}")


def refuse_bias(family: str, options: PlacedOptions) -> None:
    """A silent one need not be said: it only keeps out what they do not have."""
    if options.output_bias is True or (options.output_bias is None and not options.tie_output):
        raise refusal(family, "output_bias", "a trained one", "none (false)")


def refusal(family: str, key: str, found: str, expected: str) -> RecipeError:
    elsewhere = "" if family in ("BERT", "ViT") else "export to ctranslate2, or "
    return RecipeError(
        f"model.{key}: found {found}, but {family}, the published family nearest to this model, has {expected}; "
        f"{elsewhere}train such a model"
    )


def shown(value: object) -> str:
    """As YAML has it, but for null."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- configs
def gpt2_config(recipe: Recipe, order: Order) -> dict[str, Any]:
    options, task = recipe.model, recipe.task
    assert isinstance(options, GptOptions)
    assert isinstance(task, LanguageModelOptions)
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": size(order),
        "n_embd": options.width,
        "n_head": options.heads,
        "n_layer": options.layers,
        "n_inner": options.feedforward,
        "n_positions": options.max_length,
        "activation_function": PLAIN[options.activation],
        "layer_norm_epsilon": options.norm_epsilon,
        "resid_pdrop": options.dropout,
        "embd_pdrop": options.dropout,
        "attn_pdrop": options.attention_dropout,
        "tie_word_embeddings": options.tie_output,
        "bos_token_id": order[task.start_id],
        "eos_token_id": order[EOS],
        "dtype": "float32",
    }


def bert_config(recipe: Recipe, order: Order, labels: Sequence[str]) -> dict[str, Any]:
    """`labels`: of a classifier; none: a model that names hidden tokens."""
    options = recipe.model
    assert isinstance(options, BertOptions)
    return {
        "architectures": ["BertForSequenceClassification" if labels else "BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": size(order),
        **stack_config(options, options.layers),
        "max_position_embeddings": options.max_length,
        "type_vocab_size": options.segments,
        "tie_word_embeddings": options.tie_output,
        "pad_token_id": order[PAD],
        **(class_config(labels) if labels else {}),
        "dtype": "float32",
    }


def vit_config(recipe: Recipe, lexicon: ImageLexicon) -> dict[str, Any]:
    """Theirs has no bias of queries, keys and values, or all three; ours always has them."""
    options, (rows, columns) = recipe.model, lexicon.size
    assert isinstance(options, VitOptions)
    return {
        "architectures": ["ViTForImageClassification"],
        "model_type": "vit",
        "image_size": rows if rows == columns else [rows, columns],
        "patch_size": options.patch,
        "num_channels": lexicon.channels,
        **stack_config(options, options.layers),
        "qkv_bias": True,
        **class_config(lexicon.labels),
        "dtype": "float32",
    }


def stack_config(options: StackOptions, layers: int) -> dict[str, Any]:
    """What BERT and ViT call alike."""
    return {
        "hidden_size": options.width,
        "num_attention_heads": options.heads,
        "num_hidden_layers": layers,
        "intermediate_size": options.feedforward,
        "hidden_act": PLAIN[options.activation],
        "layer_norm_eps": options.norm_epsilon,
        "hidden_dropout_prob": options.dropout,
        "attention_probs_dropout_prob": options.attention_dropout,
    }


def class_config(labels: Sequence[str]) -> dict[str, Any]:
    """The names of the classes, of which a text or an image has one."""
    return {
        "id2label": {str(number): name for number, name in enumerate(labels)},
        "label2id": {name: number for number, name in enumerate(labels)},
        "problem_type": "single_label_classification",
    }


def t5_config(recipe: Recipe, order: Order) -> dict[str, Any]:
    options, ids = recipe.model, ids_of(order)
    assert isinstance(options, TransformerOptions)
    return {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        "is_encoder_decoder": True,
        "vocab_size": size(order),
        "d_model": options.width,
        "d_kv": options.head_width or options.width // options.heads,
        "d_ff": options.feedforward,
        "num_heads": options.heads,
        "num_layers": options.encoder_layers,
        "num_decoder_layers": options.decoder_layers,
        "relative_attention_num_buckets": options.position_buckets,
        "relative_attention_max_distance": options.position_farthest,
        "feed_forward_proj": T5_ACTIVATIONS[options.activation],
        "layer_norm_epsilon": options.norm_epsilon,
        "dropout_rate": options.dropout,
        "tie_word_embeddings": options.tie_output,
        "scale_decoder_outputs": options.tie_output,
        **translator_ids(ids),
        "dtype": "float32",
    }


def marian_config(recipe: Recipe, order: Order) -> dict[str, Any]:
    options, ids = recipe.model, ids_of(order)
    assert isinstance(options, TransformerOptions)
    both = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (("attention_heads", options.heads), ("ffn_dim", options.feedforward))
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": size(order),
        "decoder_vocab_size": size(order),
        "d_model": options.width,
        "encoder_layers": options.encoder_layers,
        "decoder_layers": options.decoder_layers,
        **both,
        "activation_function": PLAIN[options.activation],
        "max_position_embeddings": options.max_length,
        "dropout": options.dropout,
        "attention_dropout": options.attention_dropout,
        "scale_embedding": options.scale_embedding,
        "share_encoder_decoder_embeddings": options.share_embeddings,
        "tie_word_embeddings": options.tie_output,
        "static_position_embeddings": True,
        **translator_ids(ids),
        "forced_eos_token_id": None,  # of theirs it would be id 0
        "dtype": "float32",
    }


def translator_ids(ids: Ids) -> dict[str, int]:
    return {"pad_token_id": ids.pad, "eos_token_id": ids.end, "decoder_start_token_id": ids.start}


def size(order: Order) -> int:
    return sum(id != NONE for id in order)


def search_config(recipe: Recipe, order: Order) -> dict[str, Any]:
    """generation_config.json: their search as ours, but that their longest output does not depend on the input."""
    if isinstance(recipe.task, LanguageModelOptions):
        return {"bos_token_id": order[recipe.task.start_id], "eos_token_id": order[EOS], "pad_token_id": order[EOS]}
    ids, search = ids_of(order), recipe.decoding
    return {
        **translator_ids(ids),
        "num_beams": search.beam,
        "length_penalty": search.length_penalty,
        "max_length": search.cap + 1,  # they count the token that starts a text
        "bad_words_ids": [[id] for id in sorted(set(ids.never))],
    }
