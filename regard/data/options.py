"""The data section of a recipe: which corpora, what is left out of them, how large a batch is."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.section import Section

Positive = Annotated[int, Field(gt=0)]
BadLines = Literal["refuse", "drop"]  # a line that is badly encoded or endless: stop there, or leave its pair out


class CorpusOptions(Section):
    """Two parallel files, or one file of two tab-separated columns, or one of JSON objects: one of the three."""

    source: Path | None = None
    target: Path | None = None
    tsv: Path | None = None
    jsonl: Path | None = None
    source_key: str = "source"  # the keys of a JSON object
    target_key: str = "target"
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0  # times per epoch

    @model_validator(mode="after")
    def one_form(self) -> "CorpusOptions":
        if (self.source is None) != (self.target is None):
            given, missing = ("source", "target") if self.target is None else ("target", "source")
            raise ValueError(f"{given} is given without {missing}; a parallel corpus needs both")
        forms = [name for name in ("source", "tsv", "jsonl") if getattr(self, name) is not None]
        if len(forms) != 1:
            found = " and ".join(forms) if forms else "nothing"
            raise ValueError(f"found {found}; give exactly one of source + target, tsv, jsonl")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.source, self.target, self.tsv, self.jsonl) if path is not None)


class FilterRules(Section):
    """What a training pair must be. Lengths are in characters, so the rules need neither words nor a tokeniser."""

    min_characters: Positive = 1
    max_characters: Positive = 2000
    # Chinese and Japanese say in one character what takes English three to four; a pair that differs more than sixfold
    # is misaligned in every language we know. Short pairs ("OK" / "Einverstanden") are not judged.
    max_ratio: Annotated[float, Field(ge=1)] | None = 6.0
    ratio_from: Positive = 20  # characters of the longer side
    drop_duplicates: bool = True  # the same source with the same target, within one corpus
    # A copy is noise in translation, but the right answer when dates, spellings or names are normalised.
    drop_identical: bool = False

    @model_validator(mode="after")
    def possible(self) -> "FilterRules":
        if self.min_characters > self.max_characters:
            raise ValueError(f"min_characters {self.min_characters} exceeds max_characters {self.max_characters}")
        return self


class DataOptions(Section):
    corpora: tuple[CorpusOptions, ...] = ()
    valid: CorpusOptions | None = None  # none: carved out of the corpora
    valid_size: Positive | None = None  # pairs to carve out; none: 5 %, at most 1000
    filters: FilterRules = FilterRules()
    bad_lines: BadLines = "refuse"
    batch_tokens: Positive = 4096  # rows × longest side of a batch
    max_tokens: Annotated[int, Field(gt=1)] = 256  # per side with its end token; longer pairs are left out

    @model_validator(mode="after")
    def one_validation(self) -> "DataOptions":
        if self.valid is not None and self.valid_size is not None:
            raise ValueError(
                "valid and valid_size are both given; valid_size only sets how much is carved out without valid"
            )
        return self
