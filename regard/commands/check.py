"""`regard translate --check`: what is wrong with a translation, as far as the model that wrote it can tell."""

from typing import Any

from regard.engine import Engine, TorchEngine, Translation
from regard.explaining.concerns import concerns_of
from regard.explaining.sides import given
from regard.faithful import Faithful
from regard.text.special import EOS


def concerns_in(engine: Engine, translation: Translation) -> list[dict[str, Any]]:
    """The concerns about the best candidate, as `regard explain` has them in JSON; none about a blank text."""
    if not translation.source.strip():
        return []
    inner = engine.engine if isinstance(engine, Faithful) else engine
    assert isinstance(inner, TorchEngine)  # the only one that is let through
    source = given(inner.vocabularies.source, translation.source, after=(EOS,))
    target = given(inner.vocabularies.target, translation.text, after=(EOS,))
    return [concern.model_dump(mode="json") for concern in concerns_of(inner.model, source, target)]
