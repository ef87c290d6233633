"""What a model did with one text, in one structure: its tokens, their probabilities, and where each head looked.

docs/explanation-schema.md describes its JSON, explanation.schema.json beside this file is the schema for programs.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from regard.errors import DataError

Kind = Literal["encoder", "decoder", "cross"]
Role = Literal["previous", "next", "diagonal", "separator"]
Place = Annotated[int, Field(ge=0)]  # of a character, a word or an id
Number = Annotated[int, Field(ge=1)]  # of a layer or a head: they count from 1, as people do
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


# ---------------------------------------------------------------- texts
class Word(Part):
    """A stretch of the text between white space: its characters [start, end)."""

    text: str
    start: Place
    end: Place


class Token(Part):
    """One entry of the model's vocabulary, and the characters [start, end) of the text that it stands for.

    `words` are the places, in the list of words, of those that it is a part of; white space belongs to the word after
    it. The start and the end token stand for no characters and are part of no word.
    """

    id: Place
    text: str
    start: Place
    end: Place
    words: tuple[Place, ...]


class Side(Part):
    """A text as the user sees it, and as the model does."""

    text: str
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]

    @model_validator(mode="after")
    def _stays_inside_its_text(self) -> "Side":
        for token in self.tokens:
            if not token.start <= token.end <= len(self.text) or any(word >= len(self.words) for word in token.words):
                raise ValueError(f"token {token.text!r} is not inside its text of {len(self.text)} characters")
        return self


# ---------------------------------------------------------------- probabilities
class Alternative(Part):
    """A token that could have stood there, and how probable the model found it."""

    id: Place
    text: str
    probability: Share


class Step(Part):
    """How the model saw one token of its output before it was written.

    `rank` is 1 for the likeliest token. `alternatives` are the likeliest tokens that can be written (no padding, no
    start), the one that was written among them if it is one of these.
    """

    probability: Share
    rank: Number
    alternatives: tuple[Alternative, ...]


# ---------------------------------------------------------------- attention
class Block(Part):
    """Where one head looked: `weights[query][key]`, rounded to six decimals; a row sums to 1, or to 0: it saw nothing.

    encoder: source tokens look at source tokens. cross: the step that wrote each target token looks at source tokens.
    decoder: the same step looks at what was read so far: the start token, then the target tokens but the last.
    `entropy` is the mean over queries, in nats; `roles` are those that `regard.explaining.roles` finds.
    """

    kind: Kind
    layer: Number
    head: Number
    entropy: float
    roles: tuple[Role, ...]
    weights: tuple[tuple[Share, ...], ...]


class Explanation(Part):
    """Everything that was seen of a model while it read `source`, or wrote `target`, or both.

    A language model has no source, an encoder no target. There is one step for each target token. `score` is the
    sum of log probabilities as the search judges it: divided by length^penalty.
    """

    format: Literal[1] = 1
    model: str
    source: Side | None
    start: Token | None  # what the decoder reads first
    target: Side | None
    steps: tuple[Step, ...]
    log_probability: float | None
    score: float | None
    attention: tuple[Block, ...]
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> "Explanation":
        if (self.start is None) != (self.target is None):
            raise ValueError("start and target: one is null, the other is not")
        if len(self.steps) != (len(self.target.tokens) if self.target else 0):
            raise ValueError(f"steps: found {len(self.steps)}, expected one for each target token")
        for block in self.attention:
            rows, columns = (len(tokens) for tokens in self.axes(block.kind))
            if [len(row) for row in block.weights] != [columns] * rows or not rows:
                where = f"{block.kind} attention, layer {block.layer}, head {block.head}"
                raise ValueError(f"{where}: expected {rows} × {columns} weights")
        return self

    def axes(self, kind: Kind) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """The tokens that the rows and the columns of such a map stand for."""
        source = self.source.tokens if self.source else ()
        target = self.target.tokens if self.target else ()
        read = (*((self.start,) if self.start else ()), *target[:-1])
        return {"encoder": (source, source), "cross": (target, source), "decoder": (target, read)}[kind]

    def to_json(self) -> str:
        """One line."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> "Explanation":
        """What `to_json` wrote; DataError says where anything else is none."""
        try:
            return cls.model_validate_json(text, strict=True)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "the whole"
            raise DataError(
                f"explanation, {where}: {problem['msg'].removeprefix('Value error, ')}; "
                "expected what regard explain --json writes"
            ) from None
