"""Rows that do not know of each other, dealt out to as many threads as torch may use: C works on one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import torch

LEAST = 16  # rows that are worth a thread


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="native")


def in_shares(count: int, size: int, work: Callable[[int, int], int]) -> bool:
    """work(first, last) for the parts of range(count), each number of which is `size` rows; whether all went well."""
    threads = min(torch.get_num_threads(), count * size // LEAST)
    if threads < 2:
        return bool(work(0, count))
    own, *others = pairwise(count * place // threads for place in range(threads + 1))
    begun = [pool(threads - 1).submit(work, *part) for part in others]
    return bool(work(*own)) & all(other.result() for other in begun)
