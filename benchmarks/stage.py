"""Peers as processes that take turns: exactly one computes at a time, the others wait for a line on their stdin."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import ROOT

# The threads of OpenMP spin for up to 0.2 s after their last work, which must not fall into the turn of another.
PAUSE = 0.25


@dataclass(frozen=True)
class Peer:
    """A module of benchmarks.peers, the Python to run it with, and its argument."""

    name: str
    python: Path
    module: str
    argument: str


class Player:
    """A running peer. What it prints beside its answers is in `log`."""

    def __init__(self, peer: Peer, log: Path) -> None:
        self.name, self.log = peer.name, log
        command = [str(peer.python), "-m", f"benchmarks.peers.{peer.module}", peer.argument]
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            last = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-15:]
            raise SystemExit("\n".join([f"{self.name} ended early; the last lines of {self.log}:", *last]))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def turn(self, asked: object = None) -> dict[str, Any]:
        """One piece of work: what it was asked, what it answered."""
        time.sleep(PAUSE)
        assert self.process.stdin
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def close(self) -> None:
        """No more turns: a peer ends when its stdin does."""
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


@contextmanager
def players(peers: Sequence[Peer], logs: Path) -> Iterator[list[Player]]:
    """All peers started, and ready for their first turn."""
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        started: list[Player] = []
        for peer in peers:
            player = Player(peer, logs / f"{peer.module}-{len(started)}.log")
            stack.callback(player.close)
            started.append(player)
        for player in started:
            say(f"  starting {player.name} ...")
            player.hear()
        yield started


def in_turns(started: Sequence[Player], index: int) -> Sequence[Player]:
    """The order of a round: there and back, so that nobody always follows the same one."""
    return started[::-1] if index % 2 else started


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
