"""`regard see`: what images are taken for, and how often that is right."""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from regard.commands.confusion import confusion_lines
from regard.commands.map_image import Explained, MapRequest, explain, refuse
from regard.commands.streams import chunked, to_json
from regard.data.labels import Labels
from regard.data.pictures import ENDINGS, images_in, read_idx, read_images
from regard.errors import DataError
from regard.evaluation.accuracy import accuracy, confusion, macro_f1
from regard.viewer import Seen, Viewer, load_viewer

CHUNK = 256  # images held at a time
Item = tuple[str, Path | np.ndarray]  # an image and its name


@dataclass(frozen=True)
class SeeRequest:
    """What a user asks of `regard see`."""

    labels: Path | None = None  # of an idx file
    top: int = 3
    own_size: bool = False
    as_json: bool = False
    map: MapRequest = field(default_factory=MapRequest)


def classify_images(model: Path, sources: Sequence[Path], request: SeeRequest) -> None:
    """Writes a line for each image; of images that have labels, how many of them were found."""
    for source in sources:
        if not source.exists():
            raise DataError(f"{source}: no such image, folder or file of images; check the path")
    labelled = [source for source in sources if request.labels is not None or has_labels(source)]
    if labelled and (len(sources) > 1 or request.map.wanted):
        raise DataError(
            f"{labelled[0]}: its images have labels, so they are scored by themselves; give it alone, without a map"
        )
    if request.map.wanted:
        refuse(request.map, as_json=request.as_json)
    viewer = load_viewer(model)
    if labelled:
        score(viewer, labelled[0], request)
        return
    items = [item for source in sources for item in images_of(source)]
    explained = explained_one(viewer, items, request) if request.map.wanted else None
    for part in chunked(items, CHUNK):
        found = viewer.classify([image for _, image in part], own_size=request.own_size)
        for (name, _), seen in zip(part, found, strict=True):
            sys.stdout.write(shown(name, seen, explained, request) + "\n")


def has_labels(source: Path) -> bool:
    """An .npz file, or a folder of folders rather than of images."""
    if source.is_dir():
        return not any(is_image(path) for path in source.iterdir()) and any(path.is_dir() for path in source.iterdir())
    return source.suffix == ".npz"


def is_image(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS


def images_of(source: Path) -> Iterator[Item]:
    """The image itself, those of a folder, or those of an idx file, with a name each."""
    if source.is_dir():
        yield from ((str(path), path) for path in images_in(source))
    elif is_image(source):
        yield str(source), source
    else:
        yield from ((f"{source}[{i}]", image[None]) for i, image in enumerate(read_idx(source, 3)))


def shown(name: str, seen: Seen, explained: Explained | None, request: SeeRequest) -> str:
    best = seen.ranking[: request.top]
    if request.as_json:
        told: dict[str, object] = {"image": name, "label": seen.label, "probabilities": dict(best)}
        return to_json(told | (explained.json() if explained else {}))
    line = "\t".join([name, *(f"{label} {p:.4f}" for label, p in best)])
    judged = explained.line() if explained else None
    return line if judged is None else f"{line}\n{judged}"


def explained_one(viewer: Viewer, items: Sequence[Item], request: SeeRequest) -> Explained:
    if len(items) != 1:
        raise DataError(f"--map {request.map.method}: explains one image, found {len(items)}; give one")
    return explain(viewer, viewer.pixels(items[0][1], own_size=request.own_size), request.map)


def score(viewer: Viewer, source: Path, request: SeeRequest) -> None:
    """How often the labels of a whole source are found, and which are taken for which."""
    began, lexicon = time.monotonic(), viewer.lexicon
    given = read_images(source, request.labels, None if request.own_size else lexicon.size, lexicon.channels)
    actual = Labels(lexicon.labels).ids(given.names, str(source))
    ids = {label: id for id, label in enumerate(lexicon.labels)}
    found = [
        ids[seen.label]
        for part in chunked(given.pixels, CHUNK)
        for seen in viewer.classify(part, own_size=request.own_size)
    ]
    counts = confusion(found, actual.tolist(), len(ids))
    scores = {"accuracy": accuracy(counts), "macro_f1": macro_f1(counts), "images": len(found)}
    if request.as_json:
        seconds = round(time.monotonic() - began, 2)
        table = {"labels": list(lexicon.labels), "confusion": counts.tolist()}
        sys.stdout.write(to_json({**scores, **table, "seconds": seconds}) + "\n")
        return
    first = f"accuracy {scores['accuracy']:.2f} %  macro F1 {scores['macro_f1']:.2f}  images {len(found):,}"
    sys.stdout.write("".join(f"{line}\n" for line in [first, *confusion_lines(counts, lexicon.labels)]))
