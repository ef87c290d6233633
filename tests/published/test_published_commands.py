"""Every command that has a use for an imported model works with it; every other says in one line which one has."""

import numpy as np
import pytest
from PIL import Image
from published_folders import CLASSES, TEXTS

from regard.engine import load
from regard.errors import ModelFormatError
from regard.serving import worker
from regard.serving.asking import Asking
from regard.serving.wishes import Explain, OfPairs, Speak, pair

TRANSLATORS, READERS = {"t5", "marian"}, {"bert", "bert-classes"}
WORKS = {  # command → the models that it is for
    "translate": TRANSLATORS,
    "evaluate": TRANSLATORS,
    "score": TRANSLATORS,
    "align": TRANSLATORS,
    "heads": TRANSLATORS,
    "generate": {"gpt2"},
    "fill": {"bert"},
    "embed": READERS,
    "classify": {"bert-classes"},
    "explain": TRANSLATORS | READERS | {"gpt2"},
    "see": {"vit"},
    "parse": set(),  # which no published model does
}
USE = {"gpt2": "generate", "t5": "translate", "marian": "translate"}
USE |= {"bert": "fill", "bert-classes": "classify", "vit": "see"}
every_model = pytest.mark.parametrize("name", CLASSES)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """command → what is typed after the model."""
    place = tmp_path_factory.mktemp("words")
    lines, image = place / "lines", place / "image.png"
    lines.write_text("".join(f"{text}\n" for text in TEXTS))
    Image.fromarray(np.arange(9 * 13 * 3, dtype=np.uint8).reshape(9, 13, 3)).save(image)
    pairs = ("--source", lines, "--target", lines)
    return {
        **dict.fromkeys(("evaluate", "score", "align"), pairs),
        "heads": ("--source", lines, "--reference", lines),
        "generate": ("--prompt", "the cat", "--tokens", 3),
        "fill": ("the [MASK] sat",),
        "explain": ("the cat",),
        "see": (image, "--map", "attention", "--svg", place / "map.svg"),
    }


@every_model
@pytest.mark.parametrize("command", WORKS)
def test_a_command_works_or_names_the_one_that_does(imported, words, regard, name, command):
    ended = regard(command, imported[name], *words.get(command, ()), stdin=b"the cat sat\n")
    if name in WORKS[command]:
        assert (ended.code, bool(ended.out)) == (0, True), ended
    else:
        ended.refused(f"regard {USE[name]}")


@pytest.mark.parametrize("name", sorted(TRANSLATORS))
def test_a_service_answers_with_it(imported, name):
    """What a worker of the service says; how it is asked over HTTP is the same for every model."""
    engine = load(imported[name])
    model = worker.Model(imported[name], Asking(engine, "the cat: "), "the cat: ")
    texts = ["the dog sat", "a cat"]
    found = worker.answer_to(model, Speak(engine.search).ask(texts))["found"]
    assert [one[0]["text"] for one in found] == engine.write([f"the cat: {text}" for text in texts])
    (explained,) = worker.answer_to(model, Explain(None, 1).ask(texts[:1]))["found"]
    assert explained["source"]["text"] == "the cat: the dog sat"
    (links,) = worker.answer_to(model, OfPairs("link").ask([pair("the dog sat", "der Hund")]))["found"]
    assert all(source < 3 and target < 2 for source, target in links)


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - TRANSLATORS))
def test_a_service_refuses_what_does_not_translate(imported, name):
    with pytest.raises(ModelFormatError, match=f"use it with regard {USE[name]}"):
        load(imported[name])
