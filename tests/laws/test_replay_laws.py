"""Replayed weights are those of the plain equation on the same tensors: every family, every layer and head."""

import math

import pytest
import torch
from families import MODELS, SOURCELESS, build, pad
from torch import nn

from regard.data.image_lexicon import ImageLexicon
from regard.data.pixels import Normalisation
from regard.explaining.record import record, replay, watch
from regard.layers.attention import CrossAttention, SelfAttention
from regard.layers.kernels import Linear, Window
from regard.layers.scores import Additive, Attention, CoveredAttention, Dot, General, Projected, ScaledDot
from regard.models.convs2s import ConvS2SDecoder
from regard.models.interface import Memory
from regard.recipe.build_bert import build_classifier, build_masked
from regard.recipe.build_vit import build_vit
from regard.recipe.models import BertOptions, VitOptions

SOURCE = torch.tensor([[4, 8, 5, 7, 6, 3]])
TARGET = torch.tensor([[2, 4, 6, 5]])
WITHOUT = {  # families that attend to nothing
    "the decks' bottleneck",
    "LSTM bottleneck, both ways",
    "ByteNet",
    "ByteNet, stretched, five taps, untied",
}


# ---------------------------------------------------------------- the equation, pair by pair
def normalised(scores, exp):
    """Scores of the visible pairs {(i, j): number} as rows that sum to 1."""
    size = 1 + max(i for i, _ in scores), 1 + max(j for _, j in scores)
    found = torch.zeros(size, dtype=torch.float64)
    for (i, j), score in scores.items():
        found[i, j] = exp(score) / sum(exp(other) for (row, _), other in scores.items() if row == i)
    return found


def turned(x, angles):
    """Pairs of numbers as complex ones, each turned by its angle."""
    pairs = torch.view_as_complex(x.reshape(-1, 2).contiguous())
    return torch.view_as_real(pairs * torch.complex(angles[1::2], angles[0::2])).flatten()


def visible(kernel, i, j):
    near = abs(i - j) <= kernel.size if isinstance(kernel, Window) else True
    return near and not (kernel.causal and j > i)


def of_self_attention(module, x, relative):
    """softmax(q·k/√e + b) over what the kernel shows, or φ(q)·φ(k) / Σ φ(q)·φ(k') for the linear one."""
    kernel, heads, t = module.kernel, module.heads, x.shape[1]
    x = x[0].double()
    packed = nn.functional.linear(
        x, *(None if p is None else p.double() for p in (module.packed.weight, module.packed.bias))
    )
    packed = packed.reshape(t, 3, heads, -1)
    found = []
    for head in range(heads):
        q, k = packed[:, 0, head], packed[:, 1, head]
        if relative.angles is not None:
            angles = relative.angles.double()
            q, k = (torch.stack([turned(row, angles[i]) for i, row in enumerate(part)]) for part in (q, k))
        pairs = [(i, j) for i in range(t) for j in range(t) if visible(kernel, i, j)]
        if isinstance(kernel, Linear):
            phi = [[1 + x if x > 0 else math.exp(x) for x in row] for row in (*q.tolist(), *k.tolist())]
            scores = {(i, j): sum(a * b for a, b in zip(phi[i], phi[t + j], strict=True)) for i, j in pairs}
            found.append(normalised(scores, float))
            continue
        scores = {(i, j): float(q[i] @ k[j]) / math.sqrt(q.shape[1]) for i, j in pairs}
        if relative.bias is not None:
            bias = relative.bias[head if module.places is None else module.places[head]]
            scores = {(i, j): score + float(bias[j - i + t - 1]) for (i, j), score in scores.items()}
        found.append(normalised(scores, math.exp))
    return torch.stack(found)


