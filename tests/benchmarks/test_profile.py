"""The profile puts every operation into one group, and the groups make up the whole time."""

import json

import pytest
import torch

from benchmarks import profile
from benchmarks.profile import GROUPS, group, main, shares

LAYER = "autograd::engine::evaluate_function: AddmmBackward0"


@pytest.mark.parametrize(
    ("name", "scopes", "expected"),
    [
        ("aten::mm", [], "matmul"),
        ("aten::addmm_", ["ProjectedCrossEntropy"], "matmul"),
        ("aten::exp_", ["ProjectedCrossEntropy"], "loss"),
        ("aten::mul", ["ProjectedCrossEntropyBackward"], "loss"),
        ("aten::mul", [LAYER], "elementwise and copies"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", [LAYER], "attention"),
        ("Attention", ["SelfAttention"], "attention"),
        ("AttentionBackward", [LAYER], "attention"),
        ("DropAdd", ["PreNorm"], "elementwise and copies"),
        ("add_product", [], "matmul"),
        ("best_of_product", [], "output layer with softmax and top-k"),
        ("aten::native_layer_norm_backward", [LAYER], "normalisation"),
        ("aten::random_", [], "random numbers"),
        ("aten::bernoulli_", ["aten::dropout"], "random numbers"),
        ("aten::_fused_adamw_", ["Optimizer.step#AdamW.step"], "optimiser"),
        ("aten::mm", ["aten::matmul", "Optimizer.step#Muon.step"], "optimiser"),
        ("aten::linalg_vector_norm", ["aten::_foreach_norm"], "optimiser"),
        ("aten::topk", [], "softmax and top-k"),
        ("aten::_log_softmax", ["aten::log_softmax"], "softmax and top-k"),
        ("aten::view", [], "Python and dispatch"),
        ("ProjectedCrossEntropy", [], "Python and dispatch"),
        (LAYER, [], "Python and dispatch"),
    ],
)
def test_an_operation_belongs_to(name, scopes, expected):
    assert group(name, scopes) == expected


def test_work_of_one_kind_is_found_to_be_of_that_kind():
    x = torch.zeros(1500, 1500)  # large enough to outweigh all else on a busy machine
    found = shares(lambda: x @ x)
    assert max(found, key=found.get) == "matmul"
    assert sum(found.values()) == pytest.approx(1.0)


def test_time_outside_of_torch_is_python():
    found = shares(lambda: sum(range(300_000)))
    assert found["Python and dispatch"] == pytest.approx(1.0)


def test_the_shares_of_training_and_decoding_each_add_up_to_one(tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "REPEATS", 1)
    monkeypatch.setattr(profile, "SENTENCES", 5)
    main(["--quick", "--out", str(tmp_path)])
    figures = json.loads((tmp_path / "bench-profile-quick.json").read_text(encoding="utf-8"))["figures"]
    for row, absent in (("profile, training", set()), ("profile, decoding", {"random numbers", "loss", "optimiser"})):
        found = {name: figures.get(f"{row}: {name}", 0.0) for name in GROUPS}
        assert sum(found.values()) == pytest.approx(1.0, abs=0.001)
        assert all(found[name] == 0 for name in absent)
        assert all(found[name] > 0 for name in ("matmul", "attention", "normalisation", "Python and dispatch"))
    assert all(figures[f"profile, training: {name}"] > 0 for name in ("random numbers", "loss", "optimiser"))
