"""Which tokens are hidden, how, and that special ones never are."""

import numpy as np
import pytest
from pydantic import ValidationError

from regard.data.chance import chance
from regard.data.masking import choose_tokens, choose_words, mask_tokens
from regard.tasks.options import MaskedOptions
from regard.text.special import BOS, EOS, PAD, UNK

VOCABULARY = 50
MASK = VOCABULARY - 1
EVERY_OTHER = np.arange(VOCABULARY) % 2 == 0  # even ids begin a word


def row(rng: np.random.Generator, length: int) -> np.ndarray:
    """BOS, words with an unknown one here and there, EOS, padding."""
    inside = rng.integers(4, MASK, length, dtype=np.int32)
    inside[rng.random(length) < 0.1] = UNK
    return np.concatenate([[BOS], inside, [EOS], [PAD] * 3]).astype(np.int32)


def choosers():
    return {
        "tokens": lambda ids, share, rng: choose_tokens(ids, share, rng),
        "words": lambda ids, share, rng: choose_words(ids, EVERY_OTHER, share, rng),
    }


def words_of(ids: np.ndarray) -> list[list[int]]:
    """Places of each word, by a plain loop."""
    found: list[list[int]] = []
    open_word = False
    for place, id in enumerate(ids.tolist()):
        if id < 4:
            open_word = False
        elif EVERY_OTHER[id] or not open_word:
            found.append([place])
            open_word = True
        else:
            found[-1].append(place)
    return found


@pytest.mark.parametrize("kind", choosers())
@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_special_ids_are_never_chosen_and_at_least_one_other_is(kind, length):
    for index in range(30):
        ids = row(chance(0, 0, index), length)
        chosen = choosers()[kind](ids, 0.15, chance(1, 0, index))
        assert not chosen[ids < 4].any()
        assert chosen.any() == (ids >= 4).any()


@pytest.mark.parametrize(
    ("tokens", "share", "expected"), [(1, 0.15, 1), (20, 0.15, 3), (10, 0.5, 5), (7, 1.0, 7), (100, 0.15, 15)]
)
def test_the_number_of_tokens_is_the_rounded_share(tokens, share, expected):
    ids = np.concatenate([[BOS], np.full(tokens, 9), [EOS]]).astype(np.int32)
    for index in range(5):
        assert choose_tokens(ids, share, chance(0, 0, index)).sum() == expected


def test_a_row_of_special_ids_has_nothing_to_choose():
    ids = np.array([BOS, UNK, EOS, PAD], dtype=np.int32)
    assert not choose_tokens(ids, 0.5, chance(0, 0, 0)).any()
    assert not choose_words(ids, EVERY_OTHER, 0.5, chance(0, 0, 0)).any()


@pytest.mark.parametrize("share", [0.15, 0.4, 1.0])
def test_words_are_chosen_whole_within_the_budget_and_no_other_would_fit(share):
    for index in range(60):
        ids = row(chance(2, 0, index), 30)
        chosen = choose_words(ids, EVERY_OTHER, share, chance(3, 0, index))
        words = words_of(ids)
        budget = max(1, round(share * sum(map(len, words))))
        taken = [word for word in words if chosen[word].all()]
        assert chosen.sum() == sum(map(len, taken))  # no word in part
        left = budget - int(chosen.sum())
        assert left >= 0 or len(taken) == 1
        assert left <= 0 or all(len(word) > left for word in words if word not in taken)


def test_one_word_that_is_longer_than_the_budget_is_chosen_all_the_same():
    ids = np.array([BOS, 4, 5, 7, 9, 11, EOS], dtype=np.int32)  # one word of five pieces, budget 1
    assert choose_words(ids, EVERY_OTHER, 0.15, chance(0, 0, 0)).tolist() == [False, *[True] * 5, False]


def test_a_piece_after_a_special_token_begins_a_word_whatever_it_is():
    ids = np.array([BOS, 5, UNK, 7, EOS], dtype=np.int32)  # 5 and 7 continue words, but nothing precedes them
    found = {tuple(choose_words(ids, EVERY_OTHER, 0.5, chance(0, 0, index)).tolist()) for index in range(20)}
    assert found == {(False, True, False, False, False), (False, False, False, True, False)}


def test_every_token_is_chosen_equally_often():
    ids = np.arange(4, 44, dtype=np.int32)
    rounds, rng = 600, chance(0, 0, 0)
    counts = sum(choose_tokens(ids, 0.15, rng).astype(int) for _ in range(rounds))
    assert counts.sum() == 6 * rounds
    assert abs(counts - 0.15 * rounds).max() < 5 * (rounds * 0.15 * 0.85) ** 0.5  # five standard deviations


def test_of_the_chosen_tokens_eight_in_ten_are_masked_one_is_random_and_one_stays():
    n = 100_000
    ids = np.full(n, 7, dtype=np.int32)
    seen = mask_tokens(ids, np.ones(n, dtype=bool), VOCABULARY, chance(0, 0, 0))
    masked, kept = (seen == MASK).mean(), (seen == 7).mean()
    by_chance = 1 / (MASK - 4)  # a random token is the old one now and then
    assert abs(masked - 0.8) < 5 * (0.8 * 0.2 / n) ** 0.5
    assert abs(kept - (0.1 + 0.1 * by_chance)) < 5 * (0.1 * 0.9 / n) ** 0.5
    others = seen[(seen != MASK) & (seen != 7)]
    assert set(others.tolist()) == set(range(4, MASK)) - {7}  # every ordinary id, no special one


def test_what_is_not_chosen_is_seen_as_it_is():
    ids = row(chance(0, 0, 1), 200)
    chosen = choose_tokens(ids, 0.3, chance(0, 0, 2))
    before = ids.copy()
    seen = mask_tokens(ids, chosen, VOCABULARY, chance(0, 0, 3))
    assert (seen[~chosen] == ids[~chosen]).all()
    assert (seen[chosen] != ids[chosen]).mean() > 0.5
    assert (ids == before).all()
    assert seen.dtype == np.int32


@pytest.mark.parametrize("kind", choosers())
def test_a_row_is_masked_alike_whenever_seed_epoch_and_index_are(kind):
    def masked(*key: int) -> tuple[list[int], list[bool]]:
        rng, ids = chance(*key), row(chance(9, 9, 9), 60)
        chosen = choosers()[kind](ids, 0.15, rng)
        return mask_tokens(ids, chosen, VOCABULARY, rng).tolist(), chosen.tolist()

    assert masked(1, 2, 3) == masked(1, 2, 3)
    assert len({str(masked(*key)) for key in [(1, 2, 3), (1, 2, 4), (1, 3, 3), (2, 2, 3), (2, 1, 3), (1, 3, 2)]}) == 6


def test_the_first_example_has_other_chances_than_the_order_of_the_batches():
    order = np.random.default_rng(np.random.SeedSequence([4, 2]))
    assert chance(4, 2, 0).integers(1 << 60) != order.integers(1 << 60)


@pytest.mark.parametrize("share", [0, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValidationError):
        MaskedOptions(share=share)
