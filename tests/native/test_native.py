"""The compiled part computes what plain loops and torch compute."""

import math
import shutil
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from regard.decoding.best import best_continuations
from regard.errors import DecodingError
from regard.layers.positions import sinusoids
from regard.layers.relations import rotate
from regard.native import library
from regard.native.inference import Panels, checked, native
from regard.native.library import NUMBER, POINTER, REAL, load
from regard.native.shares import LEAST, in_shares

INF, NAN = math.inf, math.nan
needed = pytest.mark.skipif(native is None, reason="needs the compiled part of regard, and so a C compiler")


def noise(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_where_there_is_a_compiler_the_library_was_built():
    assert native is not None


def test_without_the_library_there_is_none(monkeypatch):
    monkeypatch.setattr(library, "EXTENSION_SUFFIXES", [".nowhere"])
    assert load() is None


# ---------------------------------------------------------------- attention
def attended(q, keys, values, heads):
    """One query, by the formula."""
    found = []
    for q_h, k_h, v_h in zip(q.chunk(heads), keys.chunk(heads, 1), values.chunk(heads, 1), strict=True):
        found.append(torch.softmax(k_h @ q_h / math.sqrt(len(q_h)), 0) @ v_h)
    return torch.cat(found)


@needed
@pytest.mark.parametrize(("heads", "width", "scale"), [(1, 1, 1.0), (3, 5, 1.0), (4, 64, 1.0), (2, 16, 30.0)])
def test_every_row_attends_to_the_steps_that_it_descends_from(heads, width, scale):
    d = heads * width
    steps = [noise(rows, 3 * d, seed=rows, scale=scale) for rows in (2, 6, 4)]
    origin = torch.stack([ints(1, 0, 1, 1), ints(5, 5, 0, 3), ints(0, 1, 2, 3)], 1)
    found = native.past(steps, origin, heads)
    for row, line in enumerate(origin.tolist()):
        own = torch.stack([step[i] for step, i in zip(steps, line, strict=True)])
        expected = attended(steps[-1][row, :d], own[:, d : 2 * d], own[:, 2 * d :], heads)
        torch.testing.assert_close(found[row], expected, rtol=1e-5, atol=1e-5)


@needed
def test_every_row_attends_to_the_real_entries_of_its_sentence():
    heads, d, memory = 2, 8, noise(6, 16, seed=1)
    q, sentence = noise(3, d, seed=2), ints(1, 0, 1)
    places, counts = torch.stack([ints(0, 1, 2, 3), ints(5, 4, 0, 9)]), ints(4, 2)
    found = native.memory(q, memory, sentence, places, counts, heads)
    for row, real in enumerate([[5, 4], [0, 1, 2, 3], [5, 4]]):
        own = memory[real]
        torch.testing.assert_close(found[row], attended(q[row], own[:, :d], own[:, d:], heads), rtol=1e-5, atol=1e-6)


@needed
def test_queries_and_keys_are_turned_and_values_are_not():
    packed, angles = noise(3, 3 * 8), sinusoids(8, 4)[7:].float()
    q, k, v = packed.clone().view(3, 3, 2, 1, 4).unbind(1)
    native.turn(packed, angles, 2)
    expected = torch.stack([rotate(q, angles), rotate(k, angles), v], 1).view(3, 24)
    torch.testing.assert_close(packed, expected)


def test_a_call_that_found_no_memory_is_an_error():
    with pytest.raises(DecodingError, match="no memory left"):
        checked(noise(1, 1), 0)


# ---------------------------------------------------------------- products
@needed
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 6, 7, 12, 25, 70])
@pytest.mark.parametrize(("d", "e"), [(1, 1), (7, 3), (16, 16), (5, 17), (256, 48), (257, 33), (600, 20)])
def test_a_packed_product_is_the_product(rows, d, e):
    x, weight, bias, out = noise(rows, d), noise(d, e, seed=1), noise(e, seed=2), noise(rows, e, seed=3)
    layer, exact = Panels(weight, bias), x.double() @ weight.double()
    close = {"rtol": 1e-5, "atol": 1e-5 * math.sqrt(d)}
    torch.testing.assert_close(native.product(x, layer).double(), exact + bias, **close)
    torch.testing.assert_close(native.product(x, layer, 0.5).double(), (exact + bias).clamp(min=0.5), **close)
    torch.testing.assert_close(native.product(x, Panels(weight, None)).double(), exact, **close)
    expected = out + exact
    native.add_product(out, x, layer)
    torch.testing.assert_close(out.double(), expected, **close)


