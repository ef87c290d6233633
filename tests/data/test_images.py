"""Images in every form give the same pixels; a file that is broken, odd or missing is named in one line."""

import gzip
import os
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from regard.data.images import load_images
from regard.data.options import ImageOptions
from regard.data.pictures import NamedImages, read_folder, read_idx, read_image, read_images, read_npz
from regard.errors import DataError

Image = pytest.importorskip("PIL.Image")
NAMES = ["cat", "cat", "dog", "cat", "dog"]


def drawn(n: int = 5, c: int = 1, y: int = 4, x: int = 7) -> np.ndarray:
    return np.random.default_rng(3).integers(256, size=(n, c, y, x), dtype=np.uint8)


def idx(path: Path, array: np.ndarray) -> Path:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    content = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def folder(root: Path, images: np.ndarray, names: list[str]) -> Path:
    for number, (image, name) in enumerate(zip(images, names, strict=True)):
        (root / name).mkdir(parents=True, exist_ok=True)
        pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
        Image.fromarray(pixels).save(root / name / f"{number}.png")
    return root


def npz(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


def refused(read) -> str:
    with pytest.raises(DataError) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def by_label(found: NamedImages) -> set[tuple[str, bytes]]:
    return {(name, image.tobytes()) for image, name in zip(found.pixels, found.names, strict=True)}


def mnist() -> Path:
    root = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (root / "mnist" / "train-images-idx3-ubyte.gz").exists():
        pytest.skip("needs mnist/*-ubyte.gz beneath the folder that REGARD_DATA names")
    return root / "mnist"


@pytest.mark.parametrize("channels", [1, 3])
def test_a_folder_and_an_npz_file_give_the_same_images(tmp_path, channels):
    images = drawn(c=channels)
    last = images[:, 0] if channels == 1 else images.transpose(0, 2, 3, 1)
    expected = by_label(NamedImages(images, NAMES))
    assert by_label(read_images(folder(tmp_path / "f", images, NAMES), None, None, None)) == expected
    for number, arrays in enumerate(
        [{"images": last, "labels": np.array(NAMES)}, {"x": images, "y": np.array(NAMES)[:, None]}]
    ):
        found = read_images(npz(tmp_path / f"{number}.npz", **arrays), None, None, None)
        assert (found.pixels == images).all()
        assert found.names == NAMES


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_idx_file_and_its_labels_give_the_images(tmp_path, ending):
    images, labels = drawn(), np.array([3, 0, 12, 3, 9])
    found = read_images(idx(tmp_path / f"i{ending}", images[:, 0]), idx(tmp_path / f"l{ending}", labels), None, None)
    assert (found.pixels == images).all()
    assert found.names == ["3", "0", "12", "3", "9"]


def test_mnist_has_the_mean_and_deviation_that_everyone_uses():
    root = mnist()
    options = ImageOptions(
        train=root / "train-images-idx3-ubyte.gz",
        train_labels=root / "train-labels-idx1-ubyte.gz",
        valid=root / "t10k-images-idx3-ubyte.gz",
        valid_labels=root / "t10k-labels-idx1-ubyte.gz",
    )
    loaded = load_images(options, None, 0)
    assert loaded.training.pixels.shape == (60_000, 1, 28, 28)
    assert loaded.validation.pixels.shape == (10_000, 1, 28, 28)
    assert loaded.normalisation.mean == pytest.approx((0.1307,), abs=5e-5)
    assert loaded.normalisation.std == pytest.approx((0.3081,), abs=5e-5)
    assert loaded.labels.names == tuple("0123456789")
    assert loaded.training.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(loaded.validation.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_held_out_images_are_not_trained_on_even_when_they_come_twice(tmp_path):
    once = drawn(30)
    images, labels = np.concatenate([once, once]), np.tile(np.arange(30) % 3, 2)
    options = ImageOptions(train=npz(tmp_path / "a.npz", images=images, labels=labels))
    loaded = load_images(options, 4, 0)
    held = {image.tobytes() for image in loaded.validation.pixels}
    assert len(held) == 4
    assert len(loaded.validation.pixels) == len(loaded.validation.labels) == 8
    assert not held & {image.tobytes() for image in loaded.training.pixels}
    known = {image.tobytes(): int(label) for image, label in zip(images, labels, strict=True)}
    for side in (loaded.training, loaded.validation):
        assert side.labels.tolist() == [known[image.tobytes()] for image in side.pixels]
    assert loaded.report.lines() == [
        f"{tmp_path / 'a.npz'}: 52 of 60 images; left out: held out 8",
        "validation: 8 of 8 images (carved out of training)",
    ]
    assert (load_images(options, 4, 0).validation.pixels == loaded.validation.pixels).all()
    assert {image.tobytes() for image in load_images(options, 4, 1).validation.pixels} != held


def test_images_of_several_sizes_are_brought_to_the_one_given_as_pillow_does(tmp_path):
    folder(tmp_path, drawn(2), ["cat", "cat"])
    folder(tmp_path, drawn(1, y=9, x=5), ["dog"])
    pixels = read_folder(tmp_path, (6, 3), None).pixels
    files = [tmp_path / "cat" / "0.png", tmp_path / "cat" / "1.png", tmp_path / "dog" / "0.png"]
    theirs = [np.asarray(Image.open(file).resize((3, 6), Image.Resampling.BILINEAR)) for file in files]
    assert (pixels[:, 0] == np.stack(theirs)).all()


def test_arrays_are_resized_and_recoloured_like_files(tmp_path):
    images = drawn(3, c=3)
    files = read_images(folder(tmp_path / "f", images, ["a", "b", "c"]), None, (5, 6), 1)
    arrays = read_images(npz(tmp_path / "a.npz", x=images, y=np.array(["a", "b", "c"])), None, (5, 6), 1)
    assert (files.pixels == arrays.pixels).all()
    assert files.pixels.shape == (3, 1, 5, 6)


def test_sizes_that_differ_are_refused_when_none_is_given(tmp_path):
    folder(tmp_path, drawn(1), ["cat"])
    folder(tmp_path, drawn(1, y=9), ["dog"])
    message = refused(lambda: read_folder(tmp_path, None, None))
    assert "dog/0.png: found 9 × 7 grey pixels" in message
    assert "cat/0.png has 4 × 7 grey pixels; set size and channels" in message


def test_grey_beside_colour_is_refused_unless_channels_are_given(tmp_path):
    folder(tmp_path, drawn(1), ["cat"])
    folder(tmp_path, drawn(1, c=3), ["dog"])
    assert "found 4 × 7 coloured pixels" in refused(lambda: read_folder(tmp_path, None, None))
    assert read_folder(tmp_path, None, 3).pixels.shape == (2, 3, 4, 7)
    assert read_folder(tmp_path, None, 1).pixels.shape == (2, 1, 4, 7)


@pytest.mark.parametrize(("mode", "channels"), [("1", 1), ("L", 1), ("LA", 1), ("P", 3), ("RGB", 3), ("RGBA", 3)])
def test_every_common_kind_of_pixel_is_read(tmp_path, mode, channels):
    Image.fromarray(drawn(1, c=3)[0].transpose(1, 2, 0)).convert(mode).save(tmp_path / "a.png")
    pixels = read_image(tmp_path / "a.png", None, None)
    expected = np.asarray(Image.open(tmp_path / "a.png").convert("L" if channels == 1 else "RGB"))
    assert (pixels.transpose(1, 2, 0).squeeze() == expected).all()
    assert pixels.shape == (channels, 4, 7)


def test_a_photograph_is_turned_upright(tmp_path):
    image = Image.fromarray(drawn(1, c=3)[0].transpose(1, 2, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held on its side
    image.save(tmp_path / "a.png", exif=exif)
    upright = np.rot90(np.asarray(image), k=-1)
    assert (read_image(tmp_path / "a.png", None, None).transpose(1, 2, 0) == upright).all()


@pytest.mark.parametrize("ending", ["png", "jpg", "bmp", "gif", "webp", "tif", "ppm"])
def test_broken_images_are_named(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    Image.fromarray(drawn(1, c=3, y=40, x=50)[0].transpose(1, 2, 0)).save(path)
    content = path.read_bytes()
    assert read_image(path, None, None).shape == (3, 40, 50)
    for broken in (content[: len(content) // 2], content[:20], b"", b"hello"):
        path.write_bytes(broken)
        assert f"a.{ending}: not an image that can be read" in refused(lambda: read_image(path, None, None))


def test_a_png_of_a_trillion_pixels_is_refused_by_its_header(tmp_path):
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    for size in (10_000, 1_000_000):  # above the limit, and above the one of which Pillow itself makes an error
        head = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
        body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(9))) + chunk(b"IEND", b"")
        (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)
        assert "a.png: found more than 89,478,485 pixels" in refused(lambda: read_image(tmp_path / "a.png", None, None))


def test_a_format_that_would_run_another_program_is_no_image(tmp_path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    assert "not an image that can be read" in refused(lambda: read_image(tmp_path / "a.png", None, None))


def test_more_than_eight_bits_are_refused(tmp_path):
    Image.fromarray(np.full((4, 5), 40_000, dtype=np.uint16)).save(tmp_path / "a.png")
    assert "found more than 8 bits a channel" in refused(lambda: read_image(tmp_path / "a.png", None, None))


def test_folders_without_images_are_refused(tmp_path):
    assert "found no folder in it, expected one for each label" in refused(lambda: read_folder(tmp_path, None, None))
    folder(tmp_path, drawn(1), ["cat"])
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "notes.txt").write_text("x")
    (tmp_path / "dog" / ".hidden.png").write_text("x")
    (tmp_path / ".cache").mkdir()
    assert "dog: found no image in it" in refused(lambda: read_folder(tmp_path, None, None))


def test_one_class_is_no_choice(tmp_path):
    folder(tmp_path, drawn(3), ["cat"] * 3)
    assert "found 'cat', expected at least two different labels" in refused(
        lambda: load_images(ImageOptions(train=tmp_path), 1, 0)
    )


def test_without_pillow_the_line_says_what_to_install(tmp_path, monkeypatch):
    images = npz(tmp_path / "a.npz", x=drawn(), y=np.arange(5))
    folder(tmp_path / "f", drawn(1), ["cat"])
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert read_images(images, None, (4, 7), None).pixels.shape == (5, 1, 4, 7)  # needs no Pillow
    for read in (
        lambda: read_images(images, None, (3, 3), None),
        lambda: read_folder(tmp_path / "f", None, None),
    ):
        assert "pip install 'regard[images]'" in refused(read)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with , expected 00 00 08 03"),
        (b"\0\0\x08\x01" + bytes(60), "begins with 00 00 08 01, expected 00 00 08 03: an idx file of images"),
        (b"\x89PNG", "begins with 89 50 4e 47"),
        (b"\0\0\x08\x03\0\0", "a header that is cut short"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2, 0, 3), "found 2 × 0 × 3, expected 1 to"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2**31, 2**31, 2**31), "expected 1 to 8,589,934,592 bytes"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2, 2, 3) + bytes(11), "found only 11 of the 12 bytes"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2, 2, 3) + bytes(13), "found more of the 12 bytes"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2000, 2000, 2000) + bytes(13), "found only 13 of the 8000000000 bytes"),
    ],
)
def test_an_idx_file_that_is_not_what_its_header_says_is_refused(tmp_path, content, message):
    (tmp_path / "a").write_bytes(content)
    assert message in refused(lambda: read_idx(tmp_path / "a", 3))


