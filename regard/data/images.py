"""From the images of a recipe to training and validation: pixels, label ids, and how pixels are normalised."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from regard.data.accounts import CARVED, GIVEN, Account, Report, hold_out, resolve
from regard.data.labels import Labels
from regard.data.options import ImageOptions
from regard.data.pictures import NamedImages, read_images
from regard.data.pixels import Normalisation, measure
from regard.errors import DataError


@dataclass(frozen=True, eq=False)
class LabelledImages:
    pixels: UInt8[np.ndarray, "n c y x"]
    labels: Int64[np.ndarray, " n"]  # ids


@dataclass(frozen=True, eq=False)
class LoadedImages:
    training: LabelledImages
    validation: LabelledImages
    labels: Labels
    normalisation: Normalisation
    report: Report


def load_images(options: ImageOptions, valid_size: int | None, seed: int) -> LoadedImages:
    """Training and validation images of one shape; without files of its own, validation is held out by a hash."""
    every = _read(options.train, options.train_labels, options)
    labels = Labels.of(every.names, str(options.train))
    account = _account(str(options.train), every)
    if options.valid is not None:
        training, validation = every, _read(options.valid, options.valid_labels, options)
        _refuse_other_shape(training.pixels.shape[1:], validation.pixels.shape[1:], options)
        report = Report((account,), _account(str(options.valid), validation), GIVEN)
    else:
        training, validation = _hold_out(every, valid_size, seed)
        account = account.without("held out", len(validation.names))
        report = Report((account,), _account("validation", validation), CARVED)
    return LoadedImages(
        LabelledImages(training.pixels, labels.ids(training.names, account.name)),
        LabelledImages(validation.pixels, labels.ids(validation.names, report.validation.name)),
        labels,
        measure(training.pixels),
        report,
    )


def _read(path: Path, labels: Path | None, options: ImageOptions) -> NamedImages:
    return read_images(resolve(path), None if labels is None else resolve(labels), options.size, options.channels)


def _account(name: str, images: NamedImages) -> Account:
    return Account(name, len(images.names), len(images.names), {}, "images")


def _hold_out(images: NamedImages, size: int | None, seed: int) -> tuple[NamedImages, NamedImages]:
    """Without and with the images whose hash is smallest; equal images are on the same side."""
    keys = [hashlib.blake2b(image.tobytes(), digest_size=16).hexdigest() for image in images.pixels]
    taken = set(hold_out(dict.fromkeys(keys), size, seed, "images"))
    held = np.array([key in taken for key in keys])
    return _where(~held, images), _where(held, images)


def _where(side: Bool[np.ndarray, " n"], images: NamedImages) -> NamedImages:
    return NamedImages(images.pixels[side], [images.names[i] for i in np.flatnonzero(side)])


def _refuse_other_shape(ours: tuple[int, ...], theirs: tuple[int, ...], options: ImageOptions) -> None:
    if ours != theirs:
        raise DataError(
            f"{options.valid}: images of {theirs} (channels, rows, columns), but {options.train} has {ours}; "
            "set data.images.size and data.images.channels"
        )