def of_cross_attention(module, x, memory):
    heads, t, s = module.heads, x.shape[1], memory.shape[1]
    q, k = (x[0] @ module.query.weight.T), (memory[0] @ module.packed.weight.T)
    q = q if module.query.bias is None else q + module.query.bias
    k = k if module.packed.bias is None else k + module.packed.bias
    q, k = q.double().reshape(t, heads, -1), k.double().reshape(s, 2, heads, -1)[:, 0]
    width = math.sqrt(q.shape[-1])
    return torch.stack(
        [
            normalised({(i, j): float(q[i, h] @ k[j, h]) / width for i in range(t) for j in range(s)}, math.exp)
            for h in range(heads)
        ]
    )


def scored(score, q, m, extra):
    """One number for one query and one source position; `extra` is added inside the tanh."""
    match score:
        case Dot():
            return q @ m
        case ScaledDot():
            return q @ m / math.sqrt(len(q))
        case General():
            return q @ (score.key.weight @ m)
        case Projected():
            return (score.query.weight @ q) @ (score.key.weight @ m)
        case Additive():
            inner = score.query.weight @ q + score.query.bias + score.key.weight @ m + extra
            return score.v @ torch.stack([torch.tensor(math.tanh(x), dtype=torch.float64) for x in inner.tolist()])


def of_source_attention(module, queries, memory):
    """One row after another; coverage adds up what the rows before have given."""
    past = torch.zeros(memory.shape[1], dtype=torch.float64)
    rows = []
    for q in queries[0]:
        w = module.w if isinstance(module, CoveredAttention) else torch.zeros(())
        scores = [float(scored(module.score, q, m, c * w)) for m, c in zip(memory[0], past, strict=True)]
        rows.append(normalised({(0, j): score for j, score in enumerate(scores)}, math.exp)[0])
        past = past + rows[-1]
    return torch.stack(rows)[None]


class Plain:
    """Within the block, what each attention module was given; afterwards the weights that follow from it."""

    def __init__(self, model):
        self.model, self.inputs, self.memory, self.handles = model, {}, None, []

    def __enter__(self):
        kinds = (SelfAttention, CrossAttention, Attention, CoveredAttention)
        for name, module in self.model.named_modules():
            if isinstance(module, kinds):
                self.inputs[name] = []
                self.handles.append(
                    module.register_forward_hook(lambda _, inputs, __, name=name: self.inputs[name].append(inputs))
                )
        self.handles.append(self.model.encoder.register_forward_hook(self.remember))
        return self

    def remember(self, _module, _inputs, output):
        self.memory = output.values if isinstance(output, Memory) else None  # BERT and ViT have none

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def weights(self):
        """By the name of the module that offers weights."""
        found = {}
        for name, calls in self.inputs.items():
            module = self.model.get_submodule(name)
            match module:
                case SelfAttention():
                    found[f"{name}.kernel"] = of_self_attention(module, calls[0][0], calls[0][3])
                case CrossAttention():
                    found[f"{name}.kernel"] = of_cross_attention(module, calls[0][0], self.memory)
                case _:
                    queries = torch.cat([call[0] for call in calls], 1)
                    convolutional = isinstance(self.model.decoder, ConvS2SDecoder)
                    keys = self.memory.chunk(2, -1)[0] if convolutional else self.memory
                    found[name] = of_source_attention(module, queries, keys)
        return found


def assert_plain(model, *inputs, atol=1e-9):
    """Every layer and head of the replay against the plain equation; how many maps there were."""
    with Plain(model) as plain, torch.no_grad():
        played = replay(model, *inputs)
        expected = plain.weights()
    assert [attention.name for attention in played.attentions] == list(expected)
    for attention in played.attentions:
        torch.testing.assert_close(attention.weights.double(), expected[attention.name], rtol=0.0, atol=atol)
    return len(expected)


# ---------------------------------------------------------------- laws
@pytest.fixture(params=MODELS, scope="module")
def family(request):
    return request.param


@pytest.fixture(scope="module")
def model(family):
    return build(family)


