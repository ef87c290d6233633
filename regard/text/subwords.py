"""Subwords by SentencePiece (BPE or unigram), in a way that loses nothing.

SentencePiece writes a space as ▁ and reads every ▁ back as a space. Here the text's own ▁ goes around it, as bytes;
the space before the first word is ours, so that we know which one to take away.
"""

import random
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from regard.errors import ModelFormatError
from regard.files import write_atomically
from regard.text.sampling import Inventory, Lattice, Merges, Sampler
from regard.text.special import BOS, EOS, NAMES, PAD, UNK
from regard.text.tokeniser import Piece
from regard.text.unicode import SPACE, SURROGATES, begins_character, printable, utf8

LONGEST_WORD = 32  # characters that are sampled as one; Chinese, for instance, has no spaces

_FOREIGN = re.compile(f"([{SPACE}{SURROGATES}])")
_WORD = re.compile(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+")
_BYTE_NAMES = [f"<0x{byte:02X}>" for byte in range(256)]


class Subwords:
    """`model` is a serialised SentencePiece model with our special ids and without normalisation.

    With byte fallback decode(encode(x)) = x for every Unicode text. Without it, each run of characters that the
    vocabulary lacks is one UNK, which `decode` leaves out.
    """

    def __init__(self, model: bytes) -> None:
        self._model = model
        self._processor = _open(model)
        self._names = [self._processor.id_to_piece(id) for id in range(self._processor.get_piece_size())]
        inventory = _inventory(self._processor, self._names)
        self._sampler = _sampler(inventory)
        self._byte_ids = inventory.byte_ids
        self._bytes = {id: byte for byte, id in enumerate(inventory.byte_ids)}
        self._surfaces = [b""] * len(self._names)
        for piece, id in inventory.ids.items():
            self._surfaces[id] = utf8(piece.replace(SPACE, " "))
        for id, byte in self._bytes.items():
            self._surfaces[id] = bytes([byte])

    def __len__(self) -> int:
        return len(self._names)

    def encode(self, text: str) -> list[int]:
        found: list[int] = []
        for part, foreign in _parts(text):
            found += self._spell_foreign(part) if foreign else self._processor.encode(part)
        return found

    def sample(self, text: str, dropout: float, rng: random.Random) -> list[int]:
        """Another segmentation, a pure function of the arguments and the state of `rng`; `encode` at dropout 0."""
        if dropout == 0.0:
            return self.encode(text)
        found: list[int] = []
        for part, foreign in _parts(text):
            if foreign:
                found += self._spell_foreign(part)
                continue
            ids: list[int] = []
            for word in self._words(part):
                ids.extend(self._sampler.draw(word, dropout, rng))
            found += ids if self._byte_ids else _one_unknown_a_run(ids)
        return found

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of `encode`: each character of `text` is in one of them, or in each of its byte pieces.

        A piece that stands only for the space before the first word is empty: start = end = 0.
        """
        found, past = [], -1  # the space that is not in the text
        for part, foreign in _parts(text):
            spans = self._foreign_spans(part) if foreign else self._spans(part)
            found += [Piece(id, self.name(id), max(0, past + a), max(0, past + b)) for id, a, b in spans]
            past += len(part)
        return found

    def name(self, id: int) -> str:
        return NAMES[id] if id < len(NAMES) else printable(self._names[id])

    def decode(self, ids: Sequence[int]) -> str:
        text = b"".join(map(self._surfaces.__getitem__, ids)).decode("utf-8", "replace")
        return text.removeprefix(" ")

    def save(self, folder: Path, stem: str) -> None:
        write_atomically(folder / f"{stem}.model", self._model)

    def _spell_foreign(self, character: str) -> list[int]:
        # No piece stands for a ▁ of the text itself: only its bytes say that it is not a space.
        return [self._byte_ids[byte] for byte in utf8(character)] if self._byte_ids else [UNK]

    def _foreign_spans(self, character: str) -> list[tuple[int, int, int]]:
        return [(id, 0, 1) for id in self._spell_foreign(character)]

    def _spans(self, part: str) -> list[tuple[int, int, int]]:
        """(id, start, end) of the pieces of `part`, in its characters."""
        found, end = [], 0
        ids, surfaces = self._processor.encode(part), self._processor.encode(part, out_type=str)
        for id, surface in zip(ids, surfaces, strict=True):
            byte = self._bytes.get(id)
            if byte is None:
                start, end = end, end + len(surface)
            elif begins_character(byte):
                start, end = end, end + 1
            found.append((id, start, end))
        return found

    def _words(self, part: str) -> Iterator[str]:
        """`part` in stretches to be sampled: its words, the long ones cut between two pieces of `encode`."""
        for word in _WORD.findall(part.replace(" ", SPACE)):
            if len(word) <= LONGEST_WORD:
                yield word
                continue
            cut = 0
            edges = sorted({end for _, _, end in self._spans(word)})
            for edge, following in pairwise([*edges, len(word) + LONGEST_WORD]):
                if following - cut > LONGEST_WORD:
                    yield word[cut:edge]
                    cut = edge


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """ " " + text, cut around each character that SentencePiece may not see; True marks those. Nothing from nothing."""
    if not text:
        return
    if _FOREIGN.search(text) is None:
        yield " " + text, False
        return
    for place, part in enumerate(_FOREIGN.split(" " + text)):
        if part:
            yield part, place % 2 == 1


def _one_unknown_a_run(ids: list[int]) -> list[int]:
    return [id for before, id in pairwise([PAD, *ids]) if not before == id == UNK]


def _open(model: bytes) -> SentencePieceProcessor:
    """A processor that neither adds nor normalises. The error is part of a sentence, which `load` completes."""
    processor = SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
        # Other readers of the file should add the first space; we add it ourselves.
        processor.override_normalizer_spec(add_dummy_prefix=False, remove_extra_whitespaces=False)
        specials = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        unchanged = processor.normalize(" ﬁ Å ①  ") == f"{SPACE}ﬁ{SPACE}Å{SPACE}①{SPACE}{SPACE}"
        spaced = processor.piece_to_id(SPACE) != UNK
        _ = [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    except (RuntimeError, ValueError) as error:  # ValueError: a piece that is no UTF-8
        raise ModelFormatError("not a SentencePiece model, or a damaged one; copy the file again") from error
    if specials != (PAD, UNK, BOS, EOS) or not unchanged or not spaced:
        raise ModelFormatError(
            f"a SentencePiece model of another kind: special ids {specials}, expected {(PAD, UNK, BOS, EOS)}, "
            f"no normalisation and a piece {SPACE}; train it with Regard"
        )
    return processor


def _inventory(processor: SentencePieceProcessor, names: list[str]) -> Inventory:
    byte_ids = [id for id in range(len(names)) if processor.is_byte(id)]
    if byte_ids and [names[id] for id in byte_ids] != _BYTE_NAMES:
        raise ModelFormatError(f"{len(byte_ids)} byte pieces, expected all 256 in order or none; copy the file again")
    others = [id for id in range(len(NAMES), len(names)) if not processor.is_byte(id)]
    scores = {names[id]: processor.get_score(id) for id in others}
    return Inventory({names[id]: id for id in others}, scores, byte_ids)


def _sampler(inventory: Inventory) -> Sampler:
    # The file does not let us ask: the scores of BPE are ranks, 0, -1, …; those of unigram are logarithms.
    ranks = all(score.is_integer() for score in inventory.scores.values())
    return Merges(inventory) if ranks else Lattice(inventory)
