"""What is installed is what is in the tree: pages, scripts, schemas and recipes come with the wheel."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ASSETS = (".js", ".css", ".html", ".svg", ".json", ".typed")


@pytest.mark.slow
def test_the_wheel_has_every_page_and_script_of_the_tree(tmp_path):
    for name in ("regard", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        place = ROOT / name
        copy = shutil.copytree if place.is_dir() else shutil.copy
        copy(place, tmp_path / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assets = {path.relative_to(ROOT).as_posix() for path in (ROOT / "regard").rglob("*") if path.suffix in ASSETS}
    assert len(assets) > 10
    assert assets <= inside, assets - inside
