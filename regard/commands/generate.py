"""`regard generate`: what follows a prompt, as it is drawn."""

import sys
from dataclasses import dataclass
from pathlib import Path

from regard.commands.options import checked
from regard.commands.streams import to_json
from regard.decoding.options import SamplingOptions
from regard.generator import load_generator


@dataclass(frozen=True)
class GenerateRequest:
    """What a user asks of `regard generate`."""

    prompt: str = ""
    tokens: int = 200
    samples: int = 1
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 1
    as_json: bool = False


def generate_texts(model: Path, request: GenerateRequest) -> None:
    """Writes the prompt and what follows, piece by piece; several samples are set apart by a line."""
    asked = {"temperature": request.temperature, "top_k": request.top_k, "top_p": request.top_p}
    options = checked(SamplingOptions(), asked)
    generator = load_generator(model)
    for sample in range(request.samples):
        pieces = generator.generate(request.prompt, options, limit=request.tokens, seed=request.seed + sample)
        if request.as_json:
            text = "".join(pieces)
            sys.stdout.write(to_json({"prompt": request.prompt, "text": text, "seed": request.seed + sample}) + "\n")
            continue
        if sample:
            sys.stdout.write("---\n")
        sys.stdout.write(request.prompt)
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()  # people like to read along
        sys.stdout.write("\n")