def test_a_packed_idx_file_that_is_cut_short_is_refused(tmp_path):
    path = idx(tmp_path / "a.gz", drawn()[:, 0])
    path.write_bytes(path.read_bytes()[:-12])
    assert "a.gz: cut short or damaged" in refused(lambda: read_idx(path, 3))


def test_labels_go_with_an_idx_file_and_only_with_one(tmp_path):
    images, labels = idx(tmp_path / "i", drawn()[:, 0]), idx(tmp_path / "l", np.arange(4))
    assert "i: an idx file has no labels in it" in refused(lambda: read_images(images, None, None, None))
    assert "found 5 images and 4 labels" in refused(lambda: read_images(images, labels, None, None))
    assert "i: begins with 00 00 08 03, expected 00 00 08 01: an idx file of labels" in refused(
        lambda: read_images(images, images, None, None)
    )
    assert "has them already; remove it" in refused(lambda: read_images(tmp_path, labels, None, None))
    assert "no such file" in refused(lambda: read_images(tmp_path / "nowhere", labels, None, None))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"pictures": drawn(), "labels": np.arange(5)},
            "found 'pictures', 'labels', expected arrays 'images' and 'labels'",
        ),
        ({"images": drawn() / 255, "labels": np.arange(5)}, "'images': found float64, expected uint8"),
        ({"images": drawn()[0, 0], "labels": np.arange(4)}, "'images': found 4 × 7, expected images × rows × columns"),
        ({"images": drawn(c=2), "labels": np.arange(5)}, "found 5 × 2 × 4 × 7, expected"),
        ({"images": np.uint8(1), "labels": np.arange(5)}, "found a single number"),
        ({"images": drawn()[:0], "labels": np.arange(0)}, "found 0 × 1 × 4 × 7"),
        ({"x": drawn(), "y": np.arange(5) / 2}, "'y': found float64 (5,), expected a whole number or text"),
        ({"x": drawn(), "y": np.zeros((5, 2), dtype=int)}, "'y': found int64 (5, 2)"),
        ({"x": drawn(), "y": np.arange(3)}, "found 5 images and 3 labels"),
    ],
)
def test_arrays_that_are_not_images_with_labels_are_refused(tmp_path, arrays, message):
    assert message in refused(lambda: read_npz(npz(tmp_path / "a.npz", **arrays)))


