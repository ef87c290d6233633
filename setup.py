"""The one part that is compiled. Everything else about the package stands in pyproject.toml."""

import os
from pathlib import Path

from setuptools import Extension, setup

# Not c99: gnu99 lets a product and a sum be one instruction.
FLAGS = (
    ["/O2", "/fp:fast"]
    if os.name == "nt"
    else ["-std=gnu99", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"]
)
FOLDER = Path("regard") / "native"

setup(
    ext_modules=[
        Extension(
            "regard.native._native",
            sorted(map(str, FOLDER.glob("*.c"))),
            depends=sorted(map(str, FOLDER.glob("*.h"))),
            extra_compile_args=FLAGS,
            optional=True,  # without a compiler the package works too, only slower
        )
    ]
)
