"""The measurement of growth: exponents, states and peaks are right; times are never asserted."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import torch

from benchmarks.growth import KERNELS, exponent, main, name, peaks, seconds, with_exponents
from benchmarks.lengths import QUICK, ids, model_of, state_at, state_memory, step, storage

FLOAT = 4  # bytes


@pytest.mark.parametrize("power", [-0.5, 0.0, 1.0, 2.0])
def test_the_exponent_of_a_power_is_that_power(power):
    lengths = (3, 6, 12, 24)
    assert exponent(lengths, [7 * n**power for n in lengths]) == pytest.approx(power)


def test_exponents_are_fitted_to_the_last_three_doublings_of_each_row():
    scope = replace(QUICK, lengths=(1, 2, 4, 8, 16))
    costs = {1: 99.0, 2: 2.0, 4: 4.0, 8: 8.0, 16: 16.0}  # the first point is not on the line, and does not count
    found = with_exponents({name("w", "u", "full", n): cost for n, cost in costs.items()}, scope)
    assert found[name("w", "u", "full", "exponent")] == pytest.approx(1.0)
    assert len(found) == 6


def test_actions_take_turns_and_the_first_turn_does_not_count():
    calls = []
    found = seconds({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=3)
    assert calls == ["a", "b"] * 4
    assert set(found) == {"a", "b"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_state_grown_by_steps_goes_on_as_one_pass_over_all_tokens(kernel):
    model, length, rows = model_of(kernel, QUICK), 9, 2
    state = state_at(model, length, rows)  # length − 1 tokens of one row, then one more
    tokens = torch.cat([ids(1, length - 1).expand(rows, -1), ids(rows, 1), torch.full((rows, 1), 5)], 1)
    with torch.inference_mode():
        whole, _ = model.decoder.features(tokens, begin(model, rows))
        last, _ = model.decoder.features(tokens[:, -1:], state)
    torch.testing.assert_close(last, whole[:, -1:], rtol=1e-4, atol=1e-5)


def begin(model, rows):
    """The decoder's state before its first token, for rows that all read the source of one row."""
    source = ids(1, 8)
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    return model.decoder.begin(memory).select(torch.zeros(rows, dtype=torch.long))


def test_only_the_state_of_full_attention_grows_with_its_length():
    growth = {kernel: state_memory(kernel, 128, QUICK) / state_memory(kernel, 64, QUICK) for kernel in KERNELS}
    assert growth["window"] == growth["linear"] == 1.0
    assert growth["full"] > 1.5


def test_a_state_holds_at_least_its_keys_and_values():
    layers, both = 2, 2
    assert state_memory("full", 64, QUICK) >= layers * both * 64 * QUICK.width * FLOAT


def test_storage_counts_shared_memory_once_and_all_of_what_a_view_keeps_alive():
    x = torch.zeros(5, 3)
    assert storage({"a": [x, x[:1]], "b": (x.mT, torch.zeros(7))}) == (15 + 7) * FLOAT


def test_a_step_leaves_the_state_it_came_from_as_it_was():
    model = model_of("full", QUICK)
    state = state_at(model, 5, 2)
    before = [cache.keys.clone() for cache in state.past]
    assert step(model, state, 2).length == state.length + 1 == 6
    assert all(torch.equal(cache.keys, old) for cache, old in zip(state.past, before, strict=True))


def test_four_times_the_tokens_need_about_four_times_the_memory():
    sizes = [replace(QUICK, width=64, tokens=tokens) for tokens in (4096, 16_384)]
    small, large = peaks([("training", "full", 64, scope) for scope in sizes])
    assert 2.5 < large / small < 6


def test_the_quick_measurement_writes_every_row_and_its_picture(tmp_path, capsys):
    main(["--quick", "--out", str(tmp_path)])
    figures = json.loads((tmp_path / "bench-growth-quick.json").read_text(encoding="utf-8"))["figures"]
    assert len(figures) == 3 * 2 * len(KERNELS) * (len(QUICK.lengths) + 1)  # work, time and memory, kernel, column
    assert all(math.isfinite(value) for value in figures.values())
    assert all(value > 0 for key, value in figures.items() if not key.endswith("exponent"))
    lines = ElementTree.parse(tmp_path / "growth-quick.svg").getroot().iter("{http://www.w3.org/2000/svg}polyline")
    assert len(list(lines)) == 6 * len(KERNELS)
    assert "exponent" in capsys.readouterr().out
