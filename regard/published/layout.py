"""How tensors of a published checkpoint become ours, and back: one entry for each tensor of ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.errors import ModelFormatError
from regard.published.vocabulary import NONE, Order


@runtime_checkable
class Fold(Protocol):
    """How several of their tensors make one of ours, and back: split(join(parts)) = parts.

    ValueError says what is wrong with a tensor, without its name.
    """

    def join(self, parts: Sequence[Tensor]) -> Tensor: ...
    def split(self, ours: Tensor) -> list[Tensor]: ...


@dataclass(frozen=True)
class Same:
    """Their tensor is ours."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        (only,) = parts
        return only

    def split(self, ours: Tensor) -> list[Tensor]:
        return [ours]


@dataclass(frozen=True)
class Transposed:
    """They compute x W where we compute W x: GPT-2's Conv1D."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        (only,) = parts
        if only.dim() != 2:
            raise ValueError(f"is {tuple(only.shape)}, expected a matrix")
        return only.mT

    def split(self, ours: Tensor) -> list[Tensor]:
        return [ours.mT]


@dataclass(frozen=True)
class Stacked:
    """`parts` tensors of one size above one another: queries, keys and values as one layer."""

    parts: int

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        sizes = sorted({tuple(part.shape) for part in parts})
        if len(sizes) > 1 or sizes == [()]:
            raise ValueError(f"are {', '.join(map(str, sizes))}, expected {self.parts} of one size")
        return torch.cat(list(parts))

    def split(self, ours: Tensor) -> list[Tensor]:
        if not ours.dim() or len(ours) % self.parts:
            raise ValueError(f"is {tuple(ours.shape)}, expected {self.parts} equal parts above one another")
        return list(ours.chunk(self.parts))


@dataclass(frozen=True)
class Scaled:
    """`factor` times their tensor: a factor that they apply in the model and we do not."""

    factor: float

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        (only,) = parts
        return only * self.factor

    def split(self, ours: Tensor) -> list[Tensor]:
        return [ours / self.factor]


@dataclass(frozen=True)
class Reshaped:
    """The same numbers in another shape: a convolution's kernel as a matrix, a table without an axis of size 1."""

    theirs: tuple[int, ...]
    ours: tuple[int, ...]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        (only,) = parts
        if only.shape != self.theirs:
            raise ValueError(f"is {tuple(only.shape)}, expected {self.theirs}")
        return only.reshape(self.ours)

    def split(self, ours: Tensor) -> list[Tensor]:
        return [ours.reshape(self.theirs)]


@dataclass(frozen=True)
class Rows:
    """A table by vocabulary: row i of ours is their row order[i], and zeros where that is −1."""

    order: Order

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        (only,) = parts
        return by_order(only, self.order, 0.0)

    def split(self, ours: Tensor) -> list[Tensor]:
        return [back_by_order(ours, self.order)]


@dataclass(frozen=True)
class Values:
    """A vector by vocabulary: value i of ours is their value order[i], and `filler` where that is −1."""

    order: Order
    filler: float

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        (only,) = parts
        return by_order(only, self.order, self.filler)

    def split(self, ours: Tensor) -> list[Tensor]:
        return [back_by_order(ours, self.order)]


@dataclass(frozen=True)
class Repeated:
    """One tensor that they store under `times` names: a tied weight with its copies."""

    times: int
    inner: Fold

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        first, *others = parts
        if not all(torch.equal(first, other) for other in others):
            raise ValueError("differ, though the config says that they are one tensor")
        return self.inner.join([first])

    def split(self, ours: Tensor) -> list[Tensor]:
        return self.inner.split(ours) * self.times


@dataclass(frozen=True)
class Last:
    """The last of `times` tensors of theirs; nothing reads the others, which going back become the same."""

    times: int
    inner: Fold

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return self.inner.join(parts[-1:])

    def split(self, ours: Tensor) -> list[Tensor]:
        return self.inner.split(ours) * self.times


@dataclass(frozen=True, eq=False)
class Made:
    """A tensor that only we have; going back it must be as it was made, or something would be lost."""

    tensor: Tensor

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        assert not parts, "an entry with this fold names none of theirs"
        return self.tensor.clone()

    def split(self, ours: Tensor) -> list[Tensor]:
        if ours.shape != self.tensor.shape or not torch.equal(ours, self.tensor.to(ours)):
            raise ValueError("was trained, and the published model has no place for it")
        return []


# ---------------------------------------------------------------- vocabularies
def by_order(theirs: Tensor, order: Order, filler: float) -> Tensor:
    """ours[i] = theirs[order[i]], and `filler` where they have none."""
    index = torch.tensor(order)
    real = index != NONE
    if not theirs.dim() or len(theirs) != int(real.sum()):
        raise ValueError(f"is {tuple(theirs.shape)}, expected one for each of {int(real.sum())} ids of the vocabulary")
    ours = theirs.new_full((len(index), *theirs.shape[1:]), filler)
    ours[real] = theirs[index[real]]
    return ours


