"""Sub-layers in one function are those of their modules, with all gradients."""

import pytest
import torch
import torch.nn.functional as F

from regard.layers.attention import CrossAttention, SelfAttention
from regard.layers.dropout import Dropout
from regard.layers.feedforward import FeedForward, gelu
from regard.layers.kernels import Full
from regard.layers.norm import LayerNorm
from regard.layers.positions import sinusoids
from regard.layers.relations import Relative
from regard.layers.residual import PostNorm, PreNorm
from regard.layers.sublayers import Reading, feed, look, pass_through, read
from regard.native.sublayer import SUITS

pytestmark = pytest.mark.skipif(not SUITS, reason="the modules are as fast on this processor, and used instead")

N, T, WIDTH, HEADS = 2, 5, 12, 3
MASK = torch.tensor([[True, True, False, True, True], [False] * 5])


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(4)
    yield
    torch.set_num_threads(threads)


def around(p=0.0, order=PreNorm):
    norm = LayerNorm(WIDTH)
    torch.nn.init.normal_(norm.gain)
    torch.nn.init.normal_(norm.shift)
    return order(norm, Dropout(p))


def attention(bias=True, causal=True):
    return SelfAttention(WIDTH, HEADS, 4, Full(causal), bias)


def noise(dtype=torch.float32):
    return torch.randn(N, T, WIDTH, generator=torch.Generator().manual_seed(5)).to(dtype).requires_grad_()


def results(modules, run, dtype):
    """What `run` gives for the same noise and the same random bytes, and the gradients of the noise and the weights."""
    for module in modules:
        module.to(dtype)
    z, inputs = noise(dtype), [p for module in modules for p in module.parameters()]
    torch.manual_seed(6)
    out = run(z)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(7)).to(dtype)
    return [out, *torch.autograd.grad(out, [z, *inputs], weight)], out.grad_fn


def assert_agrees(modules, run):
    """In float32 it is the one function, in float64 the modules, and they agree."""
    ours, node = results(modules, run, torch.float32)
    assert "Chain" in type(node).__name__
    theirs, other = results(modules, run, torch.float64)
    assert "Chain" not in type(other).__name__
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("activation", [gelu, F.relu])
def test_a_feed_forward_network_is_that_of_its_modules(bias, p, activation):
    outside, network = around(p), FeedForward(WIDTH, 20, activation, bias)
    assert_agrees([outside, network], lambda z: feed(z, (outside, network)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_is_that_of_its_modules(bias, p, rotary, mask, causal):
    outside, inside = around(p), attention(bias, causal)

    def run(z):
        relative = Relative(angles=sinusoids(T, 4).to(z.dtype) if rotary else None)
        return look(z, (outside, inside), inside.begin(z), mask, relative)[0]

    assert_agrees([outside, inside], run)


def test_what_goes_on_from_the_keys_and_values_finds_its_way_back():
    outside, inside = around(), attention()

    def run(z):
        relative = Relative(angles=sinusoids(2 * T, 4).to(z.dtype)[:T])
        y, seen = look(z, (outside, inside), inside.begin(z), None, relative)
        return y + inside(z, seen, None, relative)[0] + seen.values.transpose(1, 2).flatten(2)

    ours, theirs = results([outside, inside], run, torch.float32)[0], results([outside, inside], run, torch.float64)[0]
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-4)


def test_a_gradient_of_keys_alone_is_right():
    outside, inside = around(), attention()

    def run(z):
        inside.to(z.dtype)
        return look(z, (outside, inside), inside.begin(z), None, Relative())[1].keys

    ours, theirs = (results([outside, inside.packed], run, dtype)[0][:4] for dtype in (torch.float32, torch.float64))
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-5)


def test_weights_that_do_not_learn_get_no_gradient():
    outside, network = around(), FeedForward(WIDTH, 20, gelu)
    network.requires_grad_(False)
    feed(noise(), (outside, network)).sum().backward()
    assert all(p.grad is None for p in network.parameters())
    assert all(p.grad is not None for p in outside.parameters())


def test_who_watches_a_module_sees_it_work():
    inside, network, outside = attention(), FeedForward(WIDTH, 20, gelu), around()
    for module, run in (
        (inside.kernel, lambda z: look(z, (outside, inside), inside.begin(z), None, Relative())[0]),
        (network, lambda z: feed(z, (outside, network))),
        (outside.norm, lambda z: feed(z, (outside, network))),
    ):
        seen = []
        handle = module.register_forward_hook(lambda *_, seen=seen: seen.append(1))
        plain = run(noise())
        handle.remove()
        assert seen == [1]
        torch.testing.assert_close(run(noise()), plain)


