"""Where a figure comes from: which code, which machine."""

import os
import platform
import subprocess
from pathlib import Path

import torch

PACKAGE = Path(__file__).parent.parent


def commit() -> str:
    """The commit that was measured; "+" after it says that files had been changed since. Installed code has none."""
    try:
        git("ls-files", "--error-unmatch", "errors.py")  # an installed copy may lie inside somebody else's repository
        head = git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if git("status", "--porcelain", "--", ".", "../benchmarks") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=PACKAGE, capture_output=True, text=True, check=True).stdout.strip()


def machine(threads: int | None = None) -> str:
    """Processor, cores, threads that torch used (those of now, if nobody says), and versions."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return (
        f"{model}, {os.cpu_count()} cores, {threads or torch.get_num_threads()} threads, {platform.system()}, "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )
