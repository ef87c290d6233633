"""Image files to bytes: whatever is no image of the expected kind is named."""

import importlib.util
import math
import struct
import warnings
import zipfile
import zlib
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from regard.data.pixels import recolour
from regard.data.readers import opened
from regard.errors import DataError

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")  # Pillow knows others, one of which runs a program
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
GREY = ("1", "L", "LA", "La")  # Pillow's names
DEEP = ("I", "F")  # how Pillow's names of more than 8 bits a channel begin
MOST = 1 << 33  # bytes of all images of a corpus: they are held in memory
CHUNK = 1 << 20
NAMES = (("images", "labels"), ("x", "y"))  # of the arrays of an .npz file

Size = tuple[int, int]  # rows, columns


@dataclass(frozen=True, eq=False)
class NamedImages:
    """`names` holds the label of each image."""

    pixels: UInt8[np.ndarray, "n c y x"]
    names: list[str]


def read_images(path: Path, labels: Path | None, size: Size | None, channels: int | None) -> NamedImages:
    """A folder of folders, an .npz file, or an idx file with one of labels; in `size` and `channels` where given."""
    if path.is_dir() or path.suffix == ".npz":
        if labels is not None:
            raise DataError(
                f"{labels}: labels of their own go with an idx file, but {path} has them already; remove it"
            )
        if path.is_dir():
            return read_folder(path, size, channels)
        found = read_npz(path)
        return replace(found, pixels=fitted(found.pixels, size, channels))
    if labels is None:
        raise DataError(f"{path}: an idx file has no labels in it; give the file of labels that came with it")
    images, names = read_idx(path, 3), read_idx(labels, 1)
    _check_equally_many(len(images), len(names), f"{path} and {labels}")
    return NamedImages(fitted(images[:, None], size, channels), list(map(str, names.tolist())))


