"""The compiled part of the package: a library of C functions, made when the package was installed.

Where there was no compiler there is no library, and everything is computed by torch: more slowly, and as well.
"""

import ctypes
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

POINTER, NUMBER, REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


def load() -> ctypes.CDLL | None:
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_native{suffix}")
        if path.exists():
            return ctypes.CDLL(str(path))
    return None


library = load()
