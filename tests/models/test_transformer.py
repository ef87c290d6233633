"""The Transformer against torch's own, and its laws under every choice of the recipe."""

import pytest
import torch
from torch import nn

from regard.models.interface import parameters
from regard.recipe.build_transformer import build_transformer
from regard.recipe.models import TransformerOptions

SMALL = {"width": 8, "heads": 2, "feedforward": 12, "encoder_layers": 2, "decoder_layers": 3, "dropout": 0.0}
SOURCE, TARGET = 11, 13  # vocabularies

POSITIONS = {
    "sinusoid": {},
    "learned": {"positions": "learned", "max_length": 16},
    "concatenated": {"position_join": "concatenate", "tie_output": False},
    "relative": {"positions": "relative"},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
}
VARIANTS = POSITIONS | {
    "none": {"positions": "none"},
    "post": {"order": "post"},
    "rms": {"norm": "rms", "activation": "swiglu"},
    "outside": {"norm": "layer-outside", "activation": "gelu"},
    "window": {"attention": "window", "window": 2},
    "window-alibi": {"attention": "window", "window": 2, "positions": "alibi"},
    "linear": {"attention": "linear"},
    "narrow-heads": {"head_width": 3, "heads": 3, "scale_embedding": False},
}


def build(shared=False, **changes):
    torch.manual_seed(12)
    options = TransformerOptions(**(SMALL | changes))
    model = build_transformer(options, SOURCE, SOURCE if shared else TARGET, shared=shared).double()
    for p in model.parameters():  # biases and norms start at 0 and 1, where many mistakes do not show
        nn.init.normal_(p, std=0.4)
    return model


@pytest.fixture
def batch():
    torch.manual_seed(13)
    source, target = torch.randint(4, SOURCE, (2, 6)), torch.randint(4, TARGET, (2, 7))
    return source, torch.tensor([[True] * 6, [True] * 4 + [False] * 2]), target


# ---------------------------------------------------------------- torch.nn.Transformer
def copy_attention(packed, output, theirs):
    weight, bias = packed
    theirs.in_proj_weight.copy_(weight)
    theirs.in_proj_bias.copy_(bias)
    theirs.out_proj.load_state_dict(output.state_dict())


def copy_norm(ours, theirs):
    theirs.weight.copy_(ours.gain)
    theirs.bias.copy_(ours.shift)


def copy_layer(ours, theirs):
    copy_attention((ours.attention.packed.weight, ours.attention.packed.bias), ours.attention.output, theirs.self_attn)
    around = [ours.around_attention]
    if hasattr(ours, "cross"):
        cross = ours.cross
        packed = [torch.cat([getattr(cross.query, x), getattr(cross.packed, x)]) for x in ("weight", "bias")]
        copy_attention(packed, cross.output, theirs.multihead_attn)
        around.append(ours.around_cross)
    for i, place in enumerate([*around, ours.around_feedforward]):
        copy_norm(place.norm, getattr(theirs, f"norm{i + 1}"))
    theirs.linear1.load_state_dict(ours.feedforward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.outer.state_dict())


def torch_transformer(model, order, dtype):
    """torch's module with our weights; a stack of post-norm layers has no norm at its end."""
    sizes = {"dropout": 0.0, "batch_first": True, "norm_first": order == "pre", "dtype": dtype}
    ends = [nn.LayerNorm(8, dtype=dtype) if order == "pre" else None for _ in range(2)]
    encoder_layer, decoder_layer = (
        kind(8, 2, 12, **sizes) for kind in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    )
    encoder = nn.TransformerEncoder(encoder_layer, 2, ends[0], enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(decoder_layer, 3, ends[1])
    # Weights are copied last: nn.Transformer draws those of its parts anew.
    theirs = nn.Transformer(8, 2, custom_encoder=encoder, custom_decoder=decoder, batch_first=True)
    with torch.no_grad():
        for ours, stack in ((model.encoder, encoder), (model.decoder, decoder)):
            for mine, layer in zip(ours.layers, stack.layers, strict=True):
                copy_layer(mine, layer)
            if order == "pre":
                copy_norm(ours.norm, stack.norm)
    return theirs


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_the_transformer_is_that_of_torch_on_the_same_weights(order, dtype, tolerance, batch):
    model = build(order=order).to(dtype)
    theirs = torch_transformer(model, order, dtype)
    source, mask, target = batch
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    expected = theirs(
        model.encoder.entrance(source, 0),
        model.decoder.entrance(target, 0),
        tgt_mask=future,
        src_key_padding_mask=~mask,
        memory_key_padding_mask=~mask,
    )
    features, _ = model.decoder.features(target, model.decoder.begin(model.encode(source, mask)))
    torch.testing.assert_close(features, expected, atol=tolerance, rtol=tolerance)
    assert expected.std() > 0.1  # the comparison is not one of zeros


# ---------------------------------------------------------------- laws
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("pieces", [(1,) * 7, (4, 3)])
def test_decoding_in_pieces_gives_what_teacher_forcing_gives(name, pieces, batch):
    model, (source, mask, target) = build(**VARIANTS[name]), batch
    whole = model(source, mask, target)
    state, parts = model.decoder.begin(model.encode(source, mask)), []
    for part in target.split(pieces, 1):
        logits, state = model.decoder(part, state)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole)


