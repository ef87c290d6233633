"""Texts as an encoder reads them: BOS text EOS, or BOS first EOS second EOS, each token with the number of its text."""

from collections.abc import Sequence

from regard.text.special import BOS, EOS

Ids = Sequence[int]


def shortened(first: Ids, second: Ids | None, most: int) -> tuple[Ids, Ids | None]:
    """Both texts without the ends that would make the frame longer than `most`; the longer text loses first.

    Of equally long ones the second loses. Devlin et al. 2019, `truncate_seq_pair`.
    """
    if second is None:
        return first[: most - 2], None
    room = most - 3
    one = min(len(first), max(room - len(second), (room + 1) // 2))
    return first[:one], second[: room - one]


def framed(first: Ids, second: Ids | None) -> tuple[list[int], list[int]]:
    """Tokens and their segments: 0 from BOS to the first EOS, 1 from there to the last."""
    tokens = [BOS, *first, EOS]
    if second is None:
        return tokens, [0] * len(tokens)
    return [*tokens, *second, EOS], [0] * len(tokens) + [1] * (len(second) + 1)
