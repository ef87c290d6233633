import math

import pytest
import torch

from regard.errors import DecodingError
from regard.layers.positions import Added, Concatenated, Learned, Sinusoid, Unplaced, sinusoids, sinusoids_in_halves


def test_sinusoids_begin_as_the_paper_says():
    table = sinusoids(2, 512)
    assert table[0].tolist() == [0.0, 1.0] * 256
    assert table[1, :4].tolist() == pytest.approx([0.8415, 0.5403, 0.8219, 0.5697], abs=1e-4)


@pytest.mark.parametrize("base", [10_000.0, 50.0])
def test_sinusoids_agree_with_the_formula_one_number_at_a_time(base):
    table = sinusoids(7, 6, base)
    for position in range(7):
        for i in range(3):
            angle = position / base ** (2 * i / 6)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle))
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle))


def test_a_shift_of_sinusoids_is_a_rotation_of_each_pair():
    table, shift = sinusoids(9, 4), 3
    for i, rate in enumerate((1.0, 100.0**-1)):
        sin, cos = table[:, 2 * i], table[:, 2 * i + 1]
        turned = sin[:6] * math.cos(shift * rate) + cos[:6] * math.sin(shift * rate)
        torch.testing.assert_close(turned, sin[3:9])


def test_a_table_that_grew_agrees_with_one_that_was_long_from_the_start():
    short, long = Sinusoid(3, 6, 100.0).double(), Sinusoid(40, 6, 100.0).double()
    first = short(2, 1)
    assert torch.equal(short(20, 5), long(20, 5))
    assert torch.equal(short(2, 1), first)


def test_a_table_is_read_from_where_decoding_stands():
    for table in (Sinusoid(8, 4, 100.0), Learned(8, 4)):
        assert torch.equal(table(3, 2), table(8, 0)[2:5])


def test_sinusoids_are_not_saved_and_learned_positions_are():
    assert list(Sinusoid(3, 4, 100.0).state_dict()) == []
    assert list(Learned(3, 4).state_dict()) == ["table.weight"]


def test_learned_positions_end_with_a_message():
    with pytest.raises(DecodingError, match=r"found a sequence of 9 tokens, but the model learned 8 positions"):
        Learned(8, 4)(3, 6)


def test_positions_are_added_concatenated_or_absent():
    x, table = torch.randn(2, 3, 4), Sinusoid(8, 4, 100.0)
    rows = table(3, 1)
    assert torch.equal(Added(table)(x, 1), torch.stack([x[0] + rows, x[1] + rows]))
    both = Concatenated(table)(x, 1)
    assert torch.equal(both[..., :4], x)
    assert torch.equal(both[1, :, 4:], rows)
    assert torch.equal(Unplaced()(x, 1), x)


def test_in_halves_all_sines_come_before_all_cosines():
    table = sinusoids_in_halves(5, 6, 50.0)
    for position in range(5):
        angles = [position / 50 ** (2 * i / 6) for i in range(3)]
        assert table[position].tolist() == pytest.approx([*map(math.sin, angles), *map(math.cos, angles)])
    grown = Sinusoid(2, 6, 50.0, sinusoids_in_halves)
    assert torch.equal(grown(4, 1), table[1:].float())
