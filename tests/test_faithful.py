"""Whatever a model does to them, placeholders come out as they went in, and a glossary's words are there."""

# ruff: noqa: ARG002  (engines that listen to little of what they are told)

import random

import pytest

from regard.decoding.options import SearchOptions
from regard.engine import Candidate, Engine, Translation, load
from regard.errors import DecodingError
from regard.faithful import STAND_INS, Faithful, Wishes, wishes_from
from regard.text.placeholders import Placeholders


class Shouting:
    """An engine that writes in capitals, unless it is held to words, and knows no braces."""

    def __init__(self, obeys=True):
        self.search, self.obeys, self.asked = SearchOptions(), obeys, []

    def translate(self, texts, search=None, prefixes=None, required=None):
        self.asked.append((list(texts), required))
        said = [self.say(text, required[i] if required else ()) for i, text in enumerate(texts)]
        return [Translation(text, (Candidate(one, -1.0, -2.0, ()),)) for text, one in zip(texts, said, strict=True)]

    def say(self, text, required):
        said = text.upper()
        for word in required if self.obeys else ():
            said = said.replace(word.upper(), word, 1) if word.upper() in said else f"{said} {word}"
        return said

    def write(self, texts, search=None):
        return [one.text for one in self.translate(texts, search)]

    def sample(self, texts, options, seed):
        return self.translate(texts)

    def score(self, pairs):
        return []

    def spells(self, phrase):
        return "{" not in phrase

    def fits(self, text, required, search=None):
        return len(required) < 4


def careful(engine, terms=(), glossary=None):
    return Faithful(engine, Placeholders(terms=terms), glossary or {})


def test_it_is_an_engine_like_any_other():
    assert isinstance(careful(Shouting()), Engine)
    assert isinstance(Shouting(), Engine)


def test_a_model_that_does_no_harm_is_asked_once():
    engine = Shouting()
    assert careful(engine).write(["no codes", "{X} 5 GB", ""]) == ["NO CODES", "{X} 5 GB", ""]
    assert [required for _, required in engine.asked] == [None]


def test_what_was_harmed_is_required_and_only_there():
    engine = Shouting()
    found = careful(engine, ["iOS"]).translate(["hello", "hi %s on iOS", "%d of %d"])
    assert [one.text for one in found] == ["HELLO", "HI %s ON iOS", "%d OF %d"]
    assert engine.asked[1:] == [(["hi %s on iOS", "%d of %d"], [("%s", "iOS"), ("%d", "%d")])]


def test_what_cannot_be_spelt_has_a_stand_in_that_is_not_in_the_text():
    engine = Shouting()
    assert careful(engine).write(["{name} has X and {n}{m} cats"]) == ["{name} HAS X AND {n}{m} CATS"]
    first, second = [name for name in STAND_INS if name != "X"][:2]
    assert engine.asked[1] == ([f"{first} has X and {second} cats"], [(first, second)])


def test_a_model_that_does_not_obey_translates_what_is_between():
    engine = Shouting(obeys=False)
    assert careful(engine).write(["  hi %s, it is %s. ", "%s: {a}"]) == ["  HI %s, IT IS %s. ", "%s: {a}"]
    assert engine.asked[-1] == (["hi", ", it is"], None)


def test_more_codes_than_fit_are_put_back_piece_by_piece():
    engine = Shouting()
    assert careful(engine).write(["a %s b %s c %s d %s"]) == ["A %s B %s C %s D %s"]
    assert [required for _, required in engine.asked] == [None, None]


def test_codes_without_names_keep_their_order():
    class Turning(Shouting):
        def say(self, text, required):
            return " ".join(reversed(text.split()))

    assert careful(Turning()).write(["%s of %d"]) == ["%s of %d"]
    assert careful(Turning()).write(["%1$s of %2$d"]) == ["%2$d of %1$s"]


def test_a_candidate_without_fault_is_preferred_to_another_search():
    class Several(Shouting):
        def translate(self, texts, search=None, prefixes=None, required=None):
            self.asked.append(required)
            made = [Candidate(said, -1.0, -2.0, ()) for said in ("a", "%s a", "b %s", "%s %s")]
            return [Translation(text, tuple(made)) for text in texts]

    engine = Several()
    (found,) = careful(engine).translate(["x %s"])
    assert [one.text for one in found.candidates] == ["%s a", "b %s"]
    assert engine.asked == [None]


