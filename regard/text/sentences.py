"""A text as its sentences and the white space between them: joined, the pieces are the text.

A line break always ends a piece. Within a line a sentence ends after . ! ? … and the quotes that close there, where
white space follows and then no small letter; after 。 and its kin it ends at once. When in doubt, two sentences stay
one: a model copes with two sentences better than with half of one.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

LONGEST = 500  # characters of a sentence, beyond which it is cut where it hurts least

_OPENING = "\"'“‘„‚«‹»›([{¿¡「『（【—–-"
_CLOSING = "\"'”’“‘»›«‹)]}」』）】"
_WIDE = "。！？｡．।॥؟۔።။"  # these end a sentence without white space after them
_END = re.compile(
    rf"(?P<wide>[{_WIDE}]+)(?P<closed>[」』）】”’»)]*)"
    rf"|[.!?…]+[{re.escape(_CLOSING)}]*(?:[ \u00a0\u202f]»)?(?=\s|$)"
)
_WORD_BEFORE = re.compile(r"[^\s(\[{\"'“„«]*$")
_NEAR = 24  # characters before and after a full stop that are looked at
_SPACE = re.compile(r"\s+")
_LINE = re.compile(r"[^\r\n\u2028\u2029]+|[\r\n\u2028\u2029]+")
_COMMA = re.compile(r"[,;:](?=\s)|[，、；：]")

# Never the last word of a sentence: what follows belongs to it. Without the full stop, in small letters.
ABBREVIATIONS = {
    "en": "mr mrs ms dr prof st jr sr gen col capt lt sgt rep sen gov rev hon messrs vs cf approx ca al est dept "
    "jan feb mar apr jun jul aug sept oct nov dec",
    "de": "dr prof hr fr hrn frl st bzw ggf evtl ca vgl inkl exkl zzgl abzgl sog geb gest str tel mio mrd "
    "jan feb apr aug sept okt nov dez",
    "fr": "mm mme mlle dr pr me st ste p.ex c.-à-d av apr env tél janv févr avr juil sept oct nov déc",
    "es": "sr sra srta dr dra dña ud uds p.ej pág av avda ee.uu aprox tel ene feb abr ago sept oct nov dic",
    "it": "sig sig.ra dott prof ing avv p.es ecc.mo",
    "nl": "dhr mevr dr prof bijv ca",
    "pt": "sr sra dr dra prof p.ex av aprox",
}
# Before a figure these are abbreviations, else words or the end of a sentence.
NUMBERED = "no nr nos núm num n° nº pp art abs abb fig bd vol ch chap cap kap ziff sec tab eq §"
ORDINAL = "de cs da et fi hu is nb nn no pl sk sl hr sr tr lv"  # languages with "3." for "third"


def split_sentences(text: str, language: str | None = None, longest: int = LONGEST) -> list[str]:
    """The pieces of a text; each is white space alone, or a sentence without white space at its ends.

    "".join(pieces) == text, for every text. `language` (en, de, …) says which abbreviations to expect; without it, all
    known ones. A sentence longer than `longest` characters is cut at a comma, else at white space, else anywhere.
    """
    short = _short(language)
    known = _abbreviations(short)
    pieces: list[str] = []
    for line in _LINE.findall(text):
        start = 0
        for end in [*_ends(line, known, not short or short in ORDINAL.split()), len(line)]:
            pieces += _trimmed(line[start:end], longest)
            start = end
    return _merge_spaces(pieces)


def put_back(pieces: Sequence[str], sentences: Sequence[str]) -> str:
    """The pieces with the i-th sentence among them replaced by sentences[i].

    Where 。 joined two sentences without a space and the new ones end in another way, a space comes between them.
    """
    found, fresh = [""], iter(sentences)
    for before, piece in pairwise(["", *pieces]):
        said = next(fresh) if is_sentence(piece) else piece
        touching = is_sentence(before) and is_sentence(piece)
        found += [gap(before, found[-1], said) if touching else "", said]
    return "".join(found)


def gap(before: str, said: str, following: str) -> str:
    """A space if one is needed between `said`, which stands for the sentence `before`, and what follows it at once."""
    if not said or not following or not _wide(before[-1]):
        return ""
    return "" if _wide(said[-1]) or _wide(following[0]) else " "


def is_sentence(piece: str) -> bool:
    """Whether a piece is more than white space."""
    return bool(piece) and not piece.isspace()


def _wide(character: str) -> bool:
    return character in _WIDE or character >= "\u2e80"


def _short(language: str | None) -> str:
    """en of en-GB; nothing of nothing."""
    return re.split("[-_]", (language or "").lower())[0]


@cache
def _abbreviations(language: str) -> frozenset[str]:
    lists = [ABBREVIATIONS[language]] if language in ABBREVIATIONS else ABBREVIATIONS.values()
    return frozenset(word for words in lists for word in words.split())


def _ends(line: str, known: frozenset[str], ordinals: bool) -> list[int]:
    """Where sentences end within a line, its own end left out."""
    found, start = [], 0
    for match in _END.finditer(line):
        ends = _ends_wide(line, start, match) if match["wide"] else _ends_here(line, match, known, ordinals)
        if ends and match.end() < len(line):
            found.append(match.end())
            start = match.end()
    return found


def _ends_wide(line: str, start: int, match: re.Match[str]) -> bool:
    """Not within 「…」, and not where a quote that closes goes on with its sentence, as in 「はい。」と言った."""
    following = line[match.end() : match.end() + 1]
    if match["wide"] == "．" and following.isdigit():
        return False
    quoted = line[start : match.end()]
    if sum(map(quoted.count, "「『")) > sum(map(quoted.count, "」』")):
        return False
    return not match["closed"] or not following or following.isspace() or following in _OPENING


def _ends_here(line: str, match: re.Match[str], known: frozenset[str], ordinals: bool) -> bool:
    """Not before a small letter, nor after an abbreviation, initials, or a figure that may be an ordinal number."""
    following = line[match.end() : match.end() + _NEAR].lstrip().lstrip(_OPENING).lstrip()[:1]
    if following.islower():
        return False
    if match[0] != ".":
        return True
    before = _WORD_BEFORE.search(line[max(0, match.start() - _NEAR) : match.start()])
    word = before[0].lower() if before else ""
    if word.isdigit():
        return not (ordinals and len(word) <= 2)
    if word in NUMBERED.split():
        return not following.isdigit()
    initials = all(len(part) == 1 and part.isalpha() for part in word.split("."))
    return not initials and word not in known


def _trimmed(part: str, longest: int) -> list[str]:
    """White space before, the sentence in cuts of at most `longest` characters, white space after; nothing empty."""
    sentence = part.strip()
    if not sentence:
        return [part] if part else []
    start = len(part) - len(part.lstrip())
    pieces = [part[:start], *_cut(sentence, longest), part[start + len(sentence) :]]
    return [piece for piece in pieces if piece]


def _cut(sentence: str, longest: int) -> list[str]:
    found = []
    while len(sentence) > longest:
        end = _cut_at(sentence, longest)
        head, sentence = sentence[:end], sentence[end:]
        rest = sentence.lstrip()
        found += [head, sentence[: len(sentence) - len(rest)]]
        sentence = rest
    return [*found, sentence]


def _cut_at(sentence: str, longest: int) -> int:
    """The end of the first cut: behind the last comma in the second half of what fits, else before the last space."""
    commas = [match.end() for match in _COMMA.finditer(sentence, longest // 2, longest)]
    if commas:
        return commas[-1]
    spaces = [match.start() for match in _SPACE.finditer(sentence, 1, longest)]
    if spaces:
        return spaces[-1]
    end = longest
    while end > 1 and unicodedata.combining(sentence[end]):  # an accent stays on its letter
        end -= 1
    return end


def _merge_spaces(pieces: list[str]) -> list[str]:
    """Neighbours that are white space as one piece."""
    found: list[str] = []
    for piece in pieces:
        if found and piece.isspace() and found[-1].isspace():
            found[-1] += piece
        else:
            found.append(piece)
    return found
