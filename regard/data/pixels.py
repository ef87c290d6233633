"""Images as arrays [n c y x] of bytes: brought to one size and colour, normalised, and varied in training."""

from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float32, Int, UInt8
from pydantic import Field, model_validator

from regard.errors import DataError
from regard.section import Section

CHUNK = 1024  # images counted at a time
LUMA = (19595, 38470, 7471)  # 0.299, 0.587, 0.114 in 1/65536: brightness by ITU-R BT.601, as Pillow rounds it
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Normalisation(Section):
    """(x / 255 − mean) / std, channel by channel. It belongs to the model: measured once, on its training images."""

    mean: tuple[Finite, ...]
    std: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...]

    @model_validator(mode="after")
    def same_channels(self) -> "Normalisation":
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels, std {len(self.std)}")
        return self


def measure(images: UInt8[np.ndarray, "n c y x"]) -> Normalisation:
    """Mean and standard deviation of each channel over all pixels; a channel that never changes has std 1."""
    counts = np.zeros((images.shape[1], 256), dtype=np.int64)
    for first in range(0, len(images), CHUNK):  # by counting: no float copy of all images
        for channel, planes in enumerate(images[first : first + CHUNK].swapaxes(0, 1)):
            counts[channel] += np.bincount(planes.ravel(), minlength=256)
    values, shares = np.arange(256) / 255, counts / counts.sum(1, keepdims=True)
    mean = shares @ values
    std = np.sqrt((shares * (values - mean[:, None]) ** 2).sum(1))
    return Normalisation(mean=tuple(mean.tolist()), std=tuple(np.where(std > 0, std, 1.0).tolist()))


def normalise(images: UInt8[np.ndarray, "n c y x"], by: Normalisation) -> Float32[np.ndarray, "n c y x"]:
    if images.shape[1] != len(by.mean):
        raise DataError(f"images: found {images.shape[1]} channels, the model was trained on {len(by.mean)}")
    mean, std = (np.array(part, dtype=np.float32)[:, None, None] for part in (by.mean, by.std))
    return (images.astype(np.float32) / np.float32(255) - mean) / std


def recolour(images: UInt8[np.ndarray, "n c y x"], channels: int) -> UInt8[np.ndarray, "n channels y x"]:
    """Grey as three equal channels, colour as its brightness, or what is there already."""
    if images.shape[1] == channels:
        return images
    if channels == 3:
        return images.repeat(3, axis=1)
    weighted = images.astype(np.uint32) * np.array(LUMA, dtype=np.uint32)[:, None, None]
    brightness: np.ndarray = (weighted.sum(1, dtype=np.uint32) + 0x8000) >> 16
    return brightness.astype(np.uint8)[:, None]


def shift(
    images: UInt8[np.ndarray, "n c y x"], down: Int[np.ndarray, " n"], right: Int[np.ndarray, " n"]
) -> UInt8[np.ndarray, "n c y x"]:
    """Each image moved by its number of pixels, up or left if that is below 0; black comes in."""
    n, _, height, width = images.shape
    most = int(max(np.abs(down).max(), np.abs(right).max()))
    padded = np.pad(images, ((0, 0), (0, 0), (most, most), (most, most)))
    places = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(2, 3))
    return places[np.arange(n), :, most - down, most - right]


def flip(images: UInt8[np.ndarray, "n c y x"], chosen: Bool[np.ndarray, " n"]) -> UInt8[np.ndarray, "n c y x"]:
    """The chosen images mirrored, left for right, and the others as they are."""
    return np.where(chosen[:, None, None, None], images[..., ::-1], images)
