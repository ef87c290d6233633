"""A tiny checkpoint of every published family, and the model directory made of each: made once, only read."""

from pathlib import Path

import pytest

from regard.published.importing import import_checkpoint


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """NAME → the folder of a checkpoint."""
    from published_folders import CLASSES, write_checkpoint  # skips where transformers is not installed

    place = tmp_path_factory.mktemp("published")
    return {name: write_checkpoint(place / name, name) for name in CLASSES}


@pytest.fixture(scope="session")
def imported(published: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """NAME → the model directory."""
    place = tmp_path_factory.mktemp("imported")
    for name, folder in published.items():
        import_checkpoint(folder, place / name, convert=False, say=lambda _: None)
    return {name: place / name for name in published}
