"""What all tests of the compiled twins have at hand."""

import pytest
import torch
from swift_models import SOURCES, VARIANTS, build, encode


@pytest.fixture(autouse=True, scope="module")
def _unwritten_memory_is_nan():
    """Storage that is read before it is written must show, and not only when chance left a NaN there."""
    torch.use_deterministic_algorithms(True)
    with torch.no_grad():
        yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(params=VARIANTS, scope="module")
def model(request):
    return build(**VARIANTS[request.param])


@pytest.fixture(scope="module")
def plain():
    return build()


@pytest.fixture(scope="module")
def memory(model):
    return encode(model, SOURCES)
