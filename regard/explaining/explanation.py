"""What a model did with one text, in one structure: its tokens, their probabilities, and where each head looked.

docs/explanation-schema.md describes its JSON, explanation.schema.json beside this file is the schema for programs.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from regard.errors import DataError

Kind = Literal["encoder", "decoder", "cross"]
Role = Literal["previous", "next", "diagonal", "separator"]
Method = Literal["attention", "rollout", "gradient", "rise"]
Trouble = Literal["detached", "repetition", "untranslated", "unsure"]
Place = Annotated[int, Field(ge=0)]  # of a character, a word or an id
Number = Annotated[int, Field(ge=1)]  # of a layer or a head: they count from 1, as people do
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Values = tuple[tuple[float, ...], ...]
Errors = tuple[tuple[float | None, ...], ...]


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


# ---------------------------------------------------------------- what the output depends on
class Faithful(Part):
    """The areas under both curves, the mean over the output's tokens: low deletion and high insertion are good."""

    deletion: float
    insertion: float


class Saliency(Part):
    """How much each target token depends on each source token, by one method: `values[target][source]`.

    `previous[target][read]` is the same for what had been read of the target: `start`, then its tokens but the last;
    null where the method does not tell. A language model has no source, so that its rows of `values` are empty. Only
    the order and the proportion within one method mean something, but for RISE, whose values are probabilities: what
    the token loses on average if the other one is left out. `errors` and `previous_errors` are its standard errors
    (null: nothing is known there), after at most so many `masks` for each of the two. `faithful` is how well the output
    follows the order of the values (of `previous`, where there is no source), `chance` how well that of random ones.
    """

    method: Method
    values: Values
    errors: Errors | None = None
    previous: Values | None = None
    previous_errors: Errors | None = None
    masks: Number | None = None
    faithful: Faithful | None = None
    chance: Faithful | None = None

    def fits(self, target: int, source: int, read: int) -> bool:
        """Whether every matrix has a row for each target token, and a column for each token it may depend on."""
        own = [matrix for matrix in (self.values, self.errors) if matrix is not None]
        back = [matrix for matrix in (self.previous, self.previous_errors) if matrix is not None]
        return (
            all([len(row) for row in matrix] == [source] * target for matrix in own)
            and all([len(row) for row in matrix] == [read] * target for matrix in back)
            and bool(target and (source or back))
        )


class Concern(Part):
    """Why a person should look at this output, and at which words of the two texts.

    detached: the output hardly depends on the source. repetition: it says the same again. untranslated: words of the
    source that nothing depends on. unsure: the model found its own words improbable. `value` is what was measured, in
    the unit that `message` names.
    """

    kind: Trouble
    message: str
    value: float
    source_words: tuple[Place, ...] = ()
    target_words: tuple[Place, ...] = ()


class Explanation(Part):
    """Everything that was seen of a model while it read `source`, or wrote `target`, or both.

    A language model has no source, an encoder no target. There is one step for each target token. `score` is the
    sum of log probabilities as the search judges it: divided by length^penalty.

    Of an output that was checked, `dependence` is 1 − log p(output | source) / log p(output | nothing): near 1 the
    source explains it, near 0 or below it does not. `confidence` is the geometric mean probability of its tokens.
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
    saliency: tuple[Saliency, ...] = ()
    concerns: tuple[Concern, ...] = ()
    dependence: float | None = None
    confidence: Share | None = None

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
        target, source = (len(tokens) for tokens in self.axes("cross"))
        for map_ in self.saliency:
            if not map_.fits(target, source, target):
                sizes = f"{target} × {source} values, or {target} × {target} of previous"
                raise ValueError(f"saliency by {map_.method}: expected {sizes}")
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
