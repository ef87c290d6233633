"""Word alignment: links between the words of two sentences, how they are written, joined and scored."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from regard.errors import DataError

Link = tuple[int, int]  # source word, target word, counted from 0
Links = frozenset[Link]
Joining = Literal["grow-diag-final-and", "intersection", "union"]

_LINK = re.compile("([0-9]{1,6})([-p])([0-9]{1,6})")
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))  # target, source; in Koehn's order


@dataclass(frozen=True)
class Gold:
    """What people said of one pair: links they were sure of, and all that they found possible, those included."""

    sure: Links
    possible: Links

    def turned(self) -> "Gold":
        return Gold(turn(self.sure), turn(self.possible))


# ---------------------------------------------------------------- writing and reading
def write_links(links: Links) -> str:
    """ "0-0 1-2": source word, target word, in order. The form of Pharaoh and Moses."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse_gold(line: str, place: str) -> Gold:
    """ "0-0 1p2": a sure link, and one that is only possible; a link written both ways is sure."""
    sure, possible = set(), set()
    for written in line.split():
        found = _LINK.fullmatch(written)
        if found is None:
            raise DataError(
                f"{place}: found {written[:20]!r}, expected links such as 0-2 (source word, target word, from 0), "
                "or 0p2 where one is only possible"
            )
        link = int(found[1]), int(found[3])
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def parse_links(line: str, place: str) -> Links:
    """ "0-0 1-2": the way back from `write_links`."""
    found = parse_gold(line, place)
    if found.sure != found.possible:
        source, target = min(found.possible - found.sure)
        raise DataError(f"{place}: found {source}p{target}, expected links that are sure, such as {source}-{target}")
    return found.sure


def refuse_outside(links: Links, source: str, target: str, place: str) -> None:
    """Links join words that are there. Words are what stands between white space."""
    sources, targets = len(source.split()), len(target.split())
    for link in sorted(links):
        if link[0] >= sources or link[1] >= targets:
            raise DataError(
                f"{place}: found the link {link[0]}-{link[1]}, but the pair has {sources} source and {targets} target "
                "words, counted from 0; are these the same texts, tokenised in the same way?"
            )


# ---------------------------------------------------------------- two directions
def turn(links: Links) -> Links:
    """The same links of the pair with its sides exchanged."""
    return frozenset((target, source) for source, target in links)


def join(forward: Links, backward: Links, how: Joining) -> Links:
    """One alignment of two that were found in opposite directions; both are written source, target."""
    match how:
        case "intersection":
            return forward & backward
        case "union":
            return forward | backward
        case "grow-diag-final-and":
            return grow_diag_final_and(forward, backward)


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """The intersection, then neighbours from the union, then links of words that have none yet.

    Grow-diag: a link of the union that touches one already taken, also at a corner, is taken if one of its words has no
    link. Final-and: a link of either direction is taken if neither of its words has one. The order is that of the
    published program: target words outermost. Koehn et al. 2005.
    """
    taken = set(forward & backward)
    sources, targets = {source for source, _ in taken}, {target for _, target in taken}

    def take(link: Link) -> None:
        taken.add(link)
        sources.add(link[0])
        targets.add(link[1])

    union, before = in_order(forward | backward), -1
    while len(taken) > before:
        before = len(taken)
        for source, target in (link for link in union if link in taken):
            for down, right in NEIGHBOURS:
                near = source + right, target + down
                free = near[0] not in sources or near[1] not in targets
                if free and (near in forward or near in backward):
                    take(near)
    for link in (*in_order(forward), *in_order(backward)):
        if link[0] not in sources and link[1] not in targets:
            take(link)
    return frozenset(taken)


def in_order(links: Iterable[Link]) -> list[Link]:
    """By target word, then by source word."""
    return sorted(links, key=lambda link: (link[1], link[0]))


# ---------------------------------------------------------------- scores
@dataclass(frozen=True)
class AlignmentScore:
    """Counts over sentences, of links A, sure ones S and possible ones P; every measure divides once.

    AER = 1 − (|A∩S| + |A∩P|) / (|A| + |S|), precision = |A∩P| / |A|, recall = |A∩S| / |S|, as percentages.
    Och & Ney 2003.
    """

    sentences: int = 0
    links: int = 0
    sure: int = 0
    found_sure: int = 0
    found_possible: int = 0

    def __add__(self, other: "AlignmentScore") -> "AlignmentScore":
        return AlignmentScore(
            self.sentences + other.sentences,
            self.links + other.links,
            self.sure + other.sure,
            self.found_sure + other.found_sure,
            self.found_possible + other.found_possible,
        )

    @property
    def aer(self) -> float:
        """The error; 0 where there was nothing to find and nothing was found."""
        right, every = self.found_sure + self.found_possible, self.links + self.sure
        return 100 - 100 * right / every if every else 0.0

    @property
    def precision(self) -> float:
        return 100 * self.found_possible / self.links if self.links else 0.0

    @property
    def recall(self) -> float:
        return 100 * self.found_sure / self.sure if self.sure else 0.0

    def to_json(self) -> dict[str, Any]:
        ratios = {"aer": self.aer, "precision": self.precision, "recall": self.recall}
        return {**ratios, "links": self.links, "sentences": self.sentences}


def score_links(links: Links, gold: Gold) -> AlignmentScore:
    """The score of one pair; the sum of such scores is that of a corpus."""
    return AlignmentScore(1, len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible))