def test_a_glossary_is_followed_outside_of_placeholders():
    glossary = {"net": "Netz", "the United Nations": "die UN"}
    engine = Shouting()
    found = careful(engine, glossary=glossary).write(["a Net", "https://net.org/net", "the United Nations"])
    assert found == ["A NET Netz", "https://net.org/net", "THE UNITED NATIONS die UN"]
    assert engine.asked[1][1] == [("Netz",), ("die UN",)]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_ever_broken_by_a_model_that_writes_anything(seed):
    rng = random.Random(seed)
    codes = ["%s", "%d", "%%", "{x}", "{}", "<b>", "</b>", "https://a.b/c", "a@b.co", "5 km", "%1$s", "Regard"]
    words = ["hello", "of ", ", ", ". ", " ", "9", "(", "X"]

    class Anything(Shouting):
        def say(self, text, required):
            return "".join(rng.choice(codes + words) for _ in range(rng.randrange(6)))

        def spells(self, phrase):
            return rng.random() < 0.7

    texts = ["".join(rng.choice(codes + words) for _ in range(rng.randrange(9))) for _ in range(12)]
    kinds = Placeholders(terms=["Regard"])
    for text, said in zip(texts, Faithful(Anything(), kinds, {}).write(texts), strict=True):
        assert kinds.are_kept(text, said), (text, said)
    for text, found in zip(texts, Faithful(Anything(), kinds, {}).translate(texts), strict=True):
        assert found.source == text
        assert all(kinds.are_kept(text, one.text) for one in found.candidates)
        assert found.candidates


def test_with_a_prefix_what_cannot_be_kept_is_refused():
    with pytest.raises(DecodingError, match=r"'hi %s'.*prefix"):
        careful(Shouting(obeys=False)).translate(["hi %s"], prefixes=["H"])


def test_wishes_reach_another_process_and_without_any_an_engine_stays_itself(tmp_path):
    engine = Shouting()
    assert Wishes().over(engine) is engine
    wishes = Wishes(True, ("a b", "é"), tmp_path / "terms.tsv")
    assert wishes_from(wishes.to_json()) == wishes
    assert wishes_from(Wishes().to_json()) == Wishes()
    (tmp_path / "terms.tsv").write_text("net\tNetz\n", encoding="utf-8")
    assert wishes.over(engine).write(["net %s é"]) == ["NET %s é Netz"]
    assert Wishes(keep=("é",)).over(engine).write(["net %s é"]) == ["NET %S é"]
    for term in ("", " a"):
        with pytest.raises(DecodingError, match="white space"):
            Wishes(keep=(term,)).over(engine)


# ---------------------------------------------------------------- a trained model
@pytest.fixture(scope="module")
def engine(model):
    return load(model)


def stands_in(word, text):
    return word in text.split()


def test_required_words_are_in_the_output_once_as_words(engine):
    texts = ["abc de", "edc ba", "", "ab"]
    found = engine.translate(texts, required=[["CAB"], ["A", "EE"], ["A"], []])
    assert [one.text.split().count("CAB") for one in found[:1]] == [1]
    assert all(stands_in(word, found[1].text) for word in ("A", "EE"))
    assert found[2].text == ""
    assert found[3].text == engine.translate(["ab"])[0].text
    alone = engine.translate(texts[:1], required=[["CAB"]])
    assert alone[0].text == found[0].text


def test_required_words_after_a_prefix_and_several_candidates(engine):
    search = engine.search.model_copy(update={"beam": 3, "n_best": 3})
    (found,) = engine.translate(["abc de"], search, ["DD"], [["BAD"]])
    assert len(found.candidates) == 3
    for candidate in found.candidates:
        assert candidate.text.startswith("DD")
        assert candidate.text.split().count("BAD") == 1


def test_what_cannot_be_required_is_refused(model, engine):
    for words, message in ((["é"], "vocabulary lacks"), ([" A"], "white space"), ([""], "white space")):
        with pytest.raises(DecodingError, match=message):
            engine.translate(["ab"], required=[words])
    with pytest.raises(DecodingError, match="2 lists for 1 texts"):
        engine.translate(["ab"], required=[[], []])
    with pytest.raises(DecodingError, match="do not fit into an output of 4"):
        engine.translate(["ab"], engine.search.model_copy(update={"cap": 4}), required=[["ABCDE"]])
    assert engine.spells("CAB")
    assert engine.fits("ab", ["CAB"])
    assert not engine.fits("ab", ["CAB"], engine.search.model_copy(update={"cap": 4}))
    assert engine.fits("ab", ["CAB"], engine.search.model_copy(update={"cap": 5}))  # a space, three letters, the end
    assert not engine.spells("%s")


def test_placeholders_survive_a_model_that_has_never_seen_one(engine):
    kept = Wishes(placeholders=True, keep=("abc",)).over(engine)
    texts = ["abc de", "ab %s cd", "{x} cab https://a.b", "%d%%"]
    for text, said in zip(texts, kept.write(texts), strict=True):
        assert Placeholders(terms=["abc"]).are_kept(text, said)
    assert kept.write(["cab"]) == engine.write(["cab"])
