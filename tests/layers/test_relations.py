import math

import pytest
import torch

from regard.layers.positions import sinusoids
from regard.layers.relations import (
    Alibi,
    RelativeBias,
    Rotary,
    Unrelated,
    alibi_slopes,
    buckets_both_ways,
    buckets_of_past,
    distances,
    rotate,
)


def t5_bucket(key_minus_query, bidirectional, buckets, farthest):
    """The published formula, one distance at a time."""
    place = 0
    if bidirectional:
        buckets //= 2
        place = buckets if key_minus_query > 0 else 0
        far = abs(key_minus_query)
    else:
        far = max(-key_minus_query, 0)
    exact = buckets // 2
    if far < exact:
        return place + far
    wide = exact + math.floor(math.log(far / exact) / math.log(farthest / exact) * (buckets - exact) + 1e-9)
    return place + min(wide, buckets - 1)


@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20)])
def test_buckets_agree_with_the_published_formula(buckets, farthest):
    distance = torch.arange(-300, 301)
    both = [t5_bucket(d, True, buckets, farthest) for d in distance.tolist()]
    past = [t5_bucket(d, False, buckets, farthest) for d in distance.tolist()]
    assert buckets_both_ways(distance, buckets, farthest).tolist() == both
    assert buckets_of_past(distance, buckets, farthest).tolist() == past


def test_known_buckets_of_the_original():
    distance = torch.tensor([-128, -16, -1, 0, 1, 7, 8, 16, 127])
    assert buckets_both_ways(distance, 32, 128).tolist() == [15, 10, 1, 0, 17, 23, 24, 26, 31]
    assert buckets_of_past(-torch.tensor([0, 15, 16, 32, 64, 128]), 32, 128).tolist() == [0, 15, 16, 21, 26, 31]


def test_slopes_of_eight_heads_halve_from_one_half():
    assert alibi_slopes(8) == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(1) == [2.0**-8]


def test_other_head_counts_fill_in_from_the_next_power_of_two():
    assert alibi_slopes(6) == pytest.approx([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])
    assert alibi_slopes(12) == pytest.approx(alibi_slopes(8) + [2 ** -(i + 0.5) for i in range(4)])


def test_alibi_is_minus_slope_times_distance():
    bias = Alibi(2)(2, 3).bias
    assert bias is not None
    assert distances(2, 3).tolist() == [-4, -3, -2, -1, 0, 1]
    assert bias.tolist() == [[-m * abs(o) for o in range(-4, 2)] for m in (2**-4, 2**-8)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("relation", ["alibi", "relative"])
def test_a_bias_depends_on_distance_alone(relation, causal):
    layer = Alibi(3) if relation == "alibi" else RelativeBias(3, causal, buckets=8, farthest=20)
    whole, part = layer(9, 0).bias, layer(2, 7).bias
    # whole: distances −8 … 8; part: −8 … 1
    torch.testing.assert_close(part, whole[:, :10])


def test_a_relative_bias_is_looked_up_by_bucket_and_head():
    layer = RelativeBias(2, causal=True, buckets=8, farthest=20)
    bias = layer(4, 0).bias
    for o, distance in enumerate(range(-3, 4)):
        torch.testing.assert_close(bias[:, o], layer.table.weight[t5_bucket(distance, False, 8, 20)])


def test_rotation_keeps_lengths_and_turns_pairs_by_their_angle():
    x = torch.randn(1, 1, 5, 4, dtype=torch.float64)
    turned = rotate(x, sinusoids(5, 4))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    for position in range(5):
        for i, rate in enumerate((1.0, 0.01)):
            point = complex(*x[0, 0, position, 2 * i : 2 * i + 2].tolist())
            point *= complex(math.cos(position * rate), math.sin(position * rate))
            assert turned[0, 0, position, 2 * i].item() == pytest.approx(point.real)
            assert turned[0, 0, position, 2 * i + 1].item() == pytest.approx(point.imag)


def test_rotated_products_depend_on_distance_alone():
    table = sinusoids(12, 6)
    q, k = torch.randn(1, 1, 1, 6, dtype=torch.float64), torch.randn(1, 1, 1, 6, dtype=torch.float64)

    def product(i, j):
        return (rotate(q, table[i : i + 1]) * rotate(k, table[j : j + 1])).sum()

    torch.testing.assert_close(product(3, 1), product(11, 9))
    assert not torch.isclose(product(3, 1), product(1, 3))


def test_rotary_angles_continue_where_decoding_stands():
    rotary = Rotary(4, 6, 100.0)
    whole, later = rotary(9, 0).angles, rotary(2, 7).angles
    assert torch.equal(later, whole[7:])


def test_no_relation_is_neither_bias_nor_angle():
    relative = Unrelated()(3, 2)
    assert relative.bias is None
    assert relative.angles is None
