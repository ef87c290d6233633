"""A published tokeniser back in the files that others read; `regard/text/published.py` is the way in."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.errors import ModelFormatError
from regard.files import write_atomically
from regard.text.byte_level import ByteLevel
from regard.text.pieces import SentencePieces
from regard.text.published import MERGES, SETTINGS, SPIECE, VOCAB_JSON, VOCAB_TXT
from regard.text.special import BOS, EOS, PAD, UNK
from regard.text.vocabulary import Vocabulary
from regard.text.wordpiece import WordPiece


def write_byte_level(tokeniser: ByteLevel, folder: Path) -> None:
    """GPT-2's: vocab.json and merges.txt."""
    vocabulary = tokeniser.vocabulary
    end = special_name(vocabulary, EOS)
    write_ids(vocabulary, folder)
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in tokeniser.merges)]
    write_atomically(folder / MERGES, "".join(f"{line}\n" for line in lines))
    names = {"bos_token": end, "eos_token": end, "unk_token": end}
    write_settings(folder, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, **names}, vocabulary)


def write_wordpiece(tokeniser: WordPiece, folder: Path) -> None:
    """BERT's: vocab.txt, and how a text is cleaned before it is cut."""
    vocabulary, cleaning = tokeniser.vocabulary, tokeniser.cleaning
    broken = next((name for name in vocabulary.names if "\n" in name or "\r" in name), None)
    if broken is not None:  # which a tokenizer.json may hold
        raise ModelFormatError(f"{VOCAB_TXT}: has a name on each line, but {broken!r} has a line end in it; rename it")
    write_atomically(folder / VOCAB_TXT, "".join(f"{name}\n" for name in vocabulary.names))
    places = {"pad_token": PAD, "unk_token": UNK, "cls_token": BOS, "sep_token": EOS}
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": cleaning.lower,
        "strip_accents": cleaning.strip,
        "tokenize_chinese_chars": cleaning.ideographs,
        **{key: special_name(vocabulary, place) for key, place in places.items()},
        "mask_token": vocabulary.names[vocabulary.last[0]],
    }
    write_settings(folder, settings, vocabulary)


def write_t5(tokeniser: SentencePieces, folder: Path) -> None:
    """T5's: spiece.model, and how many sentinels follow on it."""
    vocabulary = tokeniser.vocabulary
    write_atomically(folder / SPIECE, tokeniser.model)
    settings = {"tokenizer_class": "T5Tokenizer", "extra_ids": len(vocabulary.last), **translator_names(vocabulary)}
    write_settings(folder, settings, vocabulary)


def write_marian(source: SentencePieces, target: SentencePieces, folder: Path) -> None:
    """Marian's: source.spm, target.spm, and the vocabulary of both."""
    for side, tokeniser in (("source", source), ("target", target)):
        write_atomically(folder / f"{side}.spm", tokeniser.model)
    write_ids(source.vocabulary, folder)
    names = translator_names(source.vocabulary)
    # Language codes are cut out of a text by the tokeniser itself: they need not be said to be added.
    content = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": False, **names}
    write_json(folder / SETTINGS, content)


def translator_names(vocabulary: Vocabulary) -> dict[str, str]:
    """What starts a text of theirs is what they pad with."""
    places = {"unk_token": UNK, "pad_token": BOS, "eos_token": EOS}
    return {key: special_name(vocabulary, place) for key, place in places.items()}


def special_name(vocabulary: Vocabulary, place: int) -> str:
    return vocabulary.names[vocabulary.special[place]]


def write_ids(vocabulary: Vocabulary, folder: Path) -> None:
    write_json(folder / VOCAB_JSON, {name: id for id, name in enumerate(vocabulary.names)})


def write_settings(folder: Path, settings: Mapping[str, Any], vocabulary: Vocabulary) -> None:
    """The settings, and the names that were added to the vocabulary with their ids."""
    plain = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": False}
    added = {str(id): {"content": vocabulary.names[id], **plain} for id in vocabulary.added}
    write_json(folder / SETTINGS, {**settings, "added_tokens_decoder": added} if added else settings)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
