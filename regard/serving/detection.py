"""Which language a text is in, by py3langid: naive Bayes over stretches of bytes, its weights inside the package.

Chosen because it works offline, reads a short text in a fraction of a millisecond, holds no pickle, and can be asked
about the languages of a service alone (Lui & Baldwin 2012).
"""

import math
from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from regard.serving.languages import canonical


class Detector:
    """Loads once. A code that py3langid does not know is never found."""

    def __init__(self) -> None:
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)

    def __call__(self, text: str, codes: Sequence[str]) -> list[tuple[str, float]]:
        """The codes with the probability of each, which sum to 1; best first."""
        scores = {canonical(code): float(score) for code, score in self._identifier.rank(text)}
        known = [code for code in codes if base(code) in scores]
        if not known:
            return [(code, 1 / len(codes)) for code in codes]
        best = max(scores[base(code)] for code in known)
        weights = {code: math.exp(scores[base(code)] - best) for code in known}
        total = sum(weights.values())
        return sorted(((code, weight / total) for code, weight in weights.items()), key=lambda found: -found[1])


def base(code: str) -> str:
    """pt of pt-br; Chinese, in either script, is one language."""
    return canonical(code.partition("-")[0])
