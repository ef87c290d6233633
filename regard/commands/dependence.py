"""What `regard explain` tells of dependence: which wishes make sense, how faithful maps are, and what worries."""

from collections.abc import Iterator
from dataclasses import dataclass

from regard.commands.wrapping import labelled
from regard.errors import DecodingError
from regard.explaining.explanation import Explanation, Faithful, Kind, Method


@dataclass(frozen=True)
class MapWishes:
    """The options that choose maps; `number` is a layer or a head, `full` a page that has RISE if no map is named."""

    maps: tuple[Method, ...]
    masks: int | None
    faithful: bool
    full: bool
    kind: Kind | None
    number: str | None
    pictured: bool


def refuse_unheard_maps(wishes: MapWishes) -> None:
    """An option that would change nothing is a mistake, and so are two pictures for one file."""
    asked_by_masks = "rise" in wishes.maps or ((wishes.faithful or wishes.full) and not wishes.maps)
    if wishes.masks is not None and not asked_by_masks:
        raise DecodingError(f"--masks {wishes.masks}: only rise asks by masks; use it with --map rise")
    if not wishes.maps:
        return
    if wishes.number is not None:
        raise DecodingError(f"--{wishes.number}: chooses weights of attention, not of --map; leave one of them out")
    if wishes.kind == "encoder":
        raise DecodingError("--kind encoder: --map tells what the output depends on; say cross or decoder")
    if wishes.pictured and len(set(wishes.maps)) > 1:
        raise DecodingError("--out: a picture holds one map; give one --map, or write a page")


def faithfulness_table(explanation: Explanation) -> Iterator[str]:
    """A line for each map that was judged, and one for chance; nothing where none was."""
    judged = [(one.method, one.faithful, one.chance) for one in explanation.saliency if one.faithful and one.chance]
    if not judged:
        return
    yield "\nfaithful   deletion  insertion"
    for name, found, _ in judged:
        yield line(name, found)
    yield line("random", judged[0][2])
    yield "mean probability as tokens go (deletion: low is good) and come (insertion: high is good) by the map"


def line(name: str, found: Faithful) -> str:
    return f"{name:<9}  {found.deletion:8.3f}  {found.insertion:9.3f}"


def worries(explanation: Explanation) -> Iterator[str]:
    """What was found by `--check`, a line for each, then what was measured."""
    for concern in explanation.concerns:
        yield labelled("check", f"{concern.kind}: {concern.message}", room=8)
    if not explanation.concerns:
        yield labelled("check", "nothing found", room=8)
    measured = f"dependence on the source {explanation.dependence:.2f}, confidence {explanation.confidence:.2f}"
    yield labelled("check", measured, room=8)
