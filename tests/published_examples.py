"""Tiny published tokenisers, made by the libraries that publish them, and texts that are awkward for them."""

import io
import json
import random
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LINES = [
    "the cat sat on the mat and the dog's dog sat on the cat, didn't it?",
    "die Katze saß auf der Matte und der Hund saß auf der Katze",
    "naïve café 漢字 かな 한국어 1234 5678 don't we'll I'm they've",
    "The Thing that The Cat thought was there! ... (really) _under_score",
] * 3
END = "<|endoftext|>"
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

AWKWARD = ["▁", " ", "  ", "\t", "\n", "\r", "\x00", "\x1c", "\x85", "\xa0", "\u3000", "'s", "'ll", "''t", "_", "..."]
AWKWARD += ["the", " the", "The", "Katze", "ß", "漢字", "e\u0301", "é", "İ", "Σ", "½", "一", "x1y2", "don't", "한", "ﬁ"]
AWKWARD += [
    "👩‍👩‍👧",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\u0f71\u0f72",
    "o\u0323\u0308",
    "\U000e0041",
    "豈",
    END,
    "[CLS]",
    "</s>",
]
# Scripts whose characters have not changed their class since the references took their tables (Unicode 8).
RANGES = [(0, 0x61C), (0x1100, 0x11FF), (0x2000, 0x2E40), (0x3000, 0x9FA0), (0xAC00, 0xD7A3), (0xF900, 0xFA6D)]
RANGES += [(0xFE30, 0xFE6B), (0x1F300, 0x1F5FF), (0x20000, 0x2A6D0)]
ALPHABET = [chr(code) for start, end in RANGES for code in range(start, end + 1)]
texts = st.lists(st.one_of(st.sampled_from(AWKWARD), st.sampled_from(ALPHABET)), max_size=8).map("".join)
FIXED = ["", " ", "\x00", "a" * 100, "b" * 101, "thecat" * 30, "漢" * 40, "the [cat] sat, didn't it?", *LINES[:4]]


def drawn(count, seed=0):
    """Texts that mix what is awkward with any character; cheaper to draw than hypothesis's, which can shrink."""
    rng = random.Random(seed)
    return [
        "".join(rng.choice(rng.choice([AWKWARD, ALPHABET])) for _ in range(rng.randint(1, 9))) for _ in range(count)
    ]


def everywhere(law):
    """Holds the law against the fixed texts and many drawn ones."""
    for text in [*FIXED, *drawn(300)]:
        law(text)
    settings(max_examples=25, derandomize=True, deadline=None, database=None)(given(texts)(law))()


@cache
def byte_level():
    """GPT-2's as `tokenizers` has it. A name of END in a text is only text."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, special_tokens=[END], show_progress=False)
    found.train_from_iterator(LINES, trainer)
    found.encode_special_tokens = True
    return found


@cache
def wordpiece(lower=True, strip=None, ideographs=True):
    """BERT's as `tokenizers` has it. Names of special ids in a text are only text."""
    found = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    found.normalizer = normalizers.BertNormalizer(True, ideographs, strip, lower)
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.decoder = decoders.WordPiece()
    special = [*BERT_SPECIAL[:1], *BERT_SPECIAL[:0:-1]]  # not in our order
    found.train_from_iterator(
        LINES, trainers.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False)
    )
    found.encode_special_tokens = True
    return found


@cache
def sentencepiece(
    lines=tuple(LINES), size=110, special=(("pad_id", 0), ("eos_id", 1), ("unk_id", 2), ("bos_id", -1)), **more
):
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=9,
        num_threads=1,
        **dict(special),
        **more,
    )
    return model.getvalue()


def processor(model):
    found = SentencePieceProcessor()
    found.load_from_serialized_proto(model)
    return found


def names(model):
    opened = processor(model)
    return [opened.id_to_piece(id) for id in range(opened.get_piece_size())]


def write_byte_level(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    byte_level().model.save(str(folder))
    return folder


def write_wordpiece(folder: Path, lower=True, strip=None, ideographs=True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    wordpiece(lower, strip, ideographs).model.save(str(folder))
    content = {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": ideographs}
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    return folder


def write_t5(folder: Path, **more) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spiece.model").write_bytes(sentencepiece(**more))
    return folder


def write_marian(folder: Path) -> Path:
    """Two models; one vocabulary in an order of its own that lacks five pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    source, target = (sentencepiece(tuple(lines), 90, ()) for lines in (LINES[:2], LINES[1:]))
    pieces = [name for name in dict.fromkeys(names(source) + names(target)) if name not in ("<s>", "</s>", "<unk>")]
    vocabulary = ["</s>", "<unk>", *pieces[5:], ">>fra<<", "<pad>"]
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    (folder / "vocab.json").write_text(json.dumps({name: id for id, name in enumerate(vocabulary)}))
    return folder


def theirs(tokeniser, ids):
    """Our ids as their ids."""
    return [tokeniser.order[id] for id in ids]
