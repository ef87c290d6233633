"""A Vision Transformer on handwritten digits."""

import json

from benchmarks.family.bench import RECIPES, Bench, Found

TEST = ("mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz")


def vit(bench: Bench) -> Found:
    model = bench.train("vit", [RECIPES / "mnist.yaml"])
    images, labels = (bench.data / name for name in TEST)
    seen = json.loads(bench.regard("see", model.folder, images, "--labels", labels, "--json"))
    figures = {"vit_mnist_accuracy": seen["accuracy"], "vit_minutes": model.minutes}
    notes = (
        f"recipes/mnist.yaml; per cent of the {seen['images']:,} test images, which neither training nor validation "
        "reads."
    )
    return Found(figures, model.minutes, notes)
