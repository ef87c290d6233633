"""An exported directory is complete, checked, and written only where the model can be exported."""

import json
import sys

import pytest
from tiny_models import SOURCE, tiny, written

from regard.errors import DecodingError, ModelFormatError, RecipeError, RegardError
from regard.exporting.ctranslate2 import export_ctranslate2, open_model, token_names
from regard.exporting.spec import library
from regard.files import check_manifest, write_manifest


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"kind": "recurrent"}, "model.kind: CTranslate2 cannot compute recurrent"),
        ({"kind": "bytenet"}, "model.kind: CTranslate2 cannot compute bytenet"),
        ({"kind": "convs2s"}, "model.kind: CTranslate2 cannot compute convs2s"),
        ({"experts": 4}, "model.experts: CTranslate2 cannot compute a mixture of 4"),
        ({"attention": "window"}, "model.attention: CTranslate2 cannot compute window"),
        ({"attention": "linear"}, "model.attention: CTranslate2 cannot compute linear"),
        (
            {"kept_heads": {"encoder": [[1], [2, 3]]}},
            "model.kept_heads: CTranslate2 cannot compute layers that have lost",
        ),
        ({"norm": "layer-outside"}, "model.norm: CTranslate2 cannot compute layer-outside"),
        ({"positions": "alibi"}, "model.positions: CTranslate2 cannot compute alibi"),
    ],
    ids=["recurrent", "bytenet", "convs2s", "experts", "window", "linear", "pruned", "layer-outside", "alibi"],
)
def test_what_it_cannot_compute_is_refused_by_name_and_nothing_is_written(model, words, tmp_path):
    path = written(tiny(tmp_path / "model", **model))
    with pytest.raises(RecipeError, match=words):
        export_ctranslate2(path, tmp_path / "out")
    with pytest.raises(RecipeError, match=words):
        open_model(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_an_exported_directory_needs_nothing_of_the_model(tmp_path):
    folder = tiny(tmp_path / "model")
    export_ctranslate2(written(folder), tmp_path / "out", "int8")
    (tmp_path / "model").rename(tmp_path / "gone")
    found = open_model(tmp_path / "out")
    assert found.recipe == folder.recipe
    assert found.vocabularies.source.encode("abc") == folder.vocabularies.source.encode("abc")
    assert found.target[4:] == ["A", "B", "C", "D", "E", "F", "G", "H", "▁"]


def test_the_manifest_lists_every_file_and_how_it_was_made(tmp_path):
    export_ctranslate2(written(tiny(tmp_path / "model")), tmp_path / "out", "int16")
    facts = check_manifest(tmp_path / "out")
    assert facts["files"].keys() | {"manifest.json"} == {path.name for path in (tmp_path / "out").iterdir()}
    assert (facts["engine"], facts["quantise"]) == ("ctranslate2", "int16")


def test_the_epsilon_of_norms_and_the_end_of_sources_are_written_down(tmp_path):
    export_ctranslate2(written(tiny(tmp_path / "model")), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["layer_norm_epsilon"] == 1e-5
    assert config["add_source_eos"] is True


def test_an_empty_directory_is_filled_and_a_full_one_left_alone(tmp_path):
    model = written(tiny(tmp_path / "model"))
    (tmp_path / "empty").mkdir()
    export_ctranslate2(model, tmp_path / "empty")
    assert open_model(tmp_path / "empty").source[:2] == ["<pad>", "<unk>"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        with pytest.raises(RegardError, match=f"{name}: already exists"):
            export_ctranslate2(model, tmp_path / name)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["note"]


def test_a_directory_that_changed_is_refused(tmp_path):
    export_ctranslate2(written(tiny(tmp_path / "model")), tmp_path / "out")
    weights = tmp_path / "out" / "model.bin"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(ModelFormatError, match=r"model\.bin: changed since it was written"):
        open_model(tmp_path / "out")


def test_a_directory_that_the_library_cannot_read_is_refused(tmp_path):
    export_ctranslate2(written(tiny(tmp_path / "model")), tmp_path / "out")
    (tmp_path / "out" / "model.bin").write_bytes(b"\x06\x00\x00\x00nothing")
    write_manifest(tmp_path / "out", {})
    with pytest.raises(ModelFormatError, match="ctranslate2 cannot load it"):
        open_model(tmp_path / "out")


def test_no_two_tokens_share_a_name(tmp_path):
    names = token_names(SOURCE, tmp_path / "none.model")  # a space and ▁ look the same
    assert len(set(names)) == len(names) == len(SOURCE)
    assert names[:4] == ["<pad>", "<unk>", "<s>", "</s>"]


def test_a_missing_library_is_one_line_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(DecodingError, match=r'pip install "regard\[fast\]"'):
        library()