def test_replayed_weights_are_those_of_the_plain_equation(family, model):
    source = SOURCE[:, :0] if family in SOURCELESS else SOURCE
    maps = assert_plain(model, source, torch.ones_like(source, dtype=torch.bool), TARGET)
    assert (maps == 0) == (family in WITHOUT)


def test_rows_sum_to_one_and_no_decoder_map_has_weight_on_what_comes_later(family, model):
    source = SOURCE[:, :0] if family in SOURCELESS else SOURCE
    for attention in record(model, source, TARGET):
        torch.testing.assert_close(attention.weights.sum(-1), torch.ones_like(attention.weights[..., 0]))
        assert attention.kind != "decoder" or not attention.weights.triu(1).any()
        assert (attention.kind == "decoder") == (attention.weights.shape[1:] == (4, 4))
        assert attention.kind == "decoder" or family not in SOURCELESS


def test_padding_has_no_weight_at_all(family, model):
    tokens, mask = pad([[4, 8, 5, 7, 6, 3], [7, 5, 3]])
    with watch(model) as calls, torch.no_grad():
        model(tokens, mask, TARGET.repeat(2, 1))
    for name, found in calls.items():
        for weights in found:
            if not name.startswith("decoder") or weights.shape[-1] == 6:  # whose keys are the source's
                assert not weights[1, :, :, 3:].any()
                real = weights[:, :, : weights.shape[2] if name.startswith("decoder") else 3]
                torch.testing.assert_close(real.sum(-1), torch.ones_like(real[..., 0]))


@pytest.mark.parametrize("name", ["Transformer", "Transformer, rotary", "Transformer, ALiBi", "GPT"])
def test_in_single_precision_they_agree_to_a_millionth(name):
    """The compiled kernels compute what is between, the reference the weights."""
    source = SOURCE[:, :0] if name in SOURCELESS else SOURCE
    assert_plain(build(name).float(), source, torch.ones_like(source, dtype=torch.bool), TARGET, atol=1e-6)


# ---------------------------------------------------------------- models that only read
def stirred(model):
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.double().eval()


SIZES = {"width": 12, "heads": 3, "feedforward": 7, "layers": 2, "dropout": 0.0}
READERS = [
    {},
    {"order": "post"},
    {"positions": "rotary"},
    {"positions": "relative", "position_buckets": 6, "position_farthest": 5},
    {"positions": "alibi"},
    {"attention": "window", "window": 2},
    {"attention": "linear"},
]


@pytest.mark.parametrize("chosen", READERS, ids=str)
@pytest.mark.parametrize("task", ["masked", "classify"])
def test_encoders_of_texts_keep_the_law(chosen, task):
    options = BertOptions(**SIZES | {"max_length": 9} | chosen)
    model = stirred(build_masked(options, 11, 1) if task == "masked" else build_classifier(options, 11, 4, 1))
    tokens = torch.tensor([[2, 5, 8, 10, 6, 3, 7, 3]])
    segments = torch.tensor([[0, 0, 0, 0, 0, 0, 1, 1]])
    assert assert_plain(model, tokens, torch.ones_like(tokens, dtype=torch.bool), segments) == 2
    played = replay(model, tokens, torch.ones_like(tokens, dtype=torch.bool), segments)
    assert {attention.kind for attention in played.attentions} == {"encoder"}


@pytest.mark.parametrize("attention", ["full", "linear"])
def test_encoders_of_images_keep_the_law(attention):
    lexicon = ImageLexicon(
        size=(6, 9), channels=1, normalisation=Normalisation(mean=(0.0,), std=(1.0,)), labels=("a", "b")
    )
    model = stirred(build_vit(VitOptions(**SIZES, patch=3, attention=attention), lexicon, seed=4))
    image = torch.randn(1, 1, 6, 9, dtype=torch.float64)
    assert assert_plain(model, image) == 2
    played = replay(model, image)
    torch.testing.assert_close(played.output, model(image).detach())
    assert [one.weights.shape for one in played.attentions] == [(3, 7, 7)] * 2  # the class token and six patches