FORMS = {"any": "", "v3": "avx2", "v4": "avx512vl"}  # what the processor must be able to do


def runs_here(form):
    info = Path("/proc/cpuinfo")
    return hasattr(library.library, f"multiply_{form}") and (info.exists() and FORMS[form] in info.read_text())


@needed
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_product_is_the_product(form):
    """Each number of rows up to two tiles, and each way that panels come together."""
    if not runs_here(form):
        pytest.skip(f"this processor cannot run the form {form}")
    multiply, d = getattr(library.library, f"multiply_{form}"), 300
    multiply.argtypes = [POINTER, NUMBER, POINTER, NUMBER, POINTER, POINTER, *[NUMBER] * 3, REAL]
    for e in (1, 16, 40, 85, 176):
        weight, bias = noise(d, e, seed=e), noise(e, seed=2)
        layer = Panels(weight, bias)
        for rows in range(26):
            x, out = noise(rows, d, seed=rows), torch.empty(rows, e)
            places = out.data_ptr(), e, x.data_ptr(), d, layer.weight.data_ptr(), layer.bias.data_ptr()
            multiply(*places, rows, d, e, 0.5)
            torch.testing.assert_close(out, (x @ weight + bias).clamp(min=0.5), rtol=1e-4, atol=1e-4)


@needed
def test_rows_are_the_same_whoever_stands_beside_them():
    x, layer = noise(70, 300), Panels(noise(300, 40, seed=1), noise(40, seed=2))
    whole = native.product(x, layer)
    assert all(torch.equal(native.product(x[i : i + 1].contiguous(), layer)[0], whole[i]) for i in range(70))


@needed
def test_several_threads_share_the_rows(monkeypatch):
    x, layer = noise(70, 30), Panels(noise(30, 40, seed=1), noise(40, seed=2))
    expected = native.product(x, layer)
    monkeypatch.setattr("torch.get_num_threads", lambda: 3)
    assert torch.equal(native.product(x, layer), expected)
    met = []
    assert in_shares(LEAST * 2, 1, lambda first, last: met.append((first, last)) or 1)
    assert sorted(met) == [(0, LEAST), (LEAST, 2 * LEAST)]
    assert not in_shares(LEAST * 2, 1, lambda first, _: int(first == 0))


# ---------------------------------------------------------------- around the products
@needed
@pytest.mark.parametrize("width", [1, 5, 64])
@pytest.mark.parametrize("over", [True, False])
def test_the_norm_is_torchs_and_the_sum_stays(width, over):
    x, bias, gain, offset = noise(3, width, scale=5.0), *(noise(width, seed=seed) for seed in (1, 2, 3))
    total = x + bias
    out = x if over else torch.empty_like(x)
    native.norm(x, bias, gain, offset, 1e-5, out)
    torch.testing.assert_close(out, F.layer_norm(total, (width,), gain, offset, 1e-5), rtol=1e-4, atol=1e-5)
    assert over or torch.equal(x, total)


# ---------------------------------------------------------------- choosing tokens
LOGITS = {
    "ordinary": noise(6, 200, scale=3.0),
    "few columns": noise(6, 3),
    "around a stretch": noise(6, 65),
    "huge": noise(6, 200) + 1e4,
    "tiny": noise(6, 200) - 1e4,
    "far apart": torch.cat([noise(2, 200), noise(2, 200) + 300, noise(2, 200) - 300]),
}


def chosen(logits, start, never, k, more=None):
    """The best of logits that are a product: each row chooses its own by a one."""
    layer = Panels(logits, None)
    return native.best_of_product(torch.eye(len(logits)), layer, more, start, torch.tensor(never, dtype=torch.long), k)


