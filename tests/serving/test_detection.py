"""Which language a text is in: the real detector, among the languages that are served."""

import pytest

from regard.serving.detection import Detector

TEXTS = {
    "en": "The children are playing in the garden behind the house.",
    "de": "Die Kinder spielen im Garten hinter dem Haus.",
    "fr": "Les enfants jouent dans le jardin derrière la maison.",
    "es": "Los niños juegan en el jardín detrás de la casa.",
    "cs": "Děti si hrají na zahradě za domem.",
}


@pytest.fixture(scope="module")
def detector():
    return Detector()


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_is_known_among_five_languages(detector, language):
    found = detector(TEXTS[language], list(TEXTS))
    assert found[0][0] == language
    assert found == sorted(found, key=lambda each: -each[1])
    assert sum(probability for _, probability in found) == pytest.approx(1)


def test_only_what_is_served_is_found(detector):
    assert {code for code, _ in detector(TEXTS["fr"], ["de", "en"])} == {"de", "en"}


def test_a_country_or_a_script_is_its_language(detector):
    text = "As crianças estão brincando no jardim atrás da casa."
    assert detector(text, ["en", "pt-br"])[0][0] == "pt-br"
    assert detector("孩子们在花园里玩。", ["en", "zh-hans"])[0][0] == "zh-hans"


def test_a_code_that_nobody_knows_is_never_found(detector):
    assert detector(TEXTS["de"], ["de", "tlh"]) == [("de", 1.0)]
    assert detector(TEXTS["de"], ["tlh", "qaa"]) == [("tlh", 0.5), ("qaa", 0.5)]