def read_idx(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """00 00 08 and the number of dimensions, each as 4 bytes (the highest first), then the bytes. LeCun et al. 1998."""
    with opened(path) as file:
        magic, expected = _exactly(file, 4), bytes([0, 0, 8, dimensions])
        if magic != expected:
            kind = "an idx file of images" if dimensions == 3 else "an idx file of labels"
            raise DataError(
                f"{path}: begins with {magic.hex(' ')}, expected {expected.hex(' ')}: {kind}; check the path"
            )
        head = _exactly(file, 4 * dimensions)
        sizes = struct.unpack(f">{dimensions}I", head) if len(head) == 4 * dimensions else ()
        wanted = math.prod(sizes)
        if not sizes or not wanted or wanted > MOST:
            shape = " × ".join(map(str, sizes)) or "a header that is cut short"
            raise DataError(f"{path}: found {shape}, expected 1 to {MOST:,} bytes; copy the file again")
        content = _exactly(file, wanted + 1)
    if len(content) != wanted:
        found = f"only {len(content)}" if len(content) < wanted else "more"
        raise DataError(f"{path}: found {found} of the {wanted} bytes that its header promises; copy the file again")
    return np.frombuffer(content, dtype=np.uint8).reshape(sizes)


def read_npz(path: Path) -> NamedImages:
    """Arrays `images` and `labels`, or `x` and `y`: uint8 [n y x], [n y x c] or [n c y x]; numbers or texts [n]."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST:
            raise DataError(f"{path}: unpacks to {size:,} bytes, expected at most {MOST:,}; split it")
        with np.load(path) as file:  # refuses arrays of objects, which would be unpickled, unless told otherwise
            found = next((pair for pair in NAMES if set(pair) <= set(file.files)), None)
            if found is None:
                names = ", ".join(map(repr, file.files[:8])) or "nothing"
                raise DataError(f"{path}: found {names}, expected arrays 'images' and 'labels', or 'x' and 'y'")
            images, labels = (np.asarray(file[name]) for name in found)
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path}: cannot be read ({_line(error)}); write it with numpy.savez, without objects"
        ) from None
    ordered = _channels_first(images, f"{path}, {found[0]!r}")
    named = _label_names(labels, f"{path}, {found[1]!r}")
    _check_equally_many(len(ordered), len(named), str(path))
    return NamedImages(ordered, named)


def read_folder(root: Path, size: Size | None, channels: int | None) -> NamedImages:
    """The images of each folder in `root`, in the order of their names; the folder's name is the label.

    Names that begin with a dot, and files that do not end like an image, are left alone.
    """
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not folders:
        raise DataError(f"{root}: found no folder in it, expected one for each label, with the images of that label")
    files = [path for folder in folders for path in images_in(folder)]
    first = read_image(files[0], size, channels)
    if len(files) * first.size > MOST:
        raise DataError(
            f"{root}: {len(files)} images of {_shown(first)} need more than {MOST:,} bytes; set a smaller size"
        )
    images = np.empty((len(files), *first.shape), dtype=np.uint8)
    for row, path in enumerate(files):
        image = read_image(path, size, channels)
        if image.shape != first.shape:
            raise DataError(
                f"{path}: found {_shown(image)}, but {files[0]} has {_shown(first)}; "
                "set size and channels, and images are brought to them"
            )
        images[row] = image
    return NamedImages(images, [path.parent.name for path in files])


def read_image(path: Path, size: Size | None, channels: int | None) -> UInt8[np.ndarray, "c y x"]:
    """One image file, upright as its camera held it; what is transparent counts as its colour. Needs Pillow."""
    _require_pillow()
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what can be read all the same
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as file:
                mode = file.mode
                upright = ImageOps.exif_transpose(file).convert("L" if mode in GREY else "RGB")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"{path}: found more than {Image.MAX_IMAGE_PIXELS:,} pixels; make it smaller") from None
    except (OSError, SyntaxError, ValueError, EOFError, struct.error) as error:
        raise DataError(f"{path}: not an image that can be read ({_line(error)}); repair or remove it") from None
    if mode.startswith(DEEP):
        raise DataError(f"{path}: found more than 8 bits a channel (mode {mode}), expected 8; convert it")
    pixels = np.atleast_3d(np.asarray(upright, dtype=np.uint8)).transpose(2, 0, 1)
    return _fit(pixels if channels is None else recolour(pixels[None], channels)[0], size)


def fitted(
    images: UInt8[np.ndarray, "n c y x"], size: Size | None, channels: int | None
) -> UInt8[np.ndarray, "n channels rows columns"]:
    """The same in the wanted size and colours."""
    pixels = images if channels is None else recolour(images, channels)
    if size is not None and pixels.shape[2:] != size:
        pixels = np.stack([_fit(image, size) for image in pixels])
    return pixels


def _fit(image: UInt8[np.ndarray, "c y x"], size: Size | None) -> UInt8[np.ndarray, "c rows columns"]:
    """Resized with a triangle filter as wide as the pixels that are merged, so that nothing is skipped."""
    if size is None or image.shape[1:] == size:
        return image
    _require_pillow()
    from PIL import Image

    planes = [Image.fromarray(plane).resize(size[::-1], Image.Resampling.BILINEAR) for plane in image]
    return np.stack([np.asarray(plane) for plane in planes])


def _require_pillow() -> None:
    if importlib.util.find_spec("PIL") is None:
        raise DataError("images: Pillow reads and resizes them, and is not installed; pip install 'regard[images]'")


def images_in(folder: Path) -> list[Path]:
    """The image files of a folder by name."""
    found = sorted(p for p in folder.iterdir() if p.suffix.lower() in ENDINGS and not p.name.startswith("."))
    if not found:
        raise DataError(f"{folder}: found no image in it ({', '.join(ENDINGS)}); add some, or remove the folder")
    return found


def _channels_first(images: np.ndarray, place: str) -> UInt8[np.ndarray, "n c y x"]:
    if images.dtype != np.uint8:
        raise DataError(f"{place}: found {images.dtype}, expected uint8 from 0 to 255; convert it")
    if images.ndim == 3:
        images = images[:, None]
    elif images.ndim == 4 and images.shape[3] in (1, 3):
        images = images.transpose(0, 3, 1, 2)
    if images.ndim != 4 or images.shape[1] not in (1, 3) or not images.size:
        shape = " × ".join(map(str, images.shape)) or "a single number"
        raise DataError(
            f"{place}: found {shape}, expected images × rows × columns, with 1 or 3 channels last or second"
        )
    return np.ascontiguousarray(images)


def _label_names(labels: np.ndarray, place: str) -> list[str]:
    flat = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.ndim != 1 or flat.dtype.kind not in "iuU":
        raise DataError(f"{place}: found {labels.dtype} {labels.shape}, expected a whole number or text for each image")
    return [str(label) for label in flat.tolist()]


def _check_equally_many(images: int, labels: int, place: str) -> None:
    if images != labels:
        raise DataError(f"{place}: found {images} images and {labels} labels, expected one label for each image")


def _exactly(file: BufferedIOBase, size: int) -> bytearray:
    """`size` bytes, or as many as there are: piece by piece, so that a header that lies takes no memory."""
    content = bytearray()
    while len(content) < size and (piece := file.read(min(CHUNK, size - len(content)))):
        content += piece
    return content


def _shown(image: UInt8[np.ndarray, "c y x"]) -> str:
    channels, rows, columns = image.shape
    return f"{rows} × {columns} {'grey' if channels == 1 else 'coloured'} pixels"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
