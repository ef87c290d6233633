"""What a prefix still misses of the phrases that are wanted, by hand and beside trying everything."""

import random

import pytest

from regard.decoding.phrases import Phrase, Seams, Wanted, phrases_of
from regard.errors import DecodingError

END, NEW, YORK, CITY, CAR, PET = 3, 4, 5, 6, 7, 8
VOCAB = 9
FREE = Seams([False] * VOCAB, [False] * VOCAB)


def after(wanted, tokens):
    progress = wanted.start()
    for place, token in enumerate(tokens):
        progress = wanted.step(progress, tokens[:place], token)
    return progress


def is_complete(progress):
    return any(not any(reading.needs) and not reading.rest for reading in progress.readings)


def phrase(*tokens, times=1):
    return Phrase((tokens,), times)


@pytest.mark.parametrize(
    ("tokens", "missing"),
    [
        ((), 5),
        ((NEW,), 4),
        ((NEW, YORK), 3),  # one of the two, or two thirds of the other
        ((NEW, YORK, CITY), 2),
        ((NEW, YORK, CITY, NEW), 1),
        ((NEW, YORK, CITY, NEW, YORK), 0),
        ((NEW, YORK, NEW, YORK, CITY), 0),
        ((NEW, CITY), 5),
        ((NEW, NEW, YORK), 3),
    ],
)
def test_a_city_in_another_city_by_hand(tokens, missing):
    wanted = Wanted([phrase(NEW, YORK), phrase(NEW, YORK, CITY)], FREE)
    progress = after(wanted, tokens)
    assert wanted.tokens == 5
    assert wanted.missing(progress.readings) == missing
    assert is_complete(progress) is (missing == 0)


def test_useful_and_surplus_tokens_by_hand():
    wanted = Wanted([phrase(NEW, YORK), phrase(CITY)], FREE)
    assert wanted.useful(wanted.start(), ()) == {NEW, CITY}
    assert wanted.useful(after(wanted, (NEW,)), (NEW,)) == {YORK, NEW, CITY}
    both = (NEW, YORK, CITY, NEW)
    assert wanted.useful(after(wanted, both), both) == set()
    assert wanted.surplus(after(wanted, both), both) == {YORK, CITY}


def test_a_word_that_goes_on_is_not_the_phrase():
    begins, ends = [False] * VOCAB, [False] * VOCAB
    begins[PET] = ends[CAR] = ends[PET] = True  # "▁car" + "pet": carpet
    wanted = Wanted([phrase(CAR)], Seams(begins, ends))
    assert is_complete(after(wanted, (CAR,)))
    assert not is_complete(after(wanted, (CAR, PET)))
    assert is_complete(after(wanted, (CAR, NEW, PET)))
    pet = Wanted([Phrase(((PET,), (YORK, PET)))], Seams(begins, ends))
    assert not is_complete(after(pet, (CAR, PET)))
    assert is_complete(after(pet, (CAR, YORK, PET)))
    assert is_complete(after(pet, (NEW, PET)))
    alone = Wanted([phrase(PET)], Seams(begins, ends))  # nothing that can follow any token: no borders then
    assert is_complete(after(alone, (CAR, PET)))


def occurs(tokens, phrases, border):
    """Whether the phrases are all there, disjoint and bordered, by trying every way."""
    needed = [phrase for phrase in phrases for _ in range(phrase.times)]

    def rest_fits(place, used):
        if place == len(needed):
            return True
        for spelling in needed[place].spellings:
            for start in range(len(tokens) - len(spelling) + 1):
                end = start + len(spelling)
                own = set(range(start, end))
                here = tokens[start:end] == spelling and not own & used and border(tokens, start, end)
                if here and rest_fits(place + 1, used | own):
                    return True
        return False

    return rest_fits(0, frozenset())


def some_phrases(rng):
    spelled = [
        tuple({tuple(rng.choices((4, 5, 6), k=rng.randint(1, 3))) for _ in range(rng.randint(1, 2))})
        for _ in range(rng.randint(1, 3))
    ]
    return phrases_of([one for one in spelled for _ in range(rng.randint(1, 2))])


@pytest.mark.parametrize("seed", range(60))
def test_every_walk_that_leaves_room_ends_with_all_phrases_and_knows_it(seed):
    rng = random.Random(seed)
    begins, ends = ([rng.random() < 0.5 * (seed % 2) for _ in range(VOCAB)] for _ in range(2))
    phrases = some_phrases(rng)
    wanted = Wanted(phrases, Seams(begins, ends))

    def border(tokens, start, end):
        if not wanted.begins:
            return True
        left = start > 0 and ends[tokens[start - 1]] and begins[tokens[start]]
        return not left and not (end < len(tokens) and ends[tokens[end - 1]] and begins[tokens[end]])

    limit, tokens, progress = wanted.tokens + 1 + rng.randrange(4), (), wanted.start()
    while True:
        assert is_complete(progress) is occurs(tokens, phrases, border)
        room, last = limit - len(tokens) - 2, tokens[-1] if tokens else None
        useful = wanted.useful(progress, tokens)
        allowed = [
            token
            for token in (4, 5, 6)
            if (token in useful and wanted.missing(wanted.read(progress.readings, last, token)) <= room)
            or wanted.missing(wanted.besides(progress.readings, goes_on=begins[token])) <= room
        ] + [END] * is_complete(progress)
        token = rng.choice(allowed)
        if token == END:
            break
        progress, tokens = wanted.step(progress, tokens, token), (*tokens, token)
    assert len(tokens) < limit


def test_equal_phrases_are_one_that_is_wanted_more_often():
    assert phrases_of([((4,),), ((5,), (6,)), ((4,),)]) == [phrase(4, times=2), Phrase(((5,), (6,)))]


@pytest.mark.parametrize(("spellings", "times"), [((), 1), (((),), 1), (((4,),), 0)])
def test_an_empty_phrase_is_refused(spellings, times):
    with pytest.raises(DecodingError, match="required phrase"):
        Phrase(spellings, times)
