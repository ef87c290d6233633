"""Models of ours with the sizes that a published config gives, and their vocabulary in our order."""

import json
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from regard.layers.attention import SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.embedding import TiedOutput, TokenEmbedding
from regard.layers.feedforward import FeedForward
from regard.layers.kernels import Full
from regard.layers.norm import LayerNorm
from regard.layers.patches import GridPositions, PatchEmbedding
from regard.layers.positions import Added, Learned
from regard.layers.relations import Unrelated
from regard.layers.residual import PostNorm, PreNorm
from regard.models.bert import BertEncoder, MaskedHead, MaskedLanguageModel, Pooler, SegmentedEntrance, TextClassifier
from regard.models.gpt import Gpt, Nothing
from regard.models.interface import SequenceToSequence
from regard.models.transformer import EncoderLayer, Entrance
from regard.models.vit import ImageClassifier, ImageEntrance, VitEncoder

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu-tanh": partial(F.gelu, approximate="tanh"), "silu": F.silu}


def stack(sizes, around, *, causal: bool) -> list[EncoderLayer]:
    def layer():
        kernel = Full(causal, sizes.attention_dropout)
        return EncoderLayer(
            SelfAttention(sizes.width, sizes.heads, sizes.width // sizes.heads, kernel),
            FeedForward(sizes.width, sizes.feedforward, ACTIVATIONS[sizes.activation]),
            *(around(LayerNorm(sizes.width, sizes.epsilon), Dropout(sizes.dropout)) for _ in range(2)),
        )

    return [layer() for _ in range(sizes.layers)]


def gpt(sizes, vocab: int) -> SequenceToSequence:
    embedding = TokenEmbedding(vocab, sizes.width, 1.0)
    entrance = Entrance(embedding, Added(Learned(sizes.max_length, sizes.width)), Dropout(sizes.embedding_dropout))
    output = TiedOutput(embedding, bias=True) if sizes.tied else nn.Linear(sizes.width, vocab)
    norm = LayerNorm(sizes.width, sizes.epsilon)
    decoder = Gpt(entrance, Unrelated(), stack(sizes, PreNorm, causal=True), norm, output)
    return SequenceToSequence(Nothing(), decoder).eval()


def bert_encoder(sizes, vocab: int) -> BertEncoder:
    entrance = SegmentedEntrance(
        TokenEmbedding(vocab, sizes.width, 1.0),
        Added(Learned(sizes.max_length, sizes.width)),
        nn.Embedding(sizes.segments, sizes.width),
        LayerNorm(sizes.width, sizes.epsilon),
        Dropout(sizes.dropout),
    )
    return BertEncoder(entrance, Unrelated(), stack(sizes, PostNorm, causal=False), nn.Identity())


def masked(sizes, vocab: int) -> MaskedLanguageModel:
    encoder = bert_encoder(sizes, vocab)
    output = TiedOutput(encoder.entrance.embedding, bias=True) if sizes.tied else nn.Linear(sizes.width, vocab)
    norm = LayerNorm(sizes.width, sizes.epsilon)
    return MaskedLanguageModel(encoder, MaskedHead(sizes.width, ACTIVATIONS[sizes.activation], norm, output)).eval()


def text_classifier(sizes, vocab: int) -> TextClassifier:
    return TextClassifier(
        bert_encoder(sizes, vocab),
        Pooler(sizes.width, sizes.width),
        Dropout(sizes.classifier_dropout),
        nn.Linear(sizes.width, len(sizes.labels)),
    ).eval()


def pooled_text(sizes, vocab: int) -> nn.ModuleDict:
    return nn.ModuleDict({"encoder": bert_encoder(sizes, vocab), "pooler": Pooler(sizes.width, sizes.width)}).eval()


def vit_encoder(sizes) -> VitEncoder:
    entrance = ImageEntrance(
        PatchEmbedding(sizes.channels, sizes.patch, sizes.width),
        GridPositions(sizes.grid, sizes.width),
        Dropout(sizes.dropout),
    )
    return VitEncoder(entrance, stack(sizes, PreNorm, causal=False), LayerNorm(sizes.width, sizes.epsilon))


def image_classifier(sizes) -> ImageClassifier:
    return ImageClassifier(vit_encoder(sizes), nn.Linear(sizes.width, len(sizes.labels))).eval()


# ---------------------------------------------------------------- theirs
@torch.no_grad()
def scrambled(model: nn.Module) -> nn.Module:
    """The same model where no bias is 0 and no gain 1: there many mistakes do not show."""
    torch.manual_seed(5)
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def as_read(config) -> dict:
    """The config as it is on disk."""
    return json.loads(config.to_json_string())


def ordered(vocab: int, first: list[int], last: list[int] = ()) -> tuple[int, ...]:
    """`first`, which may hold −1 for fillers, then all other ids, then `last`."""
    return (*first, *(id for id in range(vocab) if id not in (*first, *last)), *last)


def in_ours(tokens: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """Their ids as ours."""
    back = torch.full((max(order) + 1,), -1)
    for ours, theirs in enumerate(order):
        if theirs >= 0:
            back[theirs] = ours
    return back[tokens]


def real(order: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Our ids that stand for theirs, and those."""
    pairs = [(ours, theirs) for ours, theirs in enumerate(order) if theirs >= 0]
    return tuple(torch.tensor(ids) for ids in zip(*pairs, strict=True))


def load(model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Every tensor has a place, and every parameter gets one: a tied weight under its first name."""
    found = model.load_state_dict(tensors, strict=False)
    tied = {id(p) for name, p in model.state_dict(keep_vars=True).items() if name in tensors}
    missing = [name for name in found.missing_keys if id(model.state_dict(keep_vars=True)[name]) not in tied]
    assert (missing, found.unexpected_keys) == ([], [])
