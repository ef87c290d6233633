"""An Argos package holds what Argos reads, and Argos itself translates with it."""

import json
import os
import subprocess
import sys
import zipfile

import pytest
import sentencepiece
from tiny_models import tiny, written
from tiny_runs import TINY

from regard.errors import RecipeError, RegardError
from regard.exporting.argos import Languages, export_argos
from regard.exporting.ctranslate2 import open_model
from regard.exporting.search import NEVER

LANGUAGES = Languages("en", "de")
# Argos is heavy: let it have an environment of its own, and name that environment's interpreter here.
ARGOS = os.environ.get("ARGOS_PYTHON", sys.executable)


@pytest.fixture(scope="module")
def subword_model(tmp_path_factory, corpus):
    """A finished model with a joint BPE vocabulary."""
    from regard.run import Request, run

    out = tmp_path_factory.mktemp("models") / "subwords"
    settings = (*TINY, "text.kind=bpe", "text.size=340", "text.shared=true")
    source, target = corpus / "train.source", corpus / "train.target"
    run(Request(source=source, target=target, out=out, steps=15, settings=settings, quiet=True))
    return out


@pytest.fixture(scope="module")
def package(subword_model, tmp_path_factory):
    out = tmp_path_factory.mktemp("packages") / "en_de.argosmodel"
    export_argos(subword_model, out, LANGUAGES)
    return out


@pytest.fixture(scope="module")
def unpacked(package, tmp_path_factory):
    place = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(package) as archive:
        archive.extractall(place)
    return place / "translate-en_de"


def test_a_package_is_one_folder_with_what_argos_reads(unpacked):
    facts = json.loads((unpacked / "metadata.json").read_text())
    named = {key: facts[key] for key in ("from_code", "from_name", "to_code", "to_name")}
    assert named == {"from_code": "en", "from_name": "English", "to_code": "de", "to_name": "German"}
    for name in ("sentencepiece.model", "model/model.bin", "model/config.json", "minisbd/rules.onnx", "README.md"):
        assert (unpacked / name).is_file()


def test_the_vocabulary_is_that_of_sentencepiece(unpacked, subword_model):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(unpacked / "sentencepiece.model"))
    names = json.loads((unpacked / "model" / "shared_vocabulary.json").read_text())
    assert names == [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    ours = open_model(subword_model).vocabularies.source
    for text in ("abc de", "é 漢字", "Two  spaces, and a tail"):
        pieces = processor.encode(text, out_type=str)
        assert [names.index(piece) for piece in pieces] == ours.encode(text)
        assert processor.decode_pieces(pieces) == ours.decode(ours.encode(text)) == text


def test_a_package_says_what_the_model_says_and_nothing_forbidden(unpacked, subword_model):
    import ctranslate2

    packed = ctranslate2.Translator(str(unpacked / "model"), inter_threads=1, intra_threads=1)
    exported = open_model(subword_model)
    sources = [[exported.source[id] for id in exported.vocabularies.source.encode(x)] for x in ("abc de", "edc", "q")]
    search = {"beam_size": 4, "num_hypotheses": 4, "length_penalty": 0.2, "max_decoding_length": 20}
    theirs = packed.translate_batch(sources, **search)
    never = [[exported.target[id]] for id in sorted(NEVER)]
    ours = exported.translator.translate_batch(sources, suppress_sequences=never, **search)
    assert [found.hypotheses for found in theirs] == [found.hypotheses for found in ours]
    assert all({name for (name,) in never}.isdisjoint(tokens) for found in theirs for tokens in found.hypotheses)


def test_an_existing_file_stays(package, subword_model):
    before = package.read_bytes()
    with pytest.raises(RegardError, match="already exists"):
        export_argos(subword_model, package, LANGUAGES)
    assert package.read_bytes() == before


def test_a_place_that_cannot_be_written_is_one_line(subword_model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RegardError, match="not written"):
        export_argos(subword_model, tmp_path / "file" / "a.argosmodel", LANGUAGES)


@pytest.mark.parametrize("code", ["", "../de", "d", "de/", "deutsche Sprache"])
def test_a_code_that_is_none_is_refused(code, tmp_path):
    with pytest.raises(RegardError, match="not a language code"):
        export_argos(tmp_path / "none", tmp_path / "out", Languages("en", code))


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
def test_tokenisers_that_argos_lacks_are_refused(shared, tmp_path):
    path = written(tiny(tmp_path / "model", shared=shared))
    with pytest.raises(RecipeError, match=r"text\.kind: Argos cannot cut text into characters"):
        export_argos(path, tmp_path / "out.argosmodel", LANGUAGES)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_two_vocabularies_are_refused(train, tmp_path):
    settings = ("text.kind=bpe", "text.size=300", "text.shared=false")
    assert train(tmp_path / "model", "--steps", 1, settings=settings).code == 0
    with pytest.raises(RecipeError, match=r"text\.shared: Argos has one tokeniser"):
        export_argos(tmp_path / "model", tmp_path / "out.argosmodel", LANGUAGES)


TRANSLATE = """
import json, sys
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
print(json.dumps([translate.translate(text, "en", "de") for text in json.loads(sys.argv[2])]))
"""


def has_argos() -> bool:
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('argostranslate') is None)"
    return subprocess.run([ARGOS, "-c", look], check=False).returncode == 0


@pytest.mark.slow
def test_argos_itself_installs_the_package_and_translates_without_a_network(package, subword_model, tmp_path):
    if not has_argos():
        pytest.skip(f"argostranslate is not installed for {ARGOS}; name an interpreter that has it: ARGOS_PYTHON=…")
    texts = ["abc de", "edc ab", "ab cd. Abc de"]
    places = {f"XDG_{name}_HOME": str(tmp_path) for name in ("DATA", "CONFIG", "CACHE")}
    no_network = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")}
    ended = subprocess.run(
        [ARGOS, "-c", TRANSLATE, str(package), json.dumps(texts)],
        env={**os.environ, **places, **no_network, "ARGOS_COMPUTE_TYPE": "float32"},  # it would choose int8
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    exported = open_model(subword_model)
    sentences = [["abc de"], ["edc ab"], ["ab cd.", "Abc de"]]  # as its splitter cuts them
    for ours, theirs in zip(sentences, found, strict=True):
        assert theirs == argos_way(exported, ours)


def argos_way(exported, sentences: list[str]) -> str:
    """Argos's own settings of the search, and its joining of sentences."""
    tokeniser = exported.vocabularies.source
    rows = [[exported.source[id] for id in tokeniser.encode(text)] for text in sentences]
    never = [[exported.target[id]] for id in sorted(NEVER)]
    results = exported.translator.translate_batch(rows, beam_size=4, length_penalty=0.2, suppress_sequences=never)
    ids = [exported.target.index(name) for result in results for name in result.hypotheses[0]]
    return tokeniser.decode(ids)
