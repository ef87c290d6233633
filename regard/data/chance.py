"""Randomness that a resumed run repeats: a source of its own for every example of every epoch."""

import numpy as np

DOMAIN = 0x5EED  # keeps [seed, epoch, 0] apart from [seed, epoch], which orders the batches: numpy pads with zeros


def chance(seed: int, epoch: int, index: int) -> np.random.Generator:
    """A generator that depends on the three numbers only, so neither on the batch nor on what was drawn before."""
    return np.random.default_rng(np.random.SeedSequence([seed, epoch, index, DOMAIN]))
