"""The tokeniser in a published checkpoint's folder, as one of ours; nothing in the folder is run.

Our special ids stand for theirs as each family uses them: the id that starts a text is BOS, the one that ends it EOS.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import ModelFormatError
from regard.text.byte_level import ByteLevel
from regard.text.cleaning import Cleaning
from regard.text.pieces import SentencePieces, open_model, piece_names
from regard.text.reading import read_bytes, read_json, read_lines
from regard.text.special import sentinel
from regard.text.spiece import CONTROL, NORMAL, UNKNOWN, write_unigram
from regard.text.vocabulary import Vocabulary, by_id, integers
from regard.text.wordpiece import CONTINUED, LONGEST_WORD, WordPiece

VOCAB_JSON, VOCAB_TXT, MERGES, FAST = "vocab.json", "vocab.txt", "merges.txt", "tokenizer.json"
SPIECE, SETTINGS, ADDED = "spiece.model", "tokenizer_config.json", "added_tokens.json"
SENTINELS = 100  # of T5, where the settings do not say

_SENTINEL = re.compile(r"<extra_id_(\d{1,6})>")
_LANGUAGE = re.compile(r">>.+<<")


def read_byte_level(folder: Path) -> ByteLevel:
    """GPT-2's: vocab.json with merges.txt, or tokenizer.json. EOS = <|endoftext|>; PAD, UNK and BOS they have not."""
    settings = _settings(folder)
    _expect(folder / SETTINGS, "add_prefix_space", settings.get("add_prefix_space", False), (False,))
    if (folder / VOCAB_JSON).is_file() and (folder / MERGES).is_file():
        where = folder / VOCAB_JSON
        ids, merges = read_json(where), _read_merges(folder / MERGES)
    else:
        where = _present(folder / FAST, f"{VOCAB_JSON} with {MERGES}")
        ids, merges = _fast_byte_level(where)
    end, more = _token(folder, settings, "eos_token", "<|endoftext|>"), _added(folder)
    with _placed(where):
        names, added = _extended(by_id(ids), more)
        special = (-1, -1, -1, _id(names, end))
        return ByteLevel(Vocabulary(names, special, tuple(id for id in added if names[id] != end)), merges)


def read_wordpiece(folder: Path) -> WordPiece:
    """BERT's: vocab.txt, or tokenizer.json. PAD = [PAD], UNK = [UNK], BOS = [CLS], EOS = [SEP]; [MASK] is last."""
    settings, classic = _settings(folder), (folder / VOCAB_TXT).is_file()
    if classic and ("do_lower_case" in settings or not (folder / FAST).is_file()):
        where = folder / VOCAB_TXT
        names = tuple(read_lines(where))
        keys = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
        cleaning = _cleaning(folder / SETTINGS, settings, keys)
    else:
        where = _present(folder / FAST, VOCAB_TXT)
        names, cleaning = _fast_wordpiece(where)
    tokens = [("pad_token", "[PAD]"), ("unk_token", "[UNK]"), ("cls_token", "[CLS]"), ("sep_token", "[SEP]")]
    chosen = [_token(folder, settings, key, name) for key, name in [*tokens, ("mask_token", "[MASK]")]]
    more = _added(folder)
    with _placed(where):
        names, added = _extended(names, more)
        *special, mask = [_id(names, name) for name in chosen]
        others = tuple(id for id in added if names[id] not in chosen)
        return WordPiece(Vocabulary(names, tuple(special), others, (mask,)), cleaning)


def read_t5(folder: Path) -> SentencePieces:
    """T5's: spiece.model, or tokenizer.json. BOS = <pad>, with which its decoder starts; EOS = </s>, UNK = <unk>.

    PAD they have not. The sentinels follow on the pieces in falling order; ours are rising, and last.
    """
    settings, path, more = _settings(folder), folder / SPIECE, _added(folder)
    if path.is_file():
        model, listed = read_bytes(path), None
    else:
        path = _present(folder / FAST, SPIECE)
        model, listed = _fast_unigram(path)
    count = settings.get("extra_ids", SENTINELS)
    if not integers([count]) or not 0 <= count <= 10_000:
        raise ModelFormatError(f"{folder / SETTINGS}: extra_ids is {count!r}, expected a number such as {SENTINELS}")
    with _placed(path):
        processor = open_model(model)
        sentinels = [sentinel(number) for number in reversed(range(count))]
        names, added = _extended(list(dict.fromkeys([*(listed or piece_names(processor)), *sentinels])), more)
        numbers = {int(match[1]): id for id, name in enumerate(names) if (match := _SENTINEL.fullmatch(name))}
        last = tuple(id for _, id in sorted(numbers.items()))
        special = (_id(names, "<unk>"), _id(names, "<pad>"), _id(names, "</s>"))
        others = tuple(id for id in added if id not in (*last, *special))
        return SentencePieces(Vocabulary(names, (-1, *special), others, last), model)


