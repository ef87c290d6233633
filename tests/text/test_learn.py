"""Learning a vocabulary: the same each time, quiet, of the right size, and clear about what cannot be."""

import random
from collections import Counter

import pytest
from pydantic import ValidationError

from regard.errors import DataError, RecipeError
from regard.text import learn as learning
from regard.text.characters import count_characters
from regard.text.learn import TRANSLATED, choose_size, learn
from regard.text.options import TextOptions
from regard.text.subwords import Subwords
from regard.text.tokeniser import Tokeniser

KINDS = ("bpe", "unigram", "characters", "bytes")
SUBWORDS = ("bpe", "unigram")


def corpus(lines, seed=0):
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(1, 7))) for _ in range(200)]
    return [" ".join(rng.choices(words, k=8)) for _ in range(lines)]


LINES = corpus(200)


def saved(tokeniser, folder):
    tokeniser.save(folder, "x")
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("kind", KINDS)
def test_learning_twice_writes_the_same_bytes(kind, tmp_path):
    options = TextOptions(kind=kind)
    assert saved(learn(LINES, options, 1), tmp_path / "a") == saved(learn(LINES, options, 1), tmp_path / "b")


@pytest.mark.parametrize("kind", KINDS)
def test_learning_is_silent(kind, capfd):
    assert isinstance(learn(LINES, TextOptions(kind=kind), 1), Tokeniser)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("kind", SUBWORDS)
def test_a_given_size_is_the_size(kind):
    for size in (290, 333):
        assert len(learn(LINES, TextOptions(kind=kind, size=size), 1)) == size


@pytest.mark.parametrize("kind", SUBWORDS)
def test_a_size_the_text_does_not_allow_is_refused_with_the_largest_one(kind):
    most = len(learn(LINES, TextOptions(kind=kind), 1))
    with pytest.raises(
        RecipeError, match=r"^text\.size: 50000 is larger than this text allows \(at most (\d+)\); .*$"
    ) as found:
        learn(LINES, TextOptions(kind=kind, size=50_000), 1)
    limit = int(str(found.value).split("at most ")[1].split(")")[0])
    assert limit >= most
    assert len(learn(LINES, TextOptions(kind=kind, size=limit), 1)) == limit


@pytest.mark.parametrize("kind", SUBWORDS)
def test_a_size_without_room_for_the_characters_is_refused_with_the_smallest_one(kind):
    """4 special, 256 bytes, 8 letters and the space."""
    with pytest.raises(RecipeError, match=r"^text\.size: 100 is too small .* \(at least 269\); "):
        learn(LINES, TextOptions(kind=kind, size=100), 1)


@pytest.mark.parametrize("kind", SUBWORDS)
@pytest.mark.parametrize("lines", [["a"], ["a b"], [" "], ["日本"], ["x" * 9], ["aa"] * 3], ids=repr)
def test_a_chosen_size_always_fits(kind, lines):
    tokeniser = learn(lines, TextOptions(kind=kind), 1)
    assert len(tokeniser) <= choose_size(count_characters(lines), byte_fallback=True)
    assert tokeniser.decode(tokeniser.encode(lines[0])) == lines[0]


def test_the_chosen_size_follows_the_published_advice():
    """30k pairs of Multi30k are 4 million characters; a million pairs of news are 300 million."""
    assert 3_500 <= choose_size(Counter(x=4_000_000), True) <= 4_500
    assert 12_000 <= choose_size(Counter(x=300_000_000), True) <= 18_000
    assert choose_size(Counter(x=10**11), True) == 32_000 + 4 + 256 + 2


def test_the_chosen_size_is_the_sum_of_its_parts():
    """3600 · ∛(4000 / 4·10⁶) = 360; 4 special, 256 bytes, a, b and the space."""
    assert choose_size(Counter("ab" * 2_000), True) == 360 + 4 + 256 + 2 + 1
    assert choose_size(Counter("ab" * 2_000), False) == 360 + 4 + 2 + 1


def test_two_languages_have_twice_the_pieces_of_one():
    """7200 · ∛(4000 / 4·10⁶) = 720."""
    counts = Counter("ab" * 2_000)
    assert choose_size(counts, True, TRANSLATED) == 720 + 4 + 256 + 2 + 1
    assert choose_size(Counter(x=10**11), True, TRANSLATED) == 32_000 + 4 + 256 + 2


