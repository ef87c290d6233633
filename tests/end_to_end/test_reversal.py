"""Every family learns to write strings of digits backwards, by the training loop and search that users have."""

import pytest

from benchmarks.reversal import ENOUGH, FAMILIES, learn

# One of each kind; the others are slow tests.
SAMPLE = ("GRU, parameterised, both ways", "Transformer, SwiGLU")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.slow) for name in FAMILIES]
)
def test_unseen_strings_come_out_reversed(name, tmp_path):
    assert learn(FAMILIES[name], 1, tmp_path).exact_match >= ENOUGH
