"""How far RISE has come, for whoever waits."""

import time
from collections.abc import Iterable

from regard.commands.progress import say
from regard.explaining.rise import Saliency, Stop

EVERY = 2.0  # seconds between two lines of progress


def watched(name: str, estimates: Iterable[Saliency], stop: Stop) -> Saliency:
    """The last of the estimates: asked until it is certain enough, with a line now and then, and one at the end."""
    told = time.monotonic()
    for found in estimates:
        if time.monotonic() - told >= EVERY:
            told = time.monotonic()
            say(standing(name, found, stop))
    say(standing(name, found, stop) + ("" if converged(found, stop) else "; more --masks make it smaller"))
    return found


def converged(found: Saliency, stop: Stop) -> bool:
    return found.uncertainty <= stop.tolerance


def standing(name: str, found: Saliency, stop: Stop) -> str:
    """ "rise: 640 of at most 4,000 masks, largest standard error 9.1% of the range"."""
    asked = f"{found.masks:,} of at most {stop.most:,} masks"
    return f"{name}: {asked}, largest standard error {found.uncertainty:.1%} of the range"