def test_the_chosen_size_leaves_the_rarest_characters_to_their_bytes():
    common = "abcd" * 10_000
    assert choose_size(Counter(common + "é"), True) == choose_size(Counter(common + "a"), True)


@pytest.mark.parametrize("kind", SUBWORDS)
def test_lines_that_sentencepiece_would_leave_out_are_learned_from(kind):
    """A tab, a NUL, a ▁, a ▅, a surrogate or great length: the words around it become pieces all the same."""
    for spoiler in ("\t", "\x00", "\n", "▁", "▅", "\ud800", "z" * 5_000):
        lines = [f"{spoiler} remarkable {spoiler} remarkable"] * 20
        assert len(learn(lines, TextOptions(kind=kind), 1).encode("remarkable")) <= 2


def test_a_line_longer_than_sentencepiece_can_take_is_learned_from():
    """The library aborts the whole process on a word of 65,536 characters."""
    tokeniser = learn(["ab" * 40_000], TextOptions(), 1)
    assert len(tokeniser.encode("ab" * 40)) < 20


def test_special_names_in_the_corpus_stay_ordinary_text():
    lines = ["<s> <unk> <0x41> </s> <pad>"] * 50
    for kind in SUBWORDS:
        tokeniser = learn(lines, TextOptions(kind=kind, byte_fallback=False), 1)
        assert tokeniser.decode(tokeniser.encode(lines[0])) == lines[0]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters"])
def test_a_corpus_without_text_is_refused(kind):
    for lines in ([], [""], ["", "\n"]):
        with pytest.raises(DataError, match="without a single character"):
            learn(lines, TextOptions(kind=kind), 1)


def test_a_large_corpus_is_sampled_by_its_seed_alone(monkeypatch, tmp_path):
    few = corpus(20, seed=1)
    monkeypatch.setattr(learning, "MOST_LINES", 10)
    models = [saved(learn(few, TextOptions(), seed), tmp_path / name) for seed, name in ((1, "a"), (1, "b"), (2, "c"))]
    assert models[0] == models[1] != models[2]
    kept = [few[i] for i in sorted(random.Random(1).sample(range(20), 10))]
    assert models[0] == saved(learn(kept, TextOptions(), 5), tmp_path / "d")


def test_characters_are_numbered_by_frequency_then_code_point():
    tokeniser = learn(["bbb aa cc", "d"], TextOptions(kind="characters"), 1)
    assert [tokeniser.name(id) for id in range(4, len(tokeniser))] == ["b", "▁", "a", "c", "d"]
    assert tokeniser.encode("bad!") == [4, 6, 8, 1]


def test_a_limited_alphabet_keeps_the_most_frequent_characters():
    tokeniser = learn(["bbb aa cc", "d"], TextOptions(kind="characters", size=6), 1)
    assert len(tokeniser) == 6
    assert tokeniser.decode(tokeniser.encode("b a d")) == "b  "


def test_bytes_refuse_any_other_size():
    assert len(learn([], TextOptions(kind="bytes", size=260), 1)) == 260
    with pytest.raises(RecipeError, match=r"text\.size: 300, but bytes always make 260"):
        learn([], TextOptions(kind="bytes", size=300), 1)


def test_bytes_are_their_values_after_the_specials():
    tokeniser = learn([], TextOptions(kind="bytes"), 1)
    assert tokeniser.encode("aé") == [4 + 0x61, 4 + 0xC3, 4 + 0xA9]
    assert [tokeniser.name(id) for id in tokeniser.encode("a é")] == ["a", "▁", "<0xC3>", "<0xA9>"]


@pytest.mark.parametrize("wrong", [{"size": 4}, {"dropout": 1.0}, {"dropout": -0.1}, {"kind": "words"}, {"sizes": 9}])
def test_impossible_options_are_refused(wrong):
    with pytest.raises(ValidationError):
        TextOptions(**wrong)


@pytest.mark.parametrize("kind", SUBWORDS)
def test_a_vocabulary_without_bytes_has_none(kind):
    tokeniser = learn(LINES, TextOptions(kind=kind, size=60, byte_fallback=False), 1)
    assert isinstance(tokeniser, Subwords)
    assert not any(tokeniser.name(id).startswith("<0x") for id in range(len(tokeniser)))
    assert [tokeniser.name(id) for id in tokeniser.encode("XYZ")] == ["▁", "<unk>"]
