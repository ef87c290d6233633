"""A service puts the task before every text: its answers are those to texts with the task typed before them."""

import json
from pathlib import Path

import pytest

from regard.aligner import load_aligner
from regard.data.pairs import Pair
from regard.decoding.options import SamplingOptions
from regard.engine import load
from regard.explainer import Asked, load_explainer
from regard.serving import worker
from regard.serving.asking import Asking, without
from regard.serving.command import with_tasks
from regard.serving.running import Direction
from regard.serving.wishes import Explain, OfPairs, Speak, pair

TASK, TEXTS = "ed ce: ", ["abc de", "eda", "cab bad"]
LINKS = [(1, 0), (2, 1), (3, 2)]


@pytest.fixture(scope="module")
def plain(model):
    return load(model)


@pytest.fixture(scope="module")
def asking(model, plain):
    return worker.Model(model, Asking(plain, TASK), TASK)


def test_translations_and_scores_are_those_of_texts_with_the_task_before_them(plain, asking):
    typed = [TASK + text for text in TEXTS]
    assert worker.write(asking, Speak(plain.search).ask(TEXTS)) == [[{"text": text}] for text in plain.write(typed)]
    ours, theirs = asking.engine.translate(TEXTS), plain.translate(typed)
    assert [one.candidates for one in ours] == [one.candidates for one in theirs]
    assert [one.source for one in ours] == TEXTS
    drawn = asking.engine.sample(TEXTS, SamplingOptions(), seed=1)
    assert [one.candidates for one in drawn] == [one.candidates for one in plain.sample(typed, SamplingOptions(), 1)]
    pairs = [Pair(text, text.upper()) for text in TEXTS]
    assert asking.engine.score(pairs) == plain.score([Pair(TASK + one.source, one.target) for one in pairs])
    assert asking.engine.write(["", " "]) == plain.write(["", " "])


def test_an_explanation_shows_the_task_as_the_model_read_it(model, asking):
    (found,) = worker.explain(asking, Explain("ABC", 1).ask(["abc"]))
    (same,) = load_explainer(model).explain(TASK + "abc", Asked(target="ABC", alternatives=1))
    assert found["source"]["text"] == TASK + "abc"
    assert found == json.loads(same.to_json())


def test_links_are_between_words_of_the_text(model, asking):
    question = OfPairs("link").ask([pair("abc de", "ABC DE")])
    typed = load_aligner(model).link(Pair(TASK + "abc de", "ABC DE"))
    assert worker.link(asking, question) == [without(TASK, typed)]
    assert all(source < 2 for source, _ in worker.align(asking, question)[0])


@pytest.mark.parametrize(
    ("task", "expected"), [("to German: ", [(0, 1), (1, 2)]), (">>fra<< ", [(0, 0), (1, 1), (2, 2)]), ("", LINKS)]
)
def test_words_are_counted_from_the_first_of_the_text(task, expected):
    assert without(task, LINKS) == expected


def test_a_task_goes_with_its_direction():
    one, other = Direction(Path("t5"), "en", "de"), Direction(Path("t5"), "en", "pt-br")
    found = with_tasks([one, other], ["EN:pb=to Portuguese: "])
    assert [model.task for model in found] == ["", "to Portuguese: "]
