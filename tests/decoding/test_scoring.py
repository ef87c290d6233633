import pytest
import torch
from toy_decoders import BOS, EOS, KINDS, steps_of, toy, toy_memory

from regard.decoding import scoring
from regard.decoding.options import SearchOptions
from regard.decoding.scoring import score
from regard.decoding.search import beam_search

kinds = pytest.mark.parametrize("kind", KINDS)


def rectangle(rows):
    width = max(map(len, rows))
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return tokens, torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]


@kinds
def test_scores_of_a_searchs_own_output_are_what_it_reported(kind):
    decoder, memory = toy(kind, vocab=6, seed=1), toy_memory(3)
    found = beam_search(
        decoder, memory, max_lengths=torch.tensor([3, 8, 5]), options=SearchOptions(beam=4), bos=BOS, eos=EOS
    )
    rows = [[*best.tokens, EOS] if best.finished else list(best.tokens) for (best,) in found]
    scores = score(decoder, memory, *rectangle(rows), bos=BOS)
    assert scores.sum(1).tolist() == pytest.approx([best.log_probability for (best,) in found])
    for line, (best,) in zip(scores.tolist(), found, strict=True):
        assert line[: len(best.token_log_probs)] == pytest.approx(best.token_log_probs)


@kinds
@pytest.mark.parametrize("positions", [1, 2, 1024])
def test_scores_agree_with_one_row_at_a_time_and_padding_scores_zero(kind, positions, monkeypatch):
    monkeypatch.setattr(scoring, "POSITIONS", positions)
    decoder, memory, rows = toy(kind, vocab=5), toy_memory(3), [[4, 2, 3, EOS], [EOS], [2, 2, EOS]]
    scores = score(decoder, memory, *rectangle(rows), bos=BOS)
    for row, tokens in enumerate(rows):
        expected = steps_of(decoder, memory, row, tokens) + [0.0] * (4 - len(tokens))
        assert scores[row].tolist() == pytest.approx(expected)


def test_what_stands_in_the_padding_does_not_matter():
    decoder, memory = toy("caching", vocab=5), toy_memory(2)
    tokens, mask = rectangle([[4, 3, EOS], [EOS]])
    other = tokens.masked_fill(~mask, 4)
    assert torch.equal(score(decoder, memory, tokens, mask, bos=BOS), score(decoder, memory, other, mask, bos=BOS))
