"""Smooth masks are the paper's: bilinear, shifted, kept as often as asked; and an image is seen through them."""

import itertools

import pytest
import torch
from torch import nn

from regard.explaining.image_masks import blurred, gaussian, seen_through, smooth, smooth_masks


def bilinear(cells, length, place):
    """The value at pixel `place` of a line of cells that is stretched to `length` pixels."""
    centre = min(max((place + 0.5) * len(cells) / length - 0.5, 0.0), len(cells) - 1.0)
    below = min(int(centre), len(cells) - 2)
    return cells[below] * (1 - (centre - below)) + cells[below + 1] * (centre - below)


def test_a_mask_is_its_cells_stretched_by_one_cell_more_and_cut_at_the_shift():
    torch.manual_seed(1)
    grid, shift = torch.rand(4, 2, 3).double(), torch.tensor([[0, 0], [2, 1], [0, 2], [1, 0]])
    found = smooth(grid, (5, 8), shift)  # cells of 3 × 3 pixels, stretched to 9 × 12
    for n in range(4):
        for y, x in itertools.product(range(5), range(8)):
            across = [bilinear(grid[n, row].tolist(), 12, x + int(shift[n, 1])) for row in range(2)]
            assert float(found[n, y, x]) == pytest.approx(bilinear(across, 9, y + int(shift[n, 0])))


def test_full_cells_show_the_whole_image_and_empty_ones_nothing():
    shift = torch.tensor([[2, 1]])
    torch.testing.assert_close(smooth(torch.ones(1, 2, 3), (5, 8), shift), torch.ones(1, 5, 8))
    assert not smooth(torch.zeros(1, 2, 3), (5, 8), shift).any()


@pytest.mark.parametrize("size", [(28, 28), (9, 15), (3, 8), (1, 1)])
def test_random_masks_keep_half_of_every_place_and_are_smooth(size):
    masks = smooth_masks(size, 200, torch.Generator().manual_seed(3))
    some = torch.cat(list(itertools.islice(masks, 10)))
    assert some.shape == (2000, size[0] * size[1])
    assert some.min() >= 0
    assert some.max() <= 1
    assert (some.mean(0) - 0.5).abs().max() < 0.05  # no place is shown more often than another
    assert (some.var(0) > 0.05).all()
    planes = some.reshape(-1, *size)
    for axis, side in ((1, size[0]), (2, size[1])):
        cells = min(7, side)
        pixels = -(-side // cells)
        steepest = cells / ((cells + 1) * pixels)  # one cell's difference over one stretched cell
        if side > 1:
            assert planes.diff(dim=axis).abs().max() <= steepest + 1e-6


def test_the_same_seed_gives_the_same_masks():
    first, second = (next(smooth_masks((9, 15), 5, torch.Generator().manual_seed(seed))) for seed in (4, 4))
    assert torch.equal(first, second)


def test_the_image_shows_where_the_mask_is_one_and_what_is_behind_elsewhere():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(2 * 2 * 3, 4)).double()
    image, behind = torch.randn(2, 1, 2, 2, 3).double()
    masks = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0], [1, 0, 0.5, 0, 1, 0]]).double()
    mixed = behind.clone()
    mixed[0, :, 0, 0], mixed[0, :, 1, 1] = image[0, :, 0, 0], image[0, :, 1, 1]
    mixed[0, :, 0, 2] = (image[0, :, 0, 2] + behind[0, :, 0, 2]) / 2
    with torch.no_grad():
        expected = torch.cat([model(x).softmax(-1)[:, 2] for x in (image, behind, mixed)])
    for batch in (1, 2, 9):
        found = seen_through(model, image, behind, 2, batch)(masks)
        torch.testing.assert_close(found[:, 0], expected)
        assert found.shape == (3, 1)
        assert not found.requires_grad


def test_a_blur_mixes_neighbours_by_their_distance_and_keeps_what_is_constant():
    torch.testing.assert_close(blurred(torch.full((1, 2, 8, 12), 3.0)), torch.full((1, 2, 8, 12), 3.0))
    image = torch.zeros(1, 1, 16, 24).double()
    image[0, 0, 5, 7] = 1.0
    found, sigma = blurred(image)[0, 0], 16 / 8
    for y, x in ((5, 7), (5, 9), (8, 7), (0, 23)):
        down = torch.tensor([-((y - i) ** 2) / (2 * sigma**2) for i in range(16)]).double().exp()
        across = torch.tensor([-((x - i) ** 2) / (2 * sigma**2) for i in range(24)]).double().exp()
        assert float(found[y, x]) == pytest.approx(float(down[5] / down.sum() * across[7] / across.sum()))
    torch.testing.assert_close(gaussian(5, 0.7).sum(1), torch.ones(5).double())
