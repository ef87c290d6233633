"""A model of the transformers library and ours with its weights, side by side: what the tests of translators share."""

import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from regard.decoding.greedy import greedy_search
from regard.models.interface import SequenceToSequence
from regard.published.layout import Layout, to_ours
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import TransformerOptions
from regard.text.special import BOS, EOS, PAD
from regard.training.tensors import fill, weights


@dataclass(frozen=True)
class Twins:
    theirs: Any
    ours: SequenceToSequence
    options: TransformerOptions
    order: tuple[int, ...]
    layout: Layout

    def our_ids(self, ids: Tensor) -> Tensor:
        """Their ids as ours."""
        return torch.tensor([self.order.index(id) for id in range(len(self.order) - 1)])[ids]


def config_of(theirs: Any) -> dict[str, Any]:
    """The config as its file has it."""
    return json.loads(theirs.config.to_json_string())


def twins(family: ModuleType, theirs: Any) -> Twins:
    config = config_of(theirs)
    stored = theirs.state_dict()
    options, order = family.options(config, stored), family.order(config)
    ours = build_transformer(options, len(order), len(order), shared=True).eval()
    layout = family.layout(options, order, family.held(config, stored))
    found = to_ours(layout, stored, "checkpoint", family.IGNORED, like=weights(ours))
    fill(weights(ours), found, Path("checkpoint"))
    return Twins(theirs, ours, options, order, layout)


def stored(theirs: Any) -> dict[str, Tensor]:
    """Their tensors without sinusoids, which are computed."""
    return {name: tensor for name, tensor in theirs.state_dict().items() if "embed_positions" not in name}


def returned(both: Twins, back: dict[str, Tensor]) -> Any:
    """A fresh model of theirs that has these weights."""
    fresh = type(both.theirs)(both.theirs.config).eval()
    if not both.options.tie_output and "lm_head.weight" in back:
        fresh.lm_head.weight = torch.nn.Parameter(torch.zeros_like(fresh.lm_head.weight))
    sinusoids = {name: tensor for name, tensor in fresh.state_dict().items() if "embed_positions" in name}
    fresh.load_state_dict(back | sinusoids, strict=True)
    return fresh


@torch.no_grad()
def roughen(model: torch.nn.Module) -> None:
    """Weights large enough that everything has an effect; last norms that favour no word; sinusoids stay."""
    generator = torch.Generator().manual_seed(0)
    for name, weight in (*model.named_parameters(), *model.named_buffers()):
        if "embed_positions" not in name:
            size = 0.1 if "final_layer_norm" in name else 0.3
            weight.add_(size * torch.randn(weight.shape, generator=generator))


def sources(lengths: tuple[int, ...], vocab: int, eos: int, pad: int) -> tuple[Tensor, Tensor]:
    """Their ids, each row closed by their end token, side by side, and which of them are real."""
    generator, width = torch.Generator().manual_seed(7), max(lengths) + 1
    mask = torch.arange(width) <= torch.tensor(lengths)[:, None]
    tokens = torch.randint(2, vocab, mask.shape, generator=generator)
    tokens[torch.arange(len(lengths)), torch.tensor(lengths)] = eos
    return tokens.masked_fill(~mask, pad), mask


@torch.no_grad()
def logits(both: Twins, tokens: Tensor, mask: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Theirs, ours in their order, and ours of ids that they do not have."""
    theirs = both.theirs(input_ids=tokens, attention_mask=mask.long(), decoder_input_ids=targets).logits
    padded = both.our_ids(tokens).masked_fill(~mask, PAD)
    ours = both.ours(padded, mask, both.our_ids(targets))
    return theirs, ours[..., both.our_ids(torch.arange(theirs.shape[-1]))], ours[..., PAD]


@torch.no_grad()
def generations(both: Twins, model: SequenceToSequence, tokens: Tensor, mask: Tensor, limit: int) -> tuple[Any, Any]:
    """What each writes greedily, in our ids, up to the end token."""
    # Their cache has room for as many layers as the encoder has.
    plain = {"do_sample": False, "num_beams": 1, "max_new_tokens": limit, "use_cache": False}
    rows = both.theirs.generate(input_ids=tokens, attention_mask=mask.long(), **plain)[:, 1:]
    theirs = [row[: row.index(EOS) + 1] if EOS in row else row for row in both.our_ids(rows).tolist()]
    memory = model.encode(both.our_ids(tokens).masked_fill(~mask, PAD), mask)
    limits = torch.full((len(tokens),), limit)
    return theirs, greedy_search(model.decoder, memory, max_lengths=limits, bos=BOS, eos=EOS)
