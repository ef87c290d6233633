"""Word alignments of a corpus: read beside its lines, and carried from words to tokens."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from regard.data.pairs import Pair
from regard.data.readers import read_lines
from regard.errors import DataError
from regard.evaluation.alignment import Gold, parse_gold, parse_links, refuse_outside
from regard.text.offsets import word_spans, words_of
from regard.text.tokeniser import Tokeniser


def read_gold(path: Path, pairs: Sequence[Pair]) -> list[Gold]:
    """What people said of each of the pairs; the file has a line for each."""
    lines = list(read_lines(path))
    if len(lines) != len(pairs):
        raise DataError(f"{path} has {len(lines)} lines for {len(pairs)} pairs; give one line of links for each pair")
    found = []
    for number, (line, pair) in enumerate(zip(lines, pairs, strict=True), start=1):
        place = f"{path}, line {number}"
        gold = parse_gold(line, place)
        refuse_outside(gold.possible, pair.source, pair.target, place)
        found.append(gold)
    return found


def with_alignment(pairs: Iterable[Pair], path: Path) -> Iterator[Pair]:
    """Line n of the file with pair n."""
    found = lines = 0
    for pair, line in zip_longest(pairs, read_lines(path)):
        found += pair is not None
        lines += line is not None
        if pair is None or line is None:
            continue  # one of the two has ended: all we still want to know is how long the other is
        place = f"{path}, line {lines}"
        refuse_outside(parse_links(line, place), pair.source, pair.target, place)
        yield replace(pair, alignment=line)
    if found != lines:
        raise DataError(f"{path} has {lines} lines, its corpus has {found} pairs; give one line of links for each pair")


def piece_links(pair: Pair, source: Tokeniser, target: Tokeniser) -> Int32[np.ndarray, "links 2"]:
    """(target piece, source piece) for each piece of a target word and each piece of a source word linked to it."""
    ours, theirs = pieces_by_word(pair.target, target), pieces_by_word(pair.source, source)
    links = parse_links(pair.alignment or "", "alignment")
    found = {(t, s) for i, j in links for t in ours[j] for s in theirs[i]}
    return np.array(sorted(found), dtype=np.int32).reshape(-1, 2)


def pieces_by_word(text: str, tokeniser: Tokeniser) -> list[list[int]]:
    """For each word of the text the numbers of its pieces."""
    found: list[list[int]] = [[] for _ in word_spans(text)]
    for place, words in enumerate(words_of(tokeniser.pieces(text), text)):
        for word in words:
            found[word].append(place)
    return found
