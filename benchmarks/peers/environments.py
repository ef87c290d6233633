"""A virtual environment for each peer, made once beneath the work folder from its pinned requirements."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
DONE = "requirements.txt"  # the copy that says which requirements are installed


def interpreter(name: str, work: Path) -> Path:
    """The Python of the environment `name`, which is made when there is none, or one of other requirements."""
    folder, wanted = work / name, (HERE / f"{name}.txt").read_text(encoding="utf-8")
    python = folder / "bin" / "python"
    done = folder / DONE
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    sys.stderr.write(f"installing {name} into {folder} (minutes, once) ...\n")
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    # torch first, by its exact version: what depends on it may otherwise fetch gigabytes for a GPU that is not there.
    subprocess.run([*install, wanted.splitlines()[0]], check=True, stdout=sys.stderr)
    subprocess.run([*install, "-r", str(HERE / f"{name}.txt")], check=True, stdout=sys.stderr)
    done.write_text(wanted, encoding="utf-8")
    return python
