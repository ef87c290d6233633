"""A cache never changes: whatever is appended to it or selected from it is another cache, with the right entries."""

import random

import pytest
import torch

from regard.layers.cache import Cache, KeyValues, RunningSums

N, H, E, F = 3, 2, 4, 5


@pytest.fixture(autouse=True, scope="module")
def _unwritten_memory_is_nan():
    """Storage that is read before it is written must show, and not only when chance left a NaN there."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def entries(t, n=N, seed=0):
    """Keys and values of t tokens."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(n, H, t, width, dtype=torch.float64, generator=generator) for width in (E, F))


def nothing(n=N):
    return KeyValues(*entries(0, n))


def holds(cache, expected):
    """The cache has exactly these keys and values."""
    assert torch.equal(cache.keys, expected[0])
    assert torch.equal(cache.values, expected[1])


def joined(*parts):
    return tuple(torch.cat(side, 2) for side in zip(*parts, strict=True))


def at(expected, rows):
    return tuple(side[rows] for side in expected)


def appended(cache, *parts):
    for part in parts:
        cache = cache.append(*part)
    return cache


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("sizes", [[1] * 60, [3, 1, 4, 1, 5, 9, 2, 6], [1, 40, 1], [2, 20, 50, 3]], ids=str)
def test_appending_piece_by_piece_is_appending_at_once(sizes, grad):
    parts = [entries(t, seed=seed) for seed, t in enumerate(sizes)]
    with torch.set_grad_enabled(grad):
        holds(appended(nothing(), *parts), joined(*parts))


@torch.no_grad()
def test_appending_never_changes_an_earlier_cache():
    parts, cache, history = [entries(1, seed=seed) for seed in range(40)], nothing(), []
    for count, part in enumerate(parts, start=1):
        cache = cache.append(*part)
        history.append((cache, joined(*parts[:count])))
    for earlier, expected in history:
        holds(earlier, expected)


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 2, 17, 18, 19])
def test_two_branches_of_a_cache_do_not_see_each_other(length):
    parts = [entries(1, seed=seed) for seed in range(length)]
    trunk, left, right = appended(nothing(), *parts), entries(1, seed=100), entries(2, seed=101)
    one, other = trunk.append(*left), trunk.append(*right)
    further, aside = one.append(*right), other.append(*left)
    holds(trunk, joined(*parts))
    holds(one, joined(*parts, left))
    holds(other, joined(*parts, right))
    holds(further, joined(*parts, left, right))
    holds(aside, joined(*parts, right, left))


@torch.no_grad()
@pytest.mark.parametrize("rows", [[0, 0, 1, 1, 2, 2], [2, 0, 1], [1], [2, 2, 0], []], ids=str)
def test_selecting_rows_commutes_with_appending(rows):
    index, parts = torch.tensor(rows, dtype=torch.long), [entries(1, seed=seed) for seed in range(6)]
    for before in range(6):
        cache = appended(nothing(), *parts[:before])
        after = appended(cache.select(index), *(at(part, rows) for part in parts[before:]))
        holds(after, at(joined(*parts), rows))
        holds(cache, joined(entries(0), *parts[:before]))


@torch.no_grad()
@pytest.mark.parametrize("seed", range(4))
def test_any_chain_of_steps_leaves_every_cache_as_it_was(seed):
    """Append, branch and select at random, each time from any cache made so far."""
    rng, made = random.Random(seed), [(nothing(), entries(0))]
    for step in range(70):
        cache, expected = made[-1] if rng.random() < 0.7 else rng.choice(made)
        n = len(expected[0])
        if rng.random() < 0.75:
            part = entries(rng.choice([1, 1, 1, 2, 7]), n, seed=step)
            made.append((cache.append(*part), joined(expected, part)))
        else:
            rows = [rng.randrange(n) for _ in range(rng.randint(1, 5))]
            made.append((cache.select(torch.tensor(rows)), at(expected, rows)))
    for cache, expected in made:
        holds(cache, expected)


@torch.no_grad()
def test_the_next_token_is_written_behind_the_others_without_a_copy():
    """Storage grows by more than half each time, so that 60 steps copy the past four times at most."""
    cache, places = nothing(), set()
    for step in range(60):
        cache = cache.append(*entries(1, seed=step))
        places.add((cache.keys.data_ptr(), cache.values.data_ptr()))
    assert len(places) <= 5


@torch.no_grad()
def test_rows_that_were_selected_leave_room_for_the_next_token():
    cache = appended(nothing(), *(entries(1, seed=seed) for seed in range(4))).select(torch.tensor([2, 0]))
    assert cache.append(*entries(1, n=2)).keys.data_ptr() == cache.keys.data_ptr()


def test_gradients_flow_to_every_part():
    parts = [tuple(side.requires_grad_() for side in entries(t, seed=t)) for t in (1, 2, 3)]
    weights = entries(6, n=2, seed=9)
    cache = appended(nothing(), *parts).select(torch.tensor([2, 0]))
    (cache.keys * weights[0]).sum().add((cache.values * weights[1]).sum()).backward()
    for side in (0, 1):
        gradient = torch.cat([part[side].grad for part in parts], 2)
        assert torch.equal(gradient[[2, 0]], weights[side])
        assert not gradient[1].any()


def test_what_a_gradient_needs_is_not_written_to():
    """A cache that was filled without gradients, and is read by one that has them."""
    parts = [entries(1, seed=seed) for seed in range(4)]
    with torch.no_grad():
        past = appended(nothing(), *parts[:3])
    query = torch.ones(N, H, 1, E, dtype=torch.float64, requires_grad=True)
    after = past.append(*parts[3])
    scores = query @ after.keys.mT
    with torch.no_grad():
        past.append(*entries(1, seed=50))
        after.append(*entries(1, seed=51))
    scores.sum().backward()
    assert torch.equal(query.grad, joined(*parts)[0].sum(2, keepdim=True))


@torch.no_grad()
@pytest.mark.parametrize("size", [1, 3])
def test_the_last_positions_can_be_continued(size):
    parts = [entries(1, seed=seed) for seed in range(5)]
    cache = appended(nothing(), *parts[:4])
    last = cache.last(size)
    holds(last, joined(*parts[4 - size : 4]))
    holds(last.append(*parts[4]), joined(*parts[4 - size :]))
    holds(cache.append(*parts[4]), joined(*parts))


def test_running_sums_are_those_of_all_but_the_newest():
    parts = [entries(t, seed=t) for t in (2, 1, 3)]
    sums, norms = torch.zeros(N, H, E, F, dtype=torch.float64), torch.zeros(N, H, E, dtype=torch.float64)
    cache = RunningSums(*entries(0), sums, norms)
    for part in parts:
        cache = cache.append(*part)
    keys, values = joined(*parts[:2])
    holds(cache, parts[2])
    torch.testing.assert_close(cache.sums, torch.einsum("nhke,nhkf->nhef", keys, values))
    torch.testing.assert_close(cache.norms, keys.sum(2))
    rows = torch.tensor([2, 2, 0, 1])
    chosen = cache.select(rows)
    holds(chosen, at(parts[2], rows))
    assert torch.equal(chosen.sums, cache.sums[rows])
    assert torch.equal(chosen.norms, cache.norms[rows])
    assert isinstance(cache, Cache)
    assert isinstance(nothing(), Cache)
