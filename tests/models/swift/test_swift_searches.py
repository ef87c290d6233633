"""Whatever searches by SwiftDecoder finds what it would find by TransformerDecoder."""

import pytest
import torch
from swift_models import LONGEST, SOURCES, VARIANTS, VOCAB, build, encode

from regard.decoding.bulk import translate, write
from regard.decoding.greedy import greedy_search
from regard.decoding.options import SamplingOptions, SearchOptions
from regard.decoding.sampling import sample
from regard.decoding.search import Ban, beam_search
from regard.decoding.shortlist import Narrowed
from regard.errors import DecodingError
from regard.models.interface import SequenceToSequence
from regard.models.swift import SwiftDecoder
from regard.native.inference import native
from regard.text.special import BOS, EOS, PAD

pytestmark = pytest.mark.skipif(native is None, reason="needs the compiled part of regard, and so a C compiler")


def search(decoder, memory, limits, **settings):
    prefix, adjust = settings.pop("prefix", None), settings.pop("adjust", ())
    return beam_search(
        decoder,
        memory,
        max_lengths=torch.tensor(limits),
        options=SearchOptions(**settings),
        bos=BOS,
        eos=EOS,
        prefix=prefix,
        adjust=adjust,
    )


def same(ours, theirs, close_to=1e-4):
    assert [[(h.tokens, h.finished) for h in found] for found in ours] == [
        [(h.tokens, h.finished) for h in found] for found in theirs
    ]
    for found, expected in zip(ours, theirs, strict=True):
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=close_to)
        for one, other in zip(found, expected, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=close_to)


def test_beam_search_finds_the_same(model, memory):
    swift = SwiftDecoder(model.decoder, native)
    for settings in ({"beam": 1}, {"beam": 4, "n_best": 4, "length_penalty": 0.6}):
        same(*(search(decoder, memory, [12, 4, 7], **settings) for decoder in (swift, model.decoder)))


@pytest.mark.parametrize("listed", [None, [2, 4, 5, 8, 9], range(VOCAB)])
def test_tokens_chosen_in_one_pass_are_those_chosen_in_several(plain, monkeypatch, listed):
    memory, options = encode(plain, SOURCES), SearchOptions(beam=3, n_best=3)
    narrow = None if listed is None else Narrowed(plain.decoder.output, torch.tensor(list(listed)))
    found = []
    for way in (native, None):
        monkeypatch.setattr("regard.decoding.best.native", way)
        found.append(
            beam_search(
                plain.decoder,
                memory,
                max_lengths=torch.tensor([12, 4, 7]),
                options=options,
                bos=BOS,
                eos=EOS,
                adjust=(Ban([0]),),
                narrow=narrow,
            )
        )
    same(*found)


def late(log_probs, tokens, sentences):
    """The end token is faint, so that sentences are long and end, or are cut, at different steps."""
    return log_probs.index_add(1, torch.tensor([EOS]), log_probs.new_full((len(log_probs), 1), -6.0))


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 3, "n_best": 2, "prefix": [[4, 5], [], [6] * 9]}])
def test_long_beam_searches_find_the_same(plain, settings):
    memory, adjust = encode(plain, SOURCES), (late, Ban([PAD, BOS]))
    ours, theirs = (
        search(decoder, memory, [42, 13, 30], adjust=adjust, **settings)
        for decoder in (SwiftDecoder(plain.decoder, native), plain.decoder)
    )
    same(ours, theirs)
    assert max(len(h.tokens) for found in ours for h in found) > 12


def test_the_same_seed_draws_the_same(model, memory):
    swift = SwiftDecoder(model.decoder, native)
    ours, theirs = (
        sample(
            decoder,
            memory,
            max_lengths=torch.tensor([18, 5, 9]),
            options=SamplingOptions(samples=4, temperature=1.5, top_k=8),
            bos=BOS,
            eos=EOS,
            generator=torch.Generator().manual_seed(6),
        )
        for decoder in (swift, model.decoder)
    )
    same(ours, theirs)


def test_whole_files_are_translated_the_same(plain):
    sources = [[5, 6], [7, 8, 9, 10, 4], [6], [], [9, 9, 4], [4, 5] * 9]
    twin = SequenceToSequence(plain.encoder, SwiftDecoder(plain.decoder, native))
    for beam in (1, 4):
        options = SearchOptions(beam=beam, max_ratio=1.0, max_extra=4)
        same(translate(twin, sources, options, batch_tokens=40), translate(plain, sources, options))
        assert write(twin, sources, options, batch_tokens=40) == write(plain, sources, options)


# ---------------------------------------------------------------- the likeliest tokens, in one call
def written(decoder, memory, limits, **chosen):
    limits = torch.tensor(limits, dtype=torch.long)
    return greedy_search(decoder, memory, max_lengths=limits, bos=BOS, eos=EOS, **chosen)


def test_all_steps_in_one_call_write_what_single_steps_write(model, memory):
    swift, limits = SwiftDecoder(model.decoder, native), [12, 4, 7]
    for chosen in ({"never": [PAD]}, {"never": [PAD, EOS]}):
        assert written(swift, memory, limits, **chosen) == written(model.decoder, memory, limits, **chosen)


def test_rows_that_end_leave_the_others_as_they_were(plain, monkeypatch):
    memory, limits = encode(plain, [SOURCES[i % 3] for i in range(40)]), [1 + 7 * i % 23 for i in range(40)]
    swift = SwiftDecoder(plain.decoder, native)
    expected = written(plain.decoder, memory, limits, never=[EOS])
    assert [len(line) for line in expected] == limits
    for threads in (1, 3):
        monkeypatch.setattr("regard.native.shares.LEAST", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert written(swift, memory, limits, never=[EOS]) == expected


@pytest.mark.parametrize("name", ["sinusoids before the norm", "rotary", "one head, post-norm"])
def test_sentences_that_wait_take_the_places_of_those_that_end(name):
    """Three times as many as grow at a time: each begins at a step of its own, and none notices the others."""
    model, count = build(**VARIANTS[name]), 300
    memory, limits = (
        encode(model, [SOURCES[i % 3][: 1 + i % 5] for i in range(count)]),
        [1 + 7 * i % 23 for i in range(count)],
    )
    swift = SwiftDecoder(model.decoder, native)
    for never in ([PAD], [PAD, EOS]):
        assert written(swift, memory, limits, never=never) == written(model.decoder, memory, limits, never=never)


def test_a_sentence_whose_numbers_are_not_finite_is_named_and_alone(plain):
    memory, swift = encode(plain, SOURCES), SwiftDecoder(plain.decoder, native)
    memory.values[1] = torch.nan
    with pytest.raises(DecodingError, match=r"sentence 1: .* weights are not finite"):
        written(swift, memory, [9, 9, 9])


def test_learned_positions_that_end_before_the_longest_output_are_met_step_by_step():
    model = build(positions="learned")
    memory, swift = encode(model, SOURCES), SwiftDecoder(model.decoder, native)
    limits = [3, 5, LONGEST + 1]
    with pytest.raises(DecodingError, match=f"the model learned {LONGEST} positions"):
        written(swift, memory, limits, never=[EOS])
    always_end = [id for id in range(VOCAB) if id != EOS]
    assert written(swift, memory, limits, never=always_end) == [[EOS]] * 3