def back_by_order(ours: Tensor, order: Order) -> Tensor:
    """theirs[order[i]] = ours[i]; what we have and they have not is left out."""
    index = torch.tensor(order)
    real = index != NONE
    if not ours.dim() or len(ours) != len(index):
        raise ValueError(f"is {tuple(ours.shape)}, expected one for each of {len(index)} ids of the vocabulary")
    theirs = torch.empty_like(ours[real])
    theirs[index[real]] = ours[real]
    return theirs


def check_order(order: Order, vocab: int) -> None:
    """Refuses an order in which not each of their `vocab` ids stands exactly once."""
    found = [id for id in order if id != NONE]
    if sorted(found) != list(range(vocab)):
        raise ModelFormatError(
            f"config.json: vocab_size: found {vocab}, but the tokeniser has {len(set(found))} ids up to "
            f"{max(found, default=0)}, {len(found) - len(set(found))} of them twice; use the checkpoint's own tokeniser"
        )


# ---------------------------------------------------------------- layouts
@dataclass(frozen=True)
class Entry:
    """One tensor of ours, and which of theirs it is made of."""

    ours: str
    theirs: tuple[str, ...]
    fold: Fold


Layout = Sequence[Entry]


def linear(ours: str, theirs: str) -> list[Entry]:
    """A linear layer with a bias."""
    return [Entry(f"{ours}.{name}", (f"{theirs}.{name}",), Same()) for name in ("weight", "bias")]


def packed(ours: str, theirs: Sequence[str]) -> list[Entry]:
    """Linear layers with biases that we compute as one."""
    fold = Stacked(len(theirs))
    return [Entry(f"{ours}.{name}", tuple(f"{part}.{name}" for part in theirs), fold) for name in ("weight", "bias")]


def norm(ours: str, theirs: str) -> list[Entry]:
    """A layer norm."""
    return [Entry(f"{ours}.gain", (f"{theirs}.weight",), Same()), Entry(f"{ours}.shift", (f"{theirs}.bias",), Same())]


def to_ours(
    layout: Layout,
    theirs: Mapping[str, Tensor],
    where: str,
    ignored: Sequence[str] = (),
    like: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """Our tensors made of theirs; names that match a pattern of `ignored` may be there and are left out.

    `like` are the tensors of a fresh model of ours: with it, a wrong size is refused by their name.
    """
    check_names({name for entry in layout for name in entry.theirs}, theirs, where, ignored)
    found = {}
    for entry in layout:
        parts = [theirs[name] for name in entry.theirs]
        for name, part in zip(entry.theirs, parts, strict=True):
            if not part.is_floating_point():
                raise ModelFormatError(f"{where}: tensor {name!r} is {part.dtype}, expected floating point")
        try:
            if like is not None and entry.theirs:
                check_sizes(entry, parts, like[entry.ours], where)
            found[entry.ours] = entry.fold.join(parts)
        except ValueError as error:
            raise ModelFormatError(f"{where}: {named(entry.theirs)} {error}") from None
    return found


def to_theirs(layout: Layout, ours: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """Their tensors made of ours; no two share memory."""
    check_names({entry.ours for entry in layout}, ours, where, ())
    found = {}
    for entry in layout:
        try:
            parts = entry.fold.split(ours[entry.ours])
        except ValueError as error:
            raise ModelFormatError(f"{where}: {named([entry.ours])} {error}") from None
        for name, part in zip(entry.theirs, parts, strict=True):
            found[name] = part.detach().clone(memory_format=torch.contiguous_format)
    return found


def check_names(wanted: set[str], found: Mapping[str, Tensor], where: str, ignored: Sequence[str]) -> None:
    """Refuses names that are missing, and those that nobody asked for."""
    missing = sorted(wanted - found.keys())
    if missing:
        raise ModelFormatError(
            f"{where}: no tensor {missing[0]!r}{and_more(missing)}; expected the tensors that its config describes"
        )
    extra = sorted(name for name in found.keys() - wanted if not any(fnmatchcase(name, like) for like in ignored))
    if extra:
        raise ModelFormatError(
            f"{where}: unknown tensor {extra[0]!r}{and_more(extra)}; expected the tensors that its config describes"
        )


def check_sizes(entry: Entry, parts: Sequence[Tensor], like: Tensor, where: str) -> None:
    """Refuses parts that `like`, taken apart, does not have."""
    for name, part, wanted in zip(entry.theirs, parts, entry.fold.split(like), strict=True):
        if part.shape != wanted.shape:
            raise ModelFormatError(
                f"{where}: tensor {name!r} is {tuple(part.shape)}, expected {tuple(wanted.shape)} by its config"
            )


def named(names: Sequence[str]) -> str:
    return f"tensor{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def and_more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