def read_marian(folder: Path) -> tuple[SentencePieces, SentencePieces]:
    """Marian's (OPUS-MT's) source and target side over one id space: source.spm, target.spm and vocab.json.

    BOS = <pad>, with which its decoder starts; UNK and EOS are theirs; PAD they have not. A language code such as
    >>fra<< is one id in a source text.
    """
    settings, path = _settings(folder), _present(folder / VOCAB_JSON, "")
    _expect(folder / SETTINGS, "separate_vocabs", settings.get("separate_vocabs", False), (False,))
    tokens = [("unk_token", "<unk>"), ("pad_token", "<pad>"), ("eos_token", "</s>")]
    chosen = [_token(folder, settings, key, name) for key, name in tokens]
    ids = read_json(path)
    with _placed(path):
        names = by_id(ids)
        special = (-1, *(_id(names, name) for name in chosen))
        codes = tuple(id for id, name in enumerate(names) if _LANGUAGE.fullmatch(name))
        source, target = Vocabulary(names, special, codes), Vocabulary(names, special)
    return _side(folder / "source.spm", source), _side(folder / "target.spm", target)


def _side(path: Path, vocabulary: Vocabulary) -> SentencePieces:
    model = read_bytes(_present(path, ""))
    with _placed(path):
        return SentencePieces(vocabulary, model)


def _read_merges(path: Path) -> list[tuple[str, str]]:
    lines = read_lines(path)
    first = 1 if lines[0].startswith("#version") else 0
    return [_pair(path, line.split(" "), place) for place, line in enumerate(lines[first:], first + 1) if line]


def _pair(path: Path, parts: Any, place: int) -> tuple[str, str]:
    match parts:
        case [str(left), str(right)] if left and right:
            return left, right
    raise ModelFormatError(f"{path}: merge {place} is {str(parts)[:60]!r}, expected two pieces; copy the file again")


def _fast_byte_level(path: Path) -> tuple[Any, list[tuple[str, str]]]:
    content, model = _fast(path, "BPE")
    _expect(path, "normalizer", content.get("normalizer"), (None,))
    cutter = content.get("pre_tokenizer") or {}
    _expect(path, "pre_tokenizer.type", cutter.get("type"), ("ByteLevel",))
    _expect(path, "pre_tokenizer.add_prefix_space", cutter.get("add_prefix_space", False), (False,))
    _expect(path, "pre_tokenizer.use_regex", cutter.get("use_regex", True), (True,))
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        _expect(path, f"model.{key}", model.get(key), (None, ""))
    for key in ("byte_fallback", "ignore_merges"):
        _expect(path, f"model.{key}", model.get(key), (None, False))
    merges = model.get("merges")
    if not isinstance(merges, list):
        raise ModelFormatError(f"{path}: no model.merges, expected a list of pairs; copy the file again")
    pairs = (each.split(" ") if isinstance(each, str) else each for each in merges)
    return model.get("vocab"), [_pair(path, parts, place) for place, parts in enumerate(pairs, 1)]


def _fast_wordpiece(path: Path) -> tuple[tuple[str, ...], Cleaning]:
    content, model = _fast(path, "WordPiece")
    normaliser, cutter = content.get("normalizer") or {}, content.get("pre_tokenizer") or {}
    _expect(path, "normalizer.type", normaliser.get("type"), ("BertNormalizer",))
    _expect(path, "normalizer.clean_text", normaliser.get("clean_text", True), (True,))
    _expect(path, "pre_tokenizer.type", cutter.get("type"), ("BertPreTokenizer",))
    _expect(path, "model.continuing_subword_prefix", model.get("continuing_subword_prefix"), (CONTINUED,))
    _expect(path, "model.max_input_chars_per_word", model.get("max_input_chars_per_word"), (LONGEST_WORD,))
    with _placed(path):
        names = by_id(model.get("vocab"))
    return names, _cleaning(path, normaliser, ("lowercase", "strip_accents", "handle_chinese_chars"))


def _fast_unigram(path: Path) -> tuple[bytes, list[str]]:
    """The model as SentencePiece reads it, and all names; sentinels are not among the model's pieces."""
    content, model = _fast(path, "Unigram")
    _expect(path, "model.byte_fallback", model.get("byte_fallback"), (None, False))
    normaliser, vocabulary = content.get("normalizer") or {}, model.get("vocab", ())
    _expect(path, "normalizer.type", normaliser.get("type"), (None, "Precompiled"))
    try:
        charsmap = b64decode(normaliser.get("precompiled_charsmap") or "", validate=True)
        pieces = [(str(name), float(score)) for name, score in vocabulary]
        kinds = {"<unk>": UNKNOWN, "<pad>": CONTROL, "</s>": CONTROL}
        spoken = [(name, score, kinds.get(name, NORMAL)) for name, score in pieces if not _SENTINEL.fullmatch(name)]
        return write_unigram(spoken, charsmap), [name for name, _ in pieces]
    except (TypeError, ValueError, OverflowError) as error:  # no list, no pairs, no numbers, no base64, no UTF-8
        raise ModelFormatError(f"{path}: no pieces with their scores in it; copy the file again") from error


