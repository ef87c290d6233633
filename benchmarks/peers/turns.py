"""The side of a peer: it works when told to and says how long that took.

Standard library only, because each peer lives in an environment of its own.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


class Answers:
    """What the process says to the one who asks. Whatever else it prints goes to stderr."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # a library that prints must not get in between

    def say(self, content: object) -> None:
        self.out.write(json.dumps(content) + "\n")
        self.out.flush()


class Turns:
    """Waits for a line on stdin before each block of `steps`; answers each with {"tokens": …, "seconds": …}.

    The first answer, of no tokens, says that the peer is ready.
    """

    def __init__(self, steps: int) -> None:
        self.steps, self.tokens = steps, 0
        self.answers = Answers()
        self._wait(0.0)

    def done(self, tokens: int) -> None:
        """A step is over that taught this many target tokens; the process ends here when no more turns come."""
        self.tokens += tokens
        self.left -= 1
        if self.left == 0:
            self._wait(time.perf_counter() - self.began)

    def _wait(self, seconds: float) -> None:
        self.answers.say({"tokens": self.tokens, "seconds": seconds})
        if not sys.stdin.readline():
            os._exit(0)  # not sys.exit: a trainer would catch it and write a last checkpoint
        self.tokens, self.left, self.began = 0, self.steps, time.perf_counter()


def serve(answers: Answers, work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Says that it is ready, then does what each line asks for; the seconds of the work join its answer."""
    answers.say({})
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.perf_counter()
        found = work(asked)
        answers.say({**found, "seconds": time.perf_counter() - began})
