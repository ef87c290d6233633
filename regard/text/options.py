"""How text becomes ids."""

from typing import Annotated, Literal

from pydantic import Field

from regard.section import Section

LETTERS = ("characters", "bytes")  # kinds without subwords


class TextOptions(Section):
    kind: Literal["bpe", "unigram", "characters", "bytes", "published"] = "bpe"  # published: came with its weights
    size: Annotated[int, Field(gt=4)] | None = None  # ids with the four special ones; none: chosen from the corpus
    shared: bool = True  # one vocabulary for source and target
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0  # of merges, at training only; Provilkov et al. 2020 use 0.1
    sentinels: Annotated[int, Field(ge=0, le=1000)] = 0  # subwords <extra_id_0> …: each can stand for words left out
    byte_fallback: bool = True  # a character outside a subword vocabulary becomes its UTF-8 bytes, else <unk>
