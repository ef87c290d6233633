"""A few sentences of which a person can see how a model comes along."""

from dataclasses import dataclass

LONGEST = 300  # characters of a text that is shown


@dataclass(frozen=True)
class Sample:
    """A sentence, what a model writes for it, and what was expected."""

    source: str
    output: str
    reference: str

    @property
    def short(self) -> "Sample":
        """Without what no reader wants to see, and no log should hold."""
        return Sample(shortened(self.source), shortened(self.output), shortened(self.reference))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
