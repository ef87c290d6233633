"""A vocabulary learned from a corpus, the same one for the same lines, options and seed."""

import io
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sentencepiece import SentencePieceTrainer

from regard.errors import DataError, RecipeError
from regard.text.bytes import SIZE as BYTES_SIZE
from regard.text.bytes import Bytes
from regard.text.characters import Characters, by_frequency, count_characters
from regard.text.options import LETTERS, TextOptions
from regard.text.special import BOS, EOS, NAMES, PAD, UNK, sentinel
from regard.text.subwords import Subwords
from regard.text.tokeniser import Tokeniser
from regard.text.unicode import SPACE, SURROGATES

MOST_LINES = 2_000_000  # more would slow the learning, not change the pieces
LONGEST_LINE = 4_000  # characters; SentencePiece aborts the process beyond 65,535 without a space
READ, TRANSLATED = 3_600, 7_200  # pieces for four million characters of text that is read, or of two languages
COVERAGE = 0.9999  # the part of the text whose characters become pieces

# SentencePiece keeps ▁, ▅ and the tab for itself and would leave such a line out; the others are no UTF-8 or no line.
# It learns nothing from its own names either, so a literal <s> is cut after its first character.
_UNFIT = re.compile(f"[\x00\t\n\r{SPACE}\u2585{SURROGATES}]+|(?<=<)(?=(?:pad|unk|/?s|0x[0-9A-F]{{2}})>)")


def learn(lines: Sequence[str], options: TextOptions, seed: int, pieces: int = READ) -> Tokeniser:
    """The tokeniser that `options` ask for. `seed` chooses among the lines when there are more than two million.

    `pieces` are those of `choose_size`, where no size is asked for.
    """
    if options.sentinels and options.kind in LETTERS:
        raise RecipeError(f"text.sentinels: {options.sentinels}, but {options.kind} have none; use bpe or unigram")
    match options.kind:
        case "bytes":
            if options.size not in (None, BYTES_SIZE):
                raise RecipeError(f"text.size: {options.size}, but bytes always make {BYTES_SIZE} ids; leave it out")
            return Bytes()
        case "characters":
            alphabet = by_frequency(count_characters(_readable(lines)))
            return Characters(alphabet if options.size is None else alphabet[: options.size - len(NAMES)])
        case "published":
            raise RecipeError(
                "text.kind: published is a vocabulary that came with its weights, none that is learned; take one with "
                "--vocabulary MODEL, or use bpe"
            )
        case _:
            return _learn_subwords(_readable(_some(lines, seed)), options, pieces)


def choose_size(counts: Counter[str], byte_fallback: bool, pieces: int = READ) -> int:
    """special + bytes + alphabet + m, with m = pieces · (characters / 4·10⁶)^⅓ pieces of more than one character.

    Of a translator about 8,000 for 30k sentence pairs, 30,000 for a million, at most 32,000 beside the alphabet. Small
    corpora want small vocabularies: Sennrich & Zhang 2019 (low-resource BPE), Gowda & May 2020 (rare ids are badly
    trained). On Multi30k twice as many as for a text that is read alone had 0.7 to 0.9 BLEU more in equal time.
    """
    return len(NAMES) + 256 * byte_fallback + _covering(counts) + 1 + merges(counts, pieces)  # 1 for the space itself


def merges(counts: Counter[str], pieces: int = READ) -> int:
    """The m of `choose_size`."""
    return min(32_000, round(pieces * math.cbrt(counts.total() / 4e6)))


def _readable(lines: Sequence[str]) -> Sequence[str]:
    """`lines`, which are known to hold something to learn from."""
    if next(_sentences(lines), None) is None:
        raise DataError(f"text: {len(lines)} lines without a single character to learn from; give a corpus with text")
    return lines


def _covering(counts: Counter[str]) -> int:
    """How many characters, most frequent first, make up `COVERAGE` of the text."""
    missing, needed = COVERAGE * counts.total(), 0
    for _, count in counts.most_common():
        if missing <= 0:
            break
        missing, needed = missing - count, needed + 1
    return needed


def _learn_subwords(lines: Sequence[str], options: TextOptions, pieces: int) -> Subwords:
    chosen = options.size or choose_size(count_characters(lines), options.byte_fallback, pieces) + options.sentinels
    found = Subwords(_train(_sentences(lines), options, chosen))
    if options.size is not None and len(found) < options.size:
        raise RecipeError(
            f"text.size: {options.size} is larger than this text allows (at most {len(found)}); "
            "lower it or leave it out"
        )
    return found


def _train(sentences: Iterator[str], options: TextOptions, size: int) -> bytes:
    """A serialised model of at most `size` pieces."""
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_writer=model,
            model_type=options.kind,
            vocab_size=size,
            hard_vocab_limit=False,
            byte_fallback=options.byte_fallback,
            character_coverage=COVERAGE,
            user_defined_symbols=[sentinel(place) for place in range(options.sentinels)],
            required_chars=SPACE,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=4 * LONGEST_LINE,  # bytes
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=1,  # the sums of unigram depend on it in the last digit
            minloglevel=9,  # silence
        )
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        if needed is None:
            raise
        raise RecipeError(
            f"text.size: {size} is too small for the characters of this text (at least {needed[1]}); "
            "raise it or leave it out"
        ) from error
    return model.getvalue()


def _some(lines: Sequence[str], seed: int) -> Sequence[str]:
    """All lines, or `MOST_LINES` of them in their order."""
    if len(lines) <= MOST_LINES:
        return lines
    return [lines[place] for place in sorted(random.Random(seed).sample(range(len(lines)), MOST_LINES))]


def _sentences(lines: Iterable[str]) -> Iterator[str]:
    """`lines` in pieces that SentencePiece can read, none of them empty."""
    for line in lines:
        for part in _UNFIT.split(line):
            for start in range(0, len(part), LONGEST_LINE):
                yield part[start : start + LONGEST_LINE]