@needed
@pytest.mark.parametrize("name", LOGITS)
@pytest.mark.parametrize(("w", "k"), [(1, 1), (2, 4), (3, 2)])
@pytest.mark.parametrize("never", [[], [0, 2]])
def test_the_best_are_the_top_of_all_sums(name, w, k, never):
    logits, start = LOGITS[name], noise(6 // w, w, seed=1)
    log_probs = logits.double().log_softmax(-1).index_fill(1, torch.tensor(never, dtype=torch.long), -INF)
    k = min(k, w * (logits.shape[1] - len(never)))
    expected, row, column = best_continuations(log_probs, start.double(), k)
    sums, steps, places = chosen(logits, start, never, k)
    torch.testing.assert_close(sums.double(), expected, rtol=1e-5, atol=2e-3 if name in ("huge", "tiny") else 1e-5)
    if name not in ("huge", "tiny"):  # where float32 cannot tell neighbours apart
        assert torch.equal(places, row * logits.shape[1] + column)
    torch.testing.assert_close(steps, sums - start.gather(1, places // logits.shape[1]), rtol=1e-5, atol=1e-4)


@needed
def test_many_sentences_are_taken_in_turn_and_by_several_threads(monkeypatch):
    x, layer, start, never = noise(300, 8), Panels(noise(8, 50, seed=1), None), noise(100, 3, seed=2), torch.tensor([7])
    expected = [native.best_of_product(x[3 * i : 3 * i + 3], layer, None, start[[i]], never, 4) for i in range(100)]
    for threads in (1, 3):
        monkeypatch.setattr("torch.get_num_threads", lambda threads=threads: threads)
        found = native.best_of_product(x, layer, None, start, never, 4)
        for ours, theirs in zip(found, zip(*expected, strict=True), strict=True):
            assert torch.equal(ours, torch.cat(theirs))


@needed
def test_the_last_column_may_be_more():
    logits, more = noise(2, 20), torch.tensor([0.0, 50.0])
    sums, _, places = chosen(logits, torch.zeros(2, 1), [], 1, more)
    assert places.tolist() == [[int(logits[0].argmax())], [19]]
    assert sums[1].item() == pytest.approx(0, abs=1e-5)


@needed
def test_of_equals_the_first_comes_first():
    assert chosen(torch.zeros(2, 70), torch.zeros(1, 2), [1], 3)[2].tolist() == [[0, 2, 3]]


@needed
def test_what_is_not_possible_has_no_place():
    start = torch.tensor([[0.0, -INF]])
    sums, steps, places = chosen(torch.zeros(2, 3), start, [0], 4)
    assert places.tolist() == [[1, 2, -1, -1]]
    assert sums[0].tolist() == pytest.approx([-math.log(3)] * 2 + [-INF] * 2)
    assert steps[0].tolist() == pytest.approx([-math.log(3)] * 2 + [-INF] * 2)


@needed
def test_nan_is_not_chosen():
    assert chosen(torch.full((1, 80), NAN), torch.zeros(1, 1), [], 2)[2].tolist() == [[-1, -1]]


@needed
def test_a_banned_column_must_be_a_column():
    with pytest.raises(DecodingError, match="column 3 of 3"):
        chosen(torch.zeros(1, 3), torch.zeros(1, 1), [3], 1)


@needed
@pytest.mark.parametrize("columns", [1, 3, 64, 65, 200])
def test_the_largest_are_those_of_the_product(columns):
    x, weight, bias = noise(170, 9), noise(9, columns, seed=1), noise(columns, seed=2)
    never = torch.tensor([0, columns // 2] if columns > 2 else [], dtype=torch.long)
    largest, places = native.largest_of_product(x, Panels(weight, bias), never)
    exact = (x.double() @ weight.double() + bias).index_fill(1, never, -INF).max(1)
    assert torch.equal(places, exact.indices)
    torch.testing.assert_close(largest.double(), exact.values, rtol=1e-5, atol=1e-5)


@needed
def test_the_first_of_equals_is_the_largest_and_nan_is_told():
    layer, none = Panels(torch.zeros(1, 70), None), torch.tensor([], dtype=torch.long)
    largest, places = native.largest_of_product(torch.tensor([[1.0], [NAN]]), layer, none)
    assert places[0] == 0
    assert largest[0] == 0
    assert largest[1].isnan()
    everything = torch.arange(70)
    assert native.largest_of_product(torch.tensor([[1.0]]), layer, everything)[0].tolist() == [-INF]