def test_what_it_cannot_take_goes_through_the_modules():
    network, inside = FeedForward(WIDTH, 20, gelu), attention()
    for outside, f, z in (
        (around(order=PostNorm), network, noise()),
        (around(), FeedForward(WIDTH, 20, torch.relu), noise()),
        (around(), network, noise().detach()),
    ):
        assert "Chain" not in type(feed(z, (outside, f)).grad_fn).__name__
        torch.testing.assert_close(feed(z, (outside, f)), outside(z, f))
    past = inside.kernel.extend(inside.begin(noise()), *torch.randn(2, N, HEADS, 3, 4))
    y, seen = look(noise(), (around(), inside), past, None, Relative())
    assert "Chain" not in type(y.grad_fn).__name__
    assert seen.keys.shape[2] == T + 3


SOURCE = 7
HIDDEN = torch.tensor([[True] * 4 + [False] * 3, [False] * 7])


def memory(dtype=torch.float32):
    return torch.randn(N, SOURCE, WIDTH, generator=torch.Generator().manual_seed(8)).to(dtype).requires_grad_()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("mask", [None, HIDDEN])
def test_attention_to_a_memory_is_that_of_its_modules(bias, p, mask):
    outside, inside = around(p), CrossAttention(WIDTH, HEADS, 4, Full(False), bias)
    assert_agrees(
        [outside, inside], lambda z: read(z, Reading(outside, inside, inside.remember(memory(z.dtype)), mask))
    )


def test_the_memory_learns_from_all_layers_that_read_it():
    layers = [(around(0.4), attention(), CrossAttention(WIDTH, HEADS, 4, Full(False)), around(0.4)) for _ in range(2)]
    networks = [(around(0.4), FeedForward(WIDTH, 20, F.relu)) for _ in layers]
    found = []
    for dtype in (torch.float32, torch.float64):
        for module in (each for parts in (*layers, *networks) for each in parts):
            module.to(dtype)
        z, seen = noise(dtype), memory(dtype)
        torch.manual_seed(6)
        chain = [
            ((outside, inside), (Reading(other, cross, cross.remember(seen), HIDDEN),), network)
            for (outside, inside, cross, other), network in zip(layers, networks, strict=True)
        ]
        y, _ = pass_through(z, chain, [inside.begin(z) for _, inside, *_ in layers], None, Relative())
        assert ("Chain" in type(y.grad_fn).__name__) == (dtype == torch.float32)
        weights = [p for parts in (*layers, *networks) for each in parts for p in each.parameters()]
        given = torch.randn(y.shape, generator=torch.Generator().manual_seed(7)).to(dtype)
        found.append([y, *torch.autograd.grad(y, [z, seen, *weights], given)])
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-3, atol=1e-4)


def test_rows_that_share_a_memory_and_who_watches_go_through_the_modules():
    outside, inside = around(), CrossAttention(WIDTH, HEADS, 4, Full(False))
    one = Reading(outside, inside, inside.remember(memory()[:1]), None)
    assert "Chain" not in type(read(noise(), one).grad_fn).__name__
    own, seen = Reading(outside, inside, inside.remember(memory()), None), []
    handle = inside.kernel.register_forward_hook(lambda *_: seen.append(1))
    plain = read(noise(), own)
    handle.remove()
    assert seen == [1]
    torch.testing.assert_close(read(noise(), own), plain)


@pytest.mark.parametrize("p", [0.0, 0.4])
def test_a_chain_of_layers_is_one_layer_after_the_other(p):
    layers = [((around(p), attention()), (), (around(p), FeedForward(WIDTH, 20, gelu))) for _ in range(3)]
    modules = [module for layer in layers for half in layer for module in half]

    def run(z):
        pasts = [first[1].begin(z) for first, *_ in layers]
        relative = Relative(angles=sinusoids(T, 4).to(z.dtype))
        y, seen = pass_through(z, layers, pasts, None, relative)
        return torch.cat([y, *(each.values.transpose(1, 2).flatten(2) for each in seen)])

    ours, theirs = (results(modules, run, dtype)[0] for dtype in (torch.float32, torch.float64))
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-3, atol=1e-4)


def test_a_layer_that_somebody_watches_takes_the_whole_chain_apart():
    layers = [((around(), attention()), (), (around(), FeedForward(WIDTH, 20, gelu))) for _ in range(2)]
    seen = []
    layers[1][0][1].kernel.register_forward_hook(lambda *_: seen.append(1))
    z = noise()
    pass_through(z, layers, [first[1].begin(z) for first, *_ in layers], None, Relative())
    assert seen == [1]
