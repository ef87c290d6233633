"""What follows a text: tokens one at a time, as they are drawn."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from regard.decoding.options import SamplingOptions
from regard.decoding.sampling import draw, warp
from regard.decoding.search import Adjust, next_log_probs
from regard.errors import DecodingError
from regard.models.interface import Decoder, nothing_read


def follow(
    decoder: Decoder[Any],
    prompt: Sequence[int],
    options: SamplingOptions,
    *,
    limit: int,
    context: int,
    generator: torch.Generator,
    adjust: Sequence[Adjust] = (),
) -> Iterator[int]:
    """Up to `limit` tokens after the prompt, each as soon as it is drawn; the reader stops when it has seen enough.

    The decoder never sees more than `context` tokens. When they are full, the older half is forgotten and the newer
    read again: one long step every context/2 tokens, where dropping one token would make every step a long one.
    The caller puts the model in eval mode.
    """
    if not prompt:
        raise DecodingError("prompt: empty; a language model goes on from at least one token")
    tokens = list(prompt)
    unread, held, state = tokens[-context:], 0, decoder.begin(nothing_read(1))
    for _ in range(limit):
        if held + len(unread) > context:
            unread, held, state = tokens[-max(1, context // 2) :], 0, decoder.begin(nothing_read(1))
        # Not around the loop: whoever reads along would compute without gradients too.
        with torch.inference_mode():
            log_probs, state = next_log_probs(decoder, decoder.output, torch.tensor([unread]), state)
            for change in adjust:
                log_probs = change(log_probs, torch.tensor([tokens]), torch.zeros(1, dtype=torch.long))
            token = int(draw(warp(log_probs, options), generator))
        held += len(unread)
        tokens.append(token)
        unread = [token]
        yield token
