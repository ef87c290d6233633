"""Folds go there and back, and everything that does not fit is refused by name."""

import pytest
import torch

from regard.errors import ModelFormatError
from regard.published.layout import (
    Entry,
    Made,
    Repeated,
    Reshaped,
    Rows,
    Same,
    Scaled,
    Stacked,
    Transposed,
    Values,
    linear,
    norm,
    packed,
    to_ours,
    to_theirs,
)


def numbers(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


ORDER = (-1, 2, 0, -1, 1)
FOLDS = {
    "same": (Same(), [numbers(2, 3)]),
    "transposed": (Transposed(), [numbers(2, 3)]),
    "stacked": (Stacked(3), [numbers(2, 3), numbers(2, 3) * 10, numbers(2, 3) * 100]),
    "stacked vectors": (Stacked(2), [numbers(3), -numbers(3)]),
    "scaled": (Scaled(4.0), [numbers(2, 3)]),
    "reshaped": (Reshaped((4, 1, 3), (4, 3)), [numbers(4, 1, 3)]),
    "rows": (Rows(ORDER), [numbers(3, 2)]),
    "values": (Values(ORDER, -9.0), [numbers(3)]),
    "repeated": (Repeated(2, Rows(ORDER)), [numbers(3, 2), numbers(3, 2)]),
    "made": (Made(numbers(4)), []),
}


@pytest.mark.parametrize("name", FOLDS)
def test_split_undoes_join(name):
    fold, parts = FOLDS[name]
    torch.testing.assert_close(fold.split(fold.join(parts)), parts, rtol=0, atol=0)


def test_rows_and_values_stand_in_our_order_with_fillers():
    rows = Rows(ORDER).join([torch.tensor([[1.0, 2], [3, 4], [5, 6]])])
    assert rows.tolist() == [[0, 0], [5, 6], [1, 2], [0, 0], [3, 4]]
    assert Values(ORDER, -1e9).join([torch.tensor([1.0, 2, 3])]).tolist() == [-1e9, 3, 1, -1e9, 2]


def test_parts_stand_above_one_another():
    joined = Stacked(2).join([torch.tensor([[1.0, 2]]), torch.tensor([[3.0, 4]])])
    assert joined.tolist() == [[1, 2], [3, 4]]
    assert Transposed().join([joined]).tolist() == [[1, 3], [2, 4]]
    assert Scaled(3.0).join([joined]).tolist() == [[3, 6], [9, 12]]


def test_a_kernel_as_a_matrix_computes_the_convolution():
    kernel, image = numbers(2, 3, 4, 4).double(), torch.randn(1, 3, 4, 4).double()
    matrix = Reshaped((2, 3, 4, 4), (2, -1)).join([kernel])
    expected = torch.nn.functional.conv2d(image, kernel)[0, :, 0, 0]
    torch.testing.assert_close(matrix @ image.flatten(), expected)


LAYOUT = [
    *linear("a", "one"),
    *packed("b", ["q", "k"]),
    *norm("c", "ln"),
    Entry("d", (), Made(numbers(3))),
    Entry("e", ("table", "copy"), Repeated(2, Rows(ORDER))),
]
OURS = {
    "a.weight": numbers(2, 3),
    "a.bias": numbers(2),
    "b.weight": numbers(4, 3),
    "b.bias": numbers(4),
    "c.gain": numbers(3),
    "c.shift": -numbers(3),
    "d": numbers(3),
    "e": Rows(ORDER).join([numbers(3, 2)]),
}
THEIRS = to_theirs(LAYOUT, OURS, "ours")


def test_names_of_layers_are_as_each_side_calls_them():
    table = {"one.weight", "one.bias", "q.weight", "q.bias", "k.weight", "k.bias", "ln.weight", "ln.bias"}
    assert THEIRS.keys() == table | {"table", "copy"}
    assert THEIRS["k.bias"].tolist() == [3, 4]
    assert THEIRS["ln.bias"].tolist() == [-1, -2, -3]


def test_a_layout_goes_there_and_back():
    torch.testing.assert_close(to_ours(LAYOUT, THEIRS, "m", like=OURS), OURS, rtol=0, atol=0)


def test_no_two_tensors_that_go_back_share_memory():
    assert len({tensor.data_ptr() for tensor in THEIRS.values()}) == len(THEIRS)
    assert all(tensor.is_contiguous() for tensor in THEIRS.values())


def without(name):
    return {key: tensor for key, tensor in THEIRS.items() if key != name}


def test_ignored_names_may_be_there_and_no_others():
    extra = THEIRS | {"h.0.mask": torch.ones(2, dtype=torch.bool), "h.1.mask": numbers(1)}
    torch.testing.assert_close(to_ours(LAYOUT, extra, "m", ["h.*.mask"]), OURS)
    with pytest.raises(ModelFormatError, match=r"^m: unknown tensor 'h.0.mask' \(and 1 more\); expected"):
        to_ours(LAYOUT, extra, "m", ["mask"])


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (without("k.bias"), "^m: no tensor 'k.bias'; expected the tensors that its config describes$"),
        ({}, r"^m: no tensor 'copy' \(and 9 more\); expected"),
        (THEIRS | {"one.bias": torch.tensor([1, 2])}, "^m: tensor 'one.bias' is torch.int64, expected floating point$"),
        (
            THEIRS | {"one.weight": numbers(2, 4)},
            r"^m: tensor 'one.weight' is \(2, 4\), expected \(2, 3\) by its config$",
        ),
        (THEIRS | {"q.bias": numbers(3)}, r"^m: tensor 'q.bias' is \(3,\), expected \(2,\)"),
        (THEIRS | {"table": numbers(3, 2) + 1}, "^m: tensors 'table', 'copy' differ, though the config says"),
        (THEIRS | {"table": numbers(4, 2)}, r"^m: tensor 'table' is \(4, 2\), expected \(3, 2\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_their_name(theirs, message):
    with pytest.raises(ModelFormatError, match=message):
        to_ours(LAYOUT, theirs, "m", like=OURS)


@pytest.mark.parametrize(
    ("fold", "parts", "message"),
    [
        (Transposed(), [numbers(3)], r"tensor 'x0' is \(3,\), expected a matrix"),
        (Stacked(2), [numbers(3), numbers(4)], r"tensors 'x0', 'x1' are \(3,\), \(4,\), expected 2 of one size"),
        (Stacked(2), [torch.tensor(1.0)] * 2, r"are \(\), expected 2 of one size"),
        (Reshaped((1, 6), (6,)), [numbers(6)], r"is \(6,\), expected \(1, 6\)"),
        (Rows(ORDER), [numbers(4, 2)], r"is \(4, 2\), expected one for each of 3 ids of the vocabulary"),
        (Values(ORDER, 0.0), [torch.tensor(1.0)], r"is \(\), expected one for each of 3 ids"),
    ],
)
def test_a_fold_says_what_it_expected(fold, parts, message):
    names = tuple(f"x{i}" for i in range(len(parts)))
    with pytest.raises(ModelFormatError, match=message):
        to_ours([Entry("ours", names, fold)], dict(zip(names, parts, strict=True)), "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d": numbers(3) + 1}, "^m: tensor 'd' was trained, and the published model has no place for it$"),
        ({"b.bias": numbers(5)}, r"^m: tensor 'b.bias' is \(5,\), expected 2 equal parts above one another$"),
        ({"e": numbers(4, 2)}, r"^m: tensor 'e' is \(4, 2\), expected one for each of 5 ids"),
        ({"f": numbers(1)}, "^m: unknown tensor 'f'"),
    ],
)
def test_what_cannot_go_back_is_refused_by_our_name(change, message):
    with pytest.raises(ModelFormatError, match=message):
        to_theirs(LAYOUT, OURS | change, "m")