def test_an_npz_file_with_objects_in_it_is_refused_and_nothing_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.write_text, (tmp_path / "harmed", "x"))

    path = npz(tmp_path / "a.npz", images=np.array([Bomb()], dtype=object), labels=np.arange(1))
    assert "without objects" in refused(lambda: read_npz(path))
    assert not (tmp_path / "harmed").exists()


def test_an_npz_file_that_is_no_archive_or_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    for content in (b"", b"hello", npz(tmp_path / "b.npz", x=drawn(), y=np.arange(5)).read_bytes()[:300]):
        path.write_bytes(content)
        assert "a.npz: cannot be read" in refused(lambda: read_npz(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", b"no array")
        archive.writestr("labels.npy", b"no array")
    assert "'images': found" in refused(lambda: read_npz(path))
    monkeypatch.setattr("regard.data.pictures.MOST", 100)
    npz(path, x=drawn(), y=np.arange(5))
    assert "bytes, expected at most 100" in refused(lambda: read_npz(path))
    folder(tmp_path / "f", drawn(), NAMES)
    assert "5 images of 4 × 7 grey pixels need more than 100 bytes" in refused(
        lambda: read_folder(tmp_path / "f", None, None)
    )


def test_validation_images_of_another_shape_are_refused_unless_both_are_resized(tmp_path):
    train = npz(tmp_path / "a.npz", x=drawn(6), y=np.arange(6))
    valid = npz(tmp_path / "b.npz", x=drawn(2, y=5), y=np.arange(2))
    message = refused(lambda: load_images(ImageOptions(train=train, valid=valid), None, 0))
    assert "b.npz: images of (1, 5, 7) (channels, rows, columns), but" in message
    loaded = load_images(ImageOptions(train=train, valid=valid, size=(3, 3)), None, 0)
    assert loaded.validation.pixels.shape == (2, 1, 3, 3)
    assert loaded.report.validation.line() == f"{valid}: 2 of 2 images"


def test_a_validation_class_that_training_does_not_have_is_refused(tmp_path):
    train = npz(tmp_path / "a.npz", x=drawn(2), y=np.arange(2))
    valid = npz(tmp_path / "b.npz", x=drawn(2), y=np.array([1, 7]))
    message = refused(lambda: load_images(ImageOptions(train=train, valid=valid), None, 0))
    assert "b.npz: found label '7', which training does not have; known are '0', '1'" in message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train": "a", "valid_labels": "b"}, "valid_labels is given without valid"),
        ({"train": "a", "size": (0, 3)}, "greater than 0"),
        ({"train": "a", "channels": 2}, "1 or 3"),
        ({"train": "a", "shift": -1}, "greater than or equal to 0"),
        ({}, "Field required"),
    ],
)
def test_options_that_make_no_sense_are_refused(given, message):
    with pytest.raises(ValidationError, match=message):
        ImageOptions(**given)
