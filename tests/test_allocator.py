import json
import os
import subprocess
import sys

import pytest

from regard import allocator
from regard.allocator import SETTINGS, VARIABLE, settle_allocator

ASK = """
import json, os, sys
from regard.allocator import settle_allocator
settle_allocator(["train"], os.environ)
print(json.dumps({"tunables": os.environ.get("GLIBC_TUNABLES"), "words": sys.argv[1:]}))
"""


@pytest.fixture
def begun(monkeypatch):
    found = []
    monkeypatch.setattr(allocator.os, "execve", lambda *given: found.append(given))
    monkeypatch.setattr(allocator, "glibc", lambda: True)
    return found


@pytest.mark.skipif(not allocator.glibc(), reason="this system's C library is not glibc")
def test_a_process_begins_once_more_with_the_settings_and_its_own_words():
    clean = {name: value for name, value in os.environ.items() if name != VARIABLE}
    run = subprocess.run(
        [sys.executable, "-c", ASK, "ä b", "--c"], env=clean, capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    assert found["words"] == ["ä b", "--c"]
    assert dict(pair.split("=") for pair in found["tunables"].split(":")) == {
        name: str(value) for name, value in SETTINGS.items()
    }


def test_commands_that_compute_begin_anew_and_others_do_not(begun):
    for words in (["translate", "m"], ["--debug", "train", "recipe.yaml"]):
        settle_allocator(words, {})
    assert len(begun) == 2
    for words in ([], ["--help"], ["inspect", "m", "train"]):
        settle_allocator(words, {})
    assert len(begun) == 2


def test_what_the_user_chose_stays(begun, monkeypatch):
    settle_allocator(["train"], {VARIABLE: "glibc.malloc.check=3"})
    monkeypatch.setattr(allocator, "glibc", lambda: False)
    settle_allocator(["train"], {})
    assert begun == []
