"""How this process gets its memory from the system: settled before anything large is asked for.

Training makes and frees tensors of many megabytes thousands of times a minute. By default glibc hands each back to the
system, which fills every page of the next one with zeros, 4 kB at a time: a tenth of a second of each second-long step
went there. Kept instead, and in pages of 2 MB, they made a step 3 to 5 % faster (docs/speed.md).
"""

import os
import sys
from collections.abc import Mapping, Sequence

COMPUTING = (  # commands that are worth it
    "train",
    "demo",
    "translate",
    "evaluate",
    "compare",
    "backtranslate",
    "distil",
    "study",
)
VARIABLE = "GLIBC_TUNABLES"  # glibc reads it once, when a process begins
LARGE = 4_000_000_000
SETTINGS = {
    "glibc.malloc.hugetlb": 1,  # ask for 2 MB pages
    "glibc.malloc.mmap_threshold": LARGE,  # no tensor gets pages of its own, to be given back when it is freed
    "glibc.malloc.trim_threshold": LARGE,  # nor is the end of the heap given back
    "glibc.malloc.arena_max": 1,  # what one thread frees, another takes
}


def settle_allocator(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Begins this process anew with the settings, if its command computes, its C library is glibc and nobody chose."""
    if not any(word in COMPUTING for word in arguments[:2]):
        return
    if chosen := tunables(environment):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**environment, **chosen})


def tunables(environment: Mapping[str, str]) -> dict[str, str]:
    """What to add to the environment of a process that computes; nothing where somebody chose, or without glibc."""
    if VARIABLE in environment or not glibc():
        return {}
    return {VARIABLE: ":".join(f"{name}={value}" for name, value in SETTINGS.items())}


def glibc() -> bool:
    names = getattr(os, "confstr_names", {})
    return "CS_GNU_LIBC_VERSION" in names and bool(os.confstr("CS_GNU_LIBC_VERSION"))
