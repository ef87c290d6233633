"""`regard export`: a copy of a model for another program."""

import sys
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError
from regard.exporting.argos import Languages, export_argos
from regard.exporting.ctranslate2 import Quantise, export_ctranslate2
from regard.published.exporting import export_transformers


@dataclass(frozen=True)
class ExportRequest:
    """What a user asks of `regard export`; the two language codes are Argos's."""

    out: Path
    to: str
    quantise: Quantise = "float32"
    from_code: str | None = None
    to_code: str | None = None


def export_model(model: Path, request: ExportRequest) -> None:
    """A copy of the model for another program."""
    from_code, to_code = request.from_code, request.to_code
    if request.to != "argos" and (from_code or to_code):
        raise RegardError("--from-code, --to-code: have an effect only with --to argos; leave them out")
    if request.to == "transformers":
        export_published(model, request)
        return
    if request.to == "argos":
        if from_code is None or to_code is None:
            raise RegardError("--to argos: needs the languages' codes; add, for example, --from-code en --to-code de")
        export_argos(model, request.out, Languages(from_code, to_code), request.quantise)
    else:
        export_ctranslate2(model, request.out, request.quantise)
    sys.stdout.write(f"{request.out}: {model} for {request.to}, {request.quantise}\n")


def export_published(model: Path, request: ExportRequest) -> None:
    if request.quantise != "float32":
        raise RegardError(f"--quantise {request.quantise}: has no effect with --to transformers; leave it out")
    made = export_transformers(model, request.out)
    words = (
        "" if made.tokeniser else f"; without a tokeniser, as {made.family} has none of this kind: give it token ids"
    )
    sys.stdout.write(f"{request.out}: {model} for transformers, as {made.family}{words}\n")