@pytest.mark.parametrize("name", VARIANTS)
def test_padding_of_the_source_is_invisible(name, batch):
    model, (source, mask, target) = build(**VARIANTS[name]), batch
    alone = model(source[1:, :4], mask[1:, :4], target[1:])
    torch.testing.assert_close(model(source, mask, target)[1:], alone)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_future_and_the_padding_of_the_target_are_invisible(name, batch):
    model, (source, mask, target) = build(**VARIANTS[name]), batch
    changed = target.clone()
    changed[:, 4:] = 0
    torch.testing.assert_close(model(source, mask, changed)[:, :4], model(source, mask, target)[:, :4])
    assert not torch.allclose(model(source, mask, changed)[:, 4], model(source, mask, target)[:, 4])


@pytest.mark.parametrize("name", VARIANTS)
def test_selected_rows_go_on_as_they_would_have_alone(name, batch):
    model, (source, mask, target) = build(**VARIANTS[name]), batch
    rows = torch.tensor([1, 1, 0])
    _, state = model.decoder(target[:, :4], model.decoder.begin(model.encode(source, mask)))
    chosen, _ = model.decoder(target[rows, 4:], state.select(rows))
    torch.testing.assert_close(chosen, model(source, mask, target)[rows, 4:])


def test_reordering_hypotheses_of_one_sentence_leaves_the_memory_where_it_is(batch):
    model, (source, mask, target) = build(), batch
    _, state = model.decoder(target[:, :2], model.decoder.begin(model.encode(source, mask)))
    beams = state.select(torch.tensor([0, 0, 1, 1]))
    swapped = beams.select(torch.tensor([1, 0, 2, 2]))
    assert swapped.memory is beams.memory
    moved = beams.select(torch.tensor([2, 0]))
    assert torch.equal(moved.memory[0].keys, state.memory[0].keys[[1, 0]])
    assert torch.equal(moved.mask, state.mask[[1, 0]])


@pytest.mark.parametrize("attention", ["full", "linear"])
def test_without_positions_permuting_the_source_permutes_the_memory(attention):
    model = build(positions="none", attention=attention)
    source, order = torch.randint(4, SOURCE, (2, 6)), torch.tensor([3, 5, 0, 2, 1, 4])
    mask = torch.ones(2, 6, dtype=torch.bool)
    memory = model.encode(source, mask).values
    torch.testing.assert_close(model.encode(source[:, order], mask).values, memory[:, order])


@pytest.mark.parametrize("name", POSITIONS)
def test_with_positions_it_does_not(name):
    model = build(**POSITIONS[name])
    source, order = torch.arange(4, 10)[None], torch.tensor([3, 5, 0, 2, 1, 4])
    mask = torch.ones(1, 6, dtype=torch.bool)
    memory = model.encode(source, mask).values
    assert not torch.allclose(model.encode(source[:, order], mask).values, memory[:, order], atol=1e-3)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_parameter_receives_a_gradient(name, batch):
    model, (source, mask, target) = build(**VARIANTS[name]), batch
    model(source, mask, target).logsumexp(-1).sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []


def test_dropout_acts_in_training_only(batch):
    model, (source, mask, target) = build(dropout=0.3), batch
    assert not torch.allclose(model(source, mask, target), model(source, mask, target))
    model.eval()
    assert torch.equal(model(source, mask, target), model(source, mask, target))


@pytest.mark.parametrize("name", ["sinusoid", "alibi", "window", "linear"])
def test_a_hook_on_a_kernel_sees_the_weights_of_that_very_call(name, batch):
    model, (source, mask, target) = build(**VARIANTS[name]), batch
    differences = {}

    def watch(path):
        def hook(module, inputs, output):
            weights = module.weights(*inputs)
            differences[path] = (weights @ inputs[1].values - output).abs().max().item()

        return hook

    for path, module in model.named_modules():
        if callable(getattr(module, "weights", None)):
            module.register_forward_hook(watch(path))
    model(source, mask, target)
    expected = {f"encoder.layers.{i}.attention.kernel" for i in range(2)}
    expected |= {f"decoder.layers.{i}.{part}.kernel" for i in range(3) for part in ("attention", "cross")}
    assert set(differences) == expected
    assert max(differences.values()) < 1e-10


# ---------------------------------------------------------------- sizes
def count(width, inner, layers, vocab):
    """Weights and biases by hand: a tied embedding, then per layer attention, feed-forward and norms."""
    attention = 4 * (width * width + width)
    feedforward = width * inner + inner + inner * width + width
    norm = 2 * width
    encoder = attention + feedforward + 2 * norm
    decoder = 2 * attention + feedforward + 3 * norm
    return vocab * width + layers * (encoder + decoder)


@pytest.mark.parametrize(
    ("width", "inner", "heads", "published", "tolerance"),
    [(512, 2048, 8, 65e6, 2e6), (1024, 4096, 16, 213e6, 3e6)],
    ids=["base", "big"],
)
def test_base_and_big_have_the_published_sizes(width, inner, heads, published, tolerance):
    options = TransformerOptions(
        width=width, heads=heads, feedforward=inner, encoder_layers=6, decoder_layers=6, order="post"
    )
    with torch.device("meta"):
        model = build_transformer(options, 37_000, 37_000, shared=True)
    assert parameters(model) == count(width, inner, 6, 37_000)
    assert abs(parameters(model) - published) < tolerance


def test_embeddings_are_shared_and_tied_only_as_the_recipe_says():
    one, two, apart = build(shared=True), build(), build(shared=True, share_embeddings=False)
    assert one.encoder.entrance.embedding is one.decoder.entrance.embedding
    assert two.encoder.entrance.embedding is not two.decoder.entrance.embedding
    assert apart.encoder.entrance.embedding is not apart.decoder.entrance.embedding
    assert one.decoder.output.table.weight is one.encoder.entrance.embedding.table.weight
    untied = build(tie_output=False)
    assert parameters(untied) == parameters(two) + TARGET * 8 + TARGET