def _cleaning(path: Path, found: Mapping[str, Any], keys: tuple[str, str, str]) -> Cleaning:
    """The three settings under the names that the file gives them; accents go with capitals unless it says."""
    lower, ideographs = (found.get(key, True) for key in (keys[0], keys[2]))
    _expect(path, keys[0], lower, (True, False))
    _expect(path, keys[2], ideographs, (True, False))
    strip = found.get(keys[1])
    _expect(path, keys[1], strip, (None, True, False))
    return Cleaning(lower, lower if strip is None else strip, ideographs)


def _fast(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of a tokenizer.json and its model, which is of that kind."""
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise ModelFormatError(f"{path}: no model in it, expected a published tokeniser; copy the file again")
    for key in ("normalizer", "pre_tokenizer"):
        if not isinstance(content.get(key), dict | None):
            raise ModelFormatError(f"{path}: {key} is {str(content[key])[:60]!r}, expected settings; copy it again")
    _expect(path, "model.type", content["model"].get("type"), (kind,))
    return content, content["model"]


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise ModelFormatError(f"{path}: expected settings by name; copy the file again")
    return content


def _token(folder: Path, settings: Mapping[str, Any], key: str, usual: str) -> str:
    match settings.get(key, usual):
        case str(name) | {"content": str(name)}:
            return name
        case None:
            return usual
        case other:
            raise ModelFormatError(
                f"{folder / SETTINGS}: {key} is {str(other)[:60]!r}, expected a name such as {usual}"
            )


def _added(folder: Path) -> dict[str, int]:
    """Names that were added to the vocabulary, with their ids, from whichever file tells of them."""
    path, found = folder / ADDED, {}
    if path.is_file():
        content = read_json(path)
        if not isinstance(content, dict) or not integers(list(content.values())):
            raise ModelFormatError(f"{path}: expected names with their ids; copy the file again")
        found.update(content)
    told = _settings(folder).get("added_tokens_decoder") or {}
    listed = [(folder / SETTINGS, id, token) for id, token in told.items()] if isinstance(told, dict) else []
    fast = read_json(folder / FAST) if not listed and (folder / FAST).is_file() else {}
    if isinstance(fast, dict) and isinstance(fast.get("added_tokens"), list):
        listed = [(folder / FAST, token.get("id"), token) for token in fast["added_tokens"] if isinstance(token, dict)]
    for place, id, token in listed:
        name, number = _added_token(place, id, token)
        found[name] = number
    return found


def _added_token(path: Path, id: Any, token: Any) -> tuple[str, int]:
    match token:
        case {"content": str(name)} if name and re.fullmatch(r"[0-9]{1,9}", str(id)):
            return name, int(id)
    raise ModelFormatError(f"{path}: added token {str(id)[:20]!r} has no name or no id; copy the file again")


def _extended(names: Sequence[str], added: Mapping[str, int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """All names by id, and the ids of the added ones: each names a row that is there, or follows on the last."""
    found = list(names)
    for name, id in sorted(added.items(), key=lambda item: item[1]):
        if id == len(found):
            found.append(name)
        elif not 0 <= id < len(found) or found[id] != name:
            raise ModelFormatError(
                f"the added {name!r} has id {id}, expected {len(found)} or the id it already has; copy the files again"
            )
    return tuple(found), tuple(sorted(added.values()))


def _id(names: Sequence[str], name: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise ModelFormatError(f"no {name!r} among its {len(names)} names; is this the right family?") from None


def _expect(path: Path, what: str, found: Any, expected: tuple[Any, ...]) -> None:
    if not any(found is each or (isinstance(found, type(each)) and found == each) for each in expected):
        allowed = " or ".join(map(repr, expected))
        raise ModelFormatError(f"{path}: {what} is {str(found)[:60]!r}, Regard reads {allowed}; use another checkpoint")


def _present(path: Path, instead: str) -> Path:
    if not path.is_file():
        other = f" and no {instead} either" if instead else ""
        raise ModelFormatError(f"{path}: no such file{other}; copy the tokeniser's files of the checkpoint too")
    return path


@contextmanager
def _placed(path: Path) -> Iterator[None]:
    """Puts the file before what is wrong with its content."""
    try:
        yield
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from error
