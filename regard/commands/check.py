"""`regard translate --check`: what is wrong with a translation, as far as the model that wrote it can tell."""

from typing import Any

from regard.engine import Engine, TorchEngine, Translation
from regard.errors import DecodingError
from regard.explaining.concerns import check_output
from regard.explaining.sides import given
from regard.faithful import Faithful
from regard.text.special import EOS


def check_in(engine: Engine, translation: Translation) -> dict[str, Any]:
    """The check of the best candidate, as `regard explain` has it in JSON; of a blank text nothing is measured.

    All is null where it cannot be checked, as it is too long.
    """
    if not translation.source.strip():
        return {"concerns": [], "dependence": None, "confidence": None}
    inner = engine.engine if isinstance(engine, Faithful) else engine
    assert isinstance(inner, TorchEngine)  # the only one that is let through
    source = given(inner.vocabularies.source, translation.source, after=(EOS,))
    target = given(inner.vocabularies.target, translation.text, after=(EOS,))
    try:
        found = check_output(inner.model, source, target)
    except DecodingError:
        return {"concerns": None, "dependence": None, "confidence": None}
    return {**vars(found), "concerns": [concern.model_dump(mode="json") for concern in found.concerns]}
