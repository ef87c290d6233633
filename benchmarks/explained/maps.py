"""How faithful each method is, on sentences and on images: areas under the curves of deletion and insertion."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from torch import Tensor

from benchmarks.stage import say
from regard.data.pictures import read_images
from regard.explainer import Asked, TranslationExplainer
from regard.explaining.dependence import last
from regard.explaining.explanation import Faithful
from regard.explaining.faithfulness import Faithfulness
from regard.explaining.rise import Stop
from regard.viewer import Viewer, load_viewer

MASKS = 2000
SEED = 1
Areas = dict[str, list[Faithfulness]]  # by method, one for each text or image


def of_texts(explainer: TranslationExplainer, texts: Sequence[str]) -> dict[str, float]:
    """Of the model's own output for each text; every method that the model has."""
    found: Areas = {}
    for number, text in enumerate(texts, start=1):
        (explained,) = explainer.explain(text, Asked(masks=MASKS, faithful=True))
        for one in explained.saliency:
            found.setdefault(one.method, []).append(areas(one.faithful))
            if one.method == "rise":
                found.setdefault("random", []).append(areas(one.chance))
        say(f"  sentence {number} of {len(texts)}")
    return named(found, "text")


def areas(found: Faithful | None) -> Faithfulness:
    assert found is not None
    return Faithfulness(found.deletion, found.insertion)


def of_images(model: Path, images: Path, labels: Path, count: int) -> dict[str, float]:
    """Of the likeliest label of each of the first images."""
    viewer = load_viewer(model)
    read = read_images(images, labels, viewer.lexicon.size, viewer.lexicon.channels)
    found: Areas = {}
    for number, pixels in enumerate(read.pixels[:count], start=1):
        for method, make in MAPS.items():
            found.setdefault(method, []).append(viewer.faithfulness(pixels, make(viewer, pixels, number)))
        say(f"  image {number} of {count}")
    return named(found, "image")


def rise_map(viewer: Viewer, pixels: np.ndarray, number: int) -> Tensor:
    stop = Stop(most=MASKS)
    found = last("rise", viewer.rise(pixels, stop, torch.Generator().manual_seed(number)), stop)
    return found.values[:, 0].reshape(pixels.shape[1:])


def random_map(viewer: Viewer, pixels: np.ndarray, number: int) -> Tensor:
    """A number for each patch, as maps of attention have."""
    grid = pixels.shape[1] // viewer.patch, pixels.shape[2] // viewer.patch
    return torch.rand(grid, generator=torch.Generator().manual_seed(SEED + number))


MAPS: Mapping[str, Callable[[Viewer, np.ndarray, int], Tensor]] = {
    "rise": rise_map,
    "attention": lambda viewer, pixels, _: viewer.attention(pixels)[-1].mean(0),
    "rollout": lambda viewer, pixels, _: viewer.rollout(pixels),
    "gradient": lambda viewer, pixels, _: viewer.gradient(pixels),
    "random": random_map,
}


def named(found: Mapping[str, Iterable[Faithfulness]], what: str) -> dict[str, float]:
    figures = {}
    for method, each in found.items():
        every = list(each)
        figures[f"deletion_auc_{what}_{method}"] = fmean(one.deletion for one in every)
        figures[f"insertion_auc_{what}_{method}"] = fmean(one.insertion for one in every)
    return figures
