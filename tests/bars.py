"""Tiny images that tests learn from: bright bars that lie or stand, on dark noise; and every form to store them in."""

import gzip
import struct
from pathlib import Path

import numpy as np

LYING, STANDING = 0, 1
SMALL = (  # a model that learns them in a second
    "model.width=16",
    "model.heads=2",
    "model.feedforward=32",
    "model.layers=2",
    "model.dropout=0.0",
    "model.patch=4",
    "data.batch_tokens=200",
    "data.images.shift=1",
    "training.learning_rate=0.01",
    "training.ema=0.9",
    "training.validations=2",
    "training.threads=1",
)


def bars(n: int, seed: int = 5, size: tuple[int, int] = (8, 12)) -> tuple[np.ndarray, np.ndarray]:
    """Images [n y x] and whether each bar is LYING or STANDING."""
    rng = np.random.default_rng(seed)
    images = rng.integers(60, size=(n, *size), dtype=np.uint8)
    labels = rng.integers(2, size=n)
    for image, label in zip(images, labels, strict=True):
        place = rng.integers(size[0] if label == LYING else size[1])
        lines = image if label == LYING else image.T
        lines[place] = 255
    return images, labels


def write_idx(path: Path, array: np.ndarray) -> Path:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    content = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_folder(root: Path, images: np.ndarray, labels: np.ndarray) -> Path:
    """A folder for each label; files are named so that they are read in the order of the images."""
    from PIL import Image

    for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        (root / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(root / str(label) / f"{number:04}.png")
    return root
