"""The data section of a recipe: which corpora, what is left out of them, how large a batch is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from regard.section import Section

Positive = Annotated[int, Field(gt=0)]
BadLines = Literal["refuse", "drop"]  # a line that is badly encoded or endless: stop there, or leave its pair out


class LabelledOptions(Section):
    """Texts, or pairs of texts, with a label each: one file of records, or one file of plain lines for each label."""

    file: Path | None = None
    valid: Path | None = None  # of the same form; none: held out of the file
    form: Literal["tsv", "csv", "jsonl", "trec"] = "tsv"  # of file and valid; trec: "LABEL:fine text" on each line
    columns: tuple[str, ...] = ()  # of a tsv or csv file without a header
    text: str = "text"  # the columns (tsv, csv, trec) or keys (jsonl) that are read
    second: str | None = None  # of the second text of a pair
    label: str = "label"  # trec has "label" and "fine"
    files: dict[str, Path] = Field(default_factory=dict)  # label: file
    valid_files: dict[str, Path] = Field(default_factory=dict)
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0  # times per epoch

    @model_validator(mode="after")
    def one_form(self) -> "LabelledOptions":
        if (self.file is None) == (not self.files):
            found = "neither" if self.file is None else "both"
            raise ValueError(f"found {found}; give either file (records with a label each) or files (label: file)")
        if (self.valid is not None and self.file is None) or (self.valid_files and not self.files):
            raise ValueError("valid goes with file, valid_files with files")
        if self.files and self.second is not None:
            raise ValueError("files hold one text on each line; a second text needs file, with a column or key for it")
        if self.columns and self.form not in ("tsv", "csv"):
            raise ValueError(f"columns name what a tsv or csv file has, but form is {self.form}")
        wanted = [name for name in (self.text, self.second, self.label) if name is not None]
        if len(set(wanted)) < len(wanted):
            raise ValueError(f"text, second and label are read from {', '.join(wanted)}; name a different one for each")
        missing = [name for name in wanted if self.columns and name not in self.columns]
        if missing:
            raise ValueError(f"columns: no {missing[0]!r} in {', '.join(self.columns)}; set text, second and label")
        return self

    @property
    def every(self) -> tuple[Path, ...]:
        """Every file that is read."""
        records = tuple(path for path in (self.file, self.valid) if path is not None)
        return (*records, *self.files.values(), *self.valid_files.values())


class CorpusOptions(Section):
    """Two parallel files, or one file of two tab-separated columns, or one of JSON objects, or texts with labels."""

    source: Path | None = None
    target: Path | None = None
    tsv: Path | None = None
    jsonl: Path | None = None
    labelled: LabelledOptions | None = None  # the label, as a text, is what is to be written
    source_key: str = "source"  # the keys of a JSON object
    target_key: str = "target"
    prefix: str = ""  # stands before every source: it says which of several tasks a model is to do
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0  # times per epoch
    alignment: Path | None = None  # "0-0 1-2" on each line: words of the pair that are links, for loss.guided

    @model_validator(mode="after")
    def one_form(self) -> "CorpusOptions":
        if (self.source is None) != (self.target is None):
            given, missing = ("source", "target") if self.target is None else ("target", "source")
            raise ValueError(f"{given} is given without {missing}; a parallel corpus needs both")
        forms = [name for name in ("source", "tsv", "jsonl", "labelled") if getattr(self, name) is not None]
        if len(forms) != 1:
            found = " and ".join(forms) if forms else "nothing"
            raise ValueError(f"found {found}; give exactly one of source + target, tsv, jsonl, labelled")
        if self.labelled and (self.labelled.valid is not None or self.labelled.valid_files):
            raise ValueError("labelled.valid: validation pairs of all tasks are listed under data.valid; put it there")
        if self.alignment and (self.prefix or self.labelled):
            raise ValueError("alignment: links are between the words of parallel texts; leave out prefix and labelled")
        if self.labelled and self.labelled.weight != 1:
            raise ValueError("labelled.weight: the corpus has a weight of its own; put it there")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        every = (self.source, self.target, self.tsv, self.jsonl, self.alignment)
        labelled = self.labelled.every if self.labelled else ()
        return (*(path for path in every if path is not None), *labelled)

    @property
    def name(self) -> str:
        """What people call it: by its task, or by its files."""
        return self.prefix.strip().rstrip(":") or " + ".join(map(str, self.files))


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


class TextCorpusOptions(Section):
    """Plain text to learn a language from; a document is what the model learns to begin and to end."""

    files: Annotated[tuple[Path, ...], Field(min_length=1)]
    valid: tuple[Path, ...] = ()  # none: held out of the files
    documents: Literal["file", "line", "paragraph"] = "file"  # what one is; paragraphs have blank lines between them
    # Without valid: the end of the text; null: whole documents by their hash, data.valid_size of them.
    valid_share: Annotated[float, Field(gt=0, lt=1)] | None = 0.1


class ImageOptions(Section):
    """Images with a label each: a folder of folders named by label, an .npz file, or an idx file and its labels."""

    train: Path
    train_labels: Path | None = None  # of an idx file
    valid: Path | None = None  # none: held out of train
    valid_labels: Path | None = None
    size: tuple[Positive, Positive] | None = None  # rows and columns, to which images are resized; none: as they are
    channels: Literal[1, 3] | None = None  # grey or colour; none: as they are
    shift: Annotated[int, Field(ge=0)] = 0  # pixels that an image may move in training, each way
    flip: bool = False  # mirror half of the images in training

    @model_validator(mode="after")
    def labels_of_something(self) -> "ImageOptions":
        if self.valid is None and self.valid_labels is not None:
            raise ValueError("valid_labels is given without valid")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        every = (self.train, self.train_labels, self.valid, self.valid_labels)
        return tuple(path for path in every if path is not None)


class TreebankOptions(Section):
    """Files of trees in the brackets of the Penn Treebank."""

    files: Annotated[tuple[Path, ...], Field(min_length=1)]
    valid: tuple[Path, ...] = ()  # none: held out of the files


class DataOptions(Section):
    """A task reads its own kind of data: pairs of texts, plain texts, texts with labels, images, or trees."""

    corpora: tuple[CorpusOptions, ...] = ()
    texts: tuple[TextCorpusOptions, ...] = ()
    labelled: tuple[LabelledOptions, ...] = ()
    images: ImageOptions | None = None
    trees: TreebankOptions | None = None
    valid: tuple[CorpusOptions, ...] = ()  # one, or one for each task; none: carved out of the corpora
    valid_size: Positive | None = None  # pairs to carve out; none: 5 %, at most 1000
    filters: FilterRules = FilterRules()
    bad_lines: BadLines = "refuse"
    batch_tokens: Positive = 4096  # rows × longest side of a batch; an image counts its patches and one
    max_tokens: Annotated[int, Field(gt=1)] = 256  # per side with its end token; longer pairs are left out

    @field_validator("valid", mode="before")
    @classmethod
    def listed(cls, value: object) -> object:
        """A single corpus may stand for a list of one."""
        if value is None:
            return ()
        return (value,) if isinstance(value, Mapping | CorpusOptions) else value

    @model_validator(mode="after")
    def one_validation(self) -> "DataOptions":
        if self.valid and self.valid_size is not None:
            raise ValueError(
                "valid and valid_size are both given; valid_size only sets how much is carved out without valid"
            )
        return self

    @model_validator(mode="after")
    def lines_stay(self) -> "DataOptions":
        if self.bad_lines == "drop" and any(corpus.alignment for corpus in self.corpora):
            raise ValueError("bad_lines: drop would part pairs from the lines of their alignment; repair them instead")
        if any(corpus.alignment for corpus in self.valid):
            raise ValueError("valid.alignment: nothing is learned from it; leave it out")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that training reads."""
        pairs = [path for corpus in self.corpora for path in corpus.files]
        valid = [path for corpus in self.valid for path in corpus.files]
        texts = [path for text in self.texts for path in (*text.files, *text.valid)]
        labelled = [path for corpus in self.labelled for path in corpus.every]
        images = self.images.files if self.images else ()
        trees = (*self.trees.files, *self.trees.valid) if self.trees else ()
        return (*pairs, *valid, *texts, *labelled, *images, *trees)
