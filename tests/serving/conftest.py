"""One running service for all tests that leave it as it was."""

import shutil

import pytest
from served import serving

from regard.engine import load


@pytest.fixture(scope="session")
def place(tmp_path_factory, model):
    """A folder with a second model of the same direction in it; what the service writes comes here."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(model, folder / "twin")
    return folder


@pytest.fixture(scope="session")
def running(model, place):
    options = ("--judgements", place / "judged", "--suggestions", place / "suggested")
    with serving(place, f"en:de={model}", f"en:de={place / 'twin'}", *options) as found:
        yield found


@pytest.fixture(scope="session")
def service(running):
    """Its address."""
    return running.address


@pytest.fixture(scope="session")
def engine(model):
    """The model that it serves, in this process."""
    return load(model)
