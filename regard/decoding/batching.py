"""Which sentences to decode together: similar lengths, so that little is computed for padding."""

from collections.abc import Sequence

from regard.errors import DecodingError


def order_by_length(lengths: Sequence[int], tokens_budget: int) -> list[list[int]]:
    """Indices grouped so that longest · count ≤ tokens_budget, longest first; every index is in exactly one group.

    Longest first: if memory runs out, it does so at once. A sentence longer than the budget is a group of its own.
    """
    if tokens_budget < 1:
        raise DecodingError(f"tokens_budget: found {tokens_budget}, expected 1 or more")
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if groups and lengths[groups[-1][0]] * (len(groups[-1]) + 1) <= tokens_budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
