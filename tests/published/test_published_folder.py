"""Folders as others publish them: read without running anything, refused in one line where something is wrong."""

import json
import os
import pickle
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.errors import ModelFormatError
from regard.published import checkpoint
from regard.published.checkpoint import convert_pickle, family, read_checkpoint, read_config, read_weights


def write_index(folder, places):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def check_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


@pytest.mark.parametrize("size", ["1GB", "2KB"])
def test_what_transformers_saves_is_read_from_one_file_or_many(tmp_path, size):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=11, n_embd=6, n_head=2, n_layer=2, n_positions=9)
    model = transformers.GPT2LMHeadModel(config)
    model.save_pretrained(tmp_path, max_shard_size=size)
    files = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert (files == ["model.safetensors"]) == (size == "1GB")
    found = read_checkpoint(tmp_path)
    assert family(found.config) == "gpt2"
    check_equal(found.tensors, {name: x for name, x in model.state_dict().items() if name != "lm_head.weight"})


def test_every_float_type_becomes_float32_and_whole_numbers_stay(tmp_path):
    values = [0.5, -2.0, 4.0]  # exact in all of them
    types = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    save_file(
        {str(i): torch.tensor(values, dtype=type) for i, type in enumerate(types)} | {"ids": torch.tensor([3, 4])},
        tmp_path / "model.safetensors",
    )
    found = read_weights(tmp_path)
    check_equal(found, {str(i): torch.tensor(values) for i in range(4)} | {"ids": torch.tensor([3, 4])})


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e300])
def test_values_that_are_not_finite_in_float32_are_refused_by_name(tmp_path, value):
    tensors = {"good": torch.ones(2), "bad": torch.tensor([1.0, value], dtype=torch.float64)}
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelFormatError, match="tensor 'bad' holds values that are not finite; copy"):
        read_weights(tmp_path)


# ---------------------------------------------------------------- configs
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON; copy the checkpoint again"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1]", "no named values in it"),
        (None, "No such file or directory; expected the folder of a published checkpoint"),
    ],
)
def test_a_damaged_config_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ModelFormatError, match=message):
        read_config(tmp_path)


def test_a_huge_config_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGEST", 10)
    (tmp_path / "config.json").write_text('{"a": 1234}')
    with pytest.raises(ModelFormatError, match="found 11 bytes, expected 10 at most"):
        read_config(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(
        ModelFormatError, match=r"nowhere: no such folder; expected one with config.json and model.safet"
    ):
        read_checkpoint(tmp_path / "nowhere")


@pytest.mark.parametrize("config", [{"model_type": "llama"}, {"model_type": ["gpt2"]}, {}])
def test_an_unknown_family_is_refused_and_the_known_ones_are_named(config):
    with pytest.raises(ModelFormatError, match=r"model_type: found .*, expected one of gpt2, bert, t5, vit, marian"):
        family(config)


# ---------------------------------------------------------------- weights
@pytest.mark.parametrize("file", ["../x.safetensors", "/x.safetensors", "a\\x.safetensors", "..", "x.bin", 7, None])
def test_an_index_cannot_point_outside_the_folder_or_at_another_kind_of_file(tmp_path, file):
    save_file({"w": torch.ones(2)}, tmp_path / "x.safetensors")
    (tmp_path / "inside").mkdir()
    write_index(tmp_path / "inside", {"w": file})
    with pytest.raises(
        ModelFormatError, match=r"puts tensor 'w' into .*, expected the plain name of a safetensors file"
    ):
        read_weights(tmp_path / "inside")


def test_each_file_holds_what_the_index_says(tmp_path):
    one, two = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    save_file({"a": torch.ones(2)}, one)
    save_file({"b": torch.zeros(3), "c": torch.ones(1)}, two)
    write_index(tmp_path, {"a": one.name, "b": two.name, "c": two.name})
    check_equal(read_weights(tmp_path), {"a": torch.ones(2), "b": torch.zeros(3), "c": torch.ones(1)})
    for places, message in [
        ({"a": one.name, "b": two.name}, "two.safetensors: unknown tensor 'c', by what"),
        ({"a": one.name, "d": one.name}, "one.safetensors: no tensor 'd', by what"),
        ({"a": "three.safetensors"}, "three.safetensors: not readable as safetensors"),
        ({}, "no weight_map in it"),
        ([], "no weight_map in it"),
    ]:
        write_index(tmp_path, places)
        with pytest.raises(ModelFormatError, match=message):
            read_weights(tmp_path)


def test_damaged_weights_are_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(ModelFormatError, match="not readable as safetensors"):
        read_weights(tmp_path)


def test_a_folder_without_weights_is_refused(tmp_path):
    (tmp_path / "tf_model.h5").write_bytes(b"")
    with pytest.raises(ModelFormatError, match=r"no model.safetensors and no model.safetensors.index.json; expected"):
        read_weights(tmp_path)


def test_a_pickle_is_refused_and_the_way_out_is_named(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelFormatError, match=r"found pytorch_model.bin, a pickle.*regard import --convert-pickle"):
        read_weights(tmp_path)


# ---------------------------------------------------------------- conversion
def test_a_converted_pickle_holds_the_same_tensors(tmp_path):
    table = torch.randn(3, 2)
    tensors = {"a": table, "tied": table, "turned": table.mT, "half": torch.ones(2).half()}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    convert_pickle(tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors")
    check_equal(load_file(tmp_path / "model.safetensors"), tensors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors", "pytorch_model.bin"]


class Command:
    """Unpickled carelessly, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_run_code_does_not_and_nothing_is_left(tmp_path):
    source, target, proof = tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors", tmp_path / "proof"
    source.write_bytes(pickle.dumps({"w": Command(proof)}))
    with pytest.raises(ModelFormatError, match=r"pytorch_model.bin: not converted .*; expected named tensors"):
        convert_pickle(source, target)
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_the_conversion_itself_is_held_by_a_guard(tmp_path):
    """Should torch's own refusal ever fail: no process, no connection, nothing written."""
    attempts = [
        "import subprocess; subprocess.run(['true'])",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        f"open({str(tmp_path / 'x')!r}, 'w')",
        f"os.open({str(tmp_path / 'x')!r}, os.O_RDWR | os.O_CREAT)",
        f"os.mkdir({str(tmp_path / 'x')!r})",
        "os.system('true')",
        "os.fork()",
    ]
    tries = "\n".join(
        f"try:\n    {attempt}\nexcept PermissionError as error:\n    assert 'it tried' in str(error), error\n"
        f"else:\n    raise SystemExit({attempt!r})"
        for attempt in attempts
    )
    script = f"{checkpoint.GUARD}\nopen({__file__!r}).close()\n{tries}"
    ended = subprocess.run([sys.executable, "-I", "-B", "-c", script], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    assert not list(tmp_path.iterdir())


def test_a_pickle_of_something_else_is_refused(tmp_path):
    torch.save({"w": torch.ones(1), "step": 3}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelFormatError, match=r"not converted \('step' is no tensor\); expected named tensors and"):
        convert_pickle(tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors")


def test_a_conversion_has_a_time_limit_and_needs_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.001)
    torch.save({"w": torch.ones(1)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelFormatError, match=r"not converted within 0.001 s"):
        convert_pickle(tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors")
    with pytest.raises(ModelFormatError, match=r"none.bin: no such file; expected named tensors as a pickle"):
        convert_pickle(tmp_path / "none.bin", tmp_path / "model.safetensors")
