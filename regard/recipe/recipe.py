"""A recipe: everything that decides a training run, in one typed tree. YAML in, YAML out, nothing hidden."""

import difflib
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import ErrorDetails

from regard.data.options import DataOptions
from regard.decoding.options import SearchOptions
from regard.errors import RecipeError
from regard.recipe.models import BertOptions, ConvS2SOptions, GptOptions, ModelOptions, TransformerOptions
from regard.section import Section
from regard.tasks.options import (
    ClassifyOptions,
    DenoiseOptions,
    LanguageModelOptions,
    LossOptions,
    MaskedOptions,
    TaskOptions,
    TranslateOptions,
)
from regard.text.options import TextOptions
from regard.training.options import TrainingOptions

Tree = dict[str, Any]
SHOWN = 3  # problems of one recipe that a line names
RETIRED = {"loss": ("rdrop_from",), "training": ("dropout_epochs",)}  # keys that recipes had once, section by section
MODELS = {  # which kinds of model can learn a task; the first if a recipe does not say
    "translate": ("transformer", "recurrent", "bytenet", "convs2s"),
    "language-model": ("gpt",),
    "masked": ("bert",),
    "denoise": ("transformer", "recurrent", "bytenet", "convs2s"),
    "classify": ("bert",),
    "classify-images": ("vit",),
    "parse": ("transformer", "recurrent", "bytenet", "convs2s"),
}


class Recipe(Section):
    """Sections in the order of a run: what to learn, what is read, how it is cut, what learns, how, how it speaks."""

    task: TaskOptions = TranslateOptions()
    data: DataOptions
    text: TextOptions = TextOptions()
    model: ModelOptions = TransformerOptions()
    loss: LossOptions = LossOptions()
    training: TrainingOptions = TrainingOptions()
    decoding: SearchOptions = SearchOptions()

    @model_validator(mode="after")
    def model_fits_task(self) -> "Recipe":
        able = MODELS[self.task.kind]
        if self.model.kind not in able:
            raise ValueError(f"model.kind: {self.model.kind} cannot {self.task.kind}; use {' or '.join(able)}")
        return self

    @model_validator(mode="after")
    def guides_exist(self) -> "Recipe":
        guided = self.loss.guided
        given = self.data.trees is not None or any(corpus.alignment for corpus in self.data.corpora)
        if guided and not given:
            raise ValueError(
                f"loss.guided: {guided:g}, but no corpus has an alignment to learn from; give one, or say 0"
            )
        if guided and self.text.dropout:
            raise ValueError(
                f"text.dropout: {self.text.dropout:g}, but loss.guided needs to know which word each token belongs to, "
                "and of sampled subwords that is not known; set one of them to 0"
            )
        return self

    @model_validator(mode="after")
    def positions_reach(self) -> "Recipe":
        """Learned positions end where their table ends: not in the middle of a run."""
        rows = learned_positions(self.model)
        if isinstance(self.task, LanguageModelOptions | MaskedOptions | DenoiseOptions):
            if rows is not None and rows < self.task.context:
                raise ValueError(
                    f"model.max_length: {rows} learned positions, but task.context asks for {self.task.context}; "
                    "raise it, or lower that"
                )
            return self
        if isinstance(self.task, ClassifyOptions):
            if rows is not None and rows < self.data.max_tokens:
                raise ValueError(
                    f"model.max_length: {rows} learned positions, but data.max_tokens asks for "
                    f"{self.data.max_tokens}; raise it, or lower that"
                )
            return self
        longest = max(self.data.max_tokens, self.decoding.cap)
        if rows is not None and rows < longest:
            raise ValueError(
                f"model.max_length: {rows} learned positions, but data.max_tokens {self.data.max_tokens} "
                f"and decoding.cap {self.decoding.cap} ask for {longest}; raise it, or lower those"
            )
        return self


def learned_positions(model: ModelOptions) -> int | None:
    """How many positions a model has that learns a vector for each; none: it does not."""
    match model:
        case TransformerOptions(positions="learned") | GptOptions(positions="learned") | ConvS2SOptions():
            return model.max_length
        case BertOptions(positions="learned"):
            return model.max_length
        case _:
            return None


def read_tree(path: Path) -> Tree:
    """The YAML file as plain data; a recipe is a mapping of sections.

    A retired key that is 0, as it was unless somebody asked, changed nothing and is passed over.
    """
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"{path}: no such recipe") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: cannot be read ({error})") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise RecipeError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise RecipeError(f"{path}: found {reprlib.repr(tree):.80}, expected sections such as 'data:' and 'model:'")
    for section, names in RETIRED.items():
        if isinstance(found := tree.get(section), dict):
            tree[section] = {key: value for key, value in found.items() if key not in names or value != 0}
    return tree


def parse_setting(setting: str) -> tuple[list[str], Any]:
    """ "model.layers=4" → (["model", "layers"], 4); the value is read as YAML."""
    path, equals, value = setting.partition("=")
    if not equals or not all(path.split(".")):
        raise RecipeError(f"--set {setting}: expected section.key=value, for example model.heads=8")
    try:
        return path.split("."), yaml.safe_load(value)
    except (yaml.YAMLError, RecursionError):
        raise RecipeError(f"--set {setting}: the value is not YAML") from None


def with_settings(tree: Mapping[str, Any], settings: Sequence[str]) -> Tree:
    """The tree with each "a.b=c" put in its place; the later wins."""
    changed: Tree = dict(tree)
    for setting in settings:
        path, value = parse_setting(setting)
        for key in reversed(path):
            value = {key: value}
        changed = overlay(changed, value)
    return changed


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """`above` over `below`, section by section."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def parse(tree: Mapping[str, Any], where: str) -> Recipe:
    """The typed recipe; RecipeError names the dotted path, the value, and the nearest valid key."""
    task = asked(tree, "task", TranslateOptions().kind)
    family = MODELS.get(task, (TransformerOptions().kind,))[0]  # of a model section that does not say
    try:
        return Recipe.model_validate(overlay({"task": {"kind": task}, "model": {"kind": family}}, tree))
    except ValidationError as error:
        problems = [explain(problem) for problem in error.errors()]
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise RecipeError(f"{where}: {'; '.join(problems[:SHOWN])}{more}") from None


def asked(tree: Mapping[str, Any], section: str, default: str) -> str:
    """The kind that a section names, if it is a section and names one."""
    found = tree.get(section)
    kind = found.get("kind", default) if isinstance(found, Mapping) else default
    return kind if isinstance(kind, str) else default


def explain(error: ErrorDetails) -> str:
    """One problem in one clause."""
    path = [str(part) for part in error["loc"] if str(part) not in (*FAMILIES, *MODELS)]
    dotted = ".".join(path) or "recipe"
    if error["type"] == "extra_forbidden":
        known = keys_at(error["loc"][:-1])
        near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return f"{dotted}: unknown key; {hint}"
    if error["type"] == "missing":
        return f"{dotted}: missing"
    if error["type"] == "union_tag_invalid":
        found = str(error["ctx"]["tag"])
        known = list(MODELS) if dotted == "task" else list(FAMILIES)
        near = difflib.get_close_matches(found, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known kinds: {', '.join(known)}"
        return f"{dotted}.kind: {found:.40} is not known; {hint}"
    message = error["msg"].removeprefix("Value error, ")
    if isinstance(error["input"], dict):  # the message itself says which keys disagree
        return f"{dotted}: {message}" if path else message
    # Not repr: aliases let a few lines of YAML stand for gigabytes.
    return f"{dotted}: {message} (found {reprlib.repr(error['input']):.80})"


FAMILIES = tuple(family.model_fields["kind"].default for family in get_args(get_args(ModelOptions)[0]))


def keys_at(path: Sequence[int | str]) -> list[str]:
    """The keys that the section at this place of the recipe knows."""
    sections: list[type[BaseModel]] = [Recipe]
    for part in path:
        tagged = [s for s in sections if "kind" in s.model_fields and s.model_fields["kind"].default == part]
        if tagged:
            sections = tagged
        elif isinstance(part, str):
            sections = [
                x for s in sections if part in s.model_fields for x in sections_of(s.model_fields[part].annotation)
            ]
    return sorted({key for section in sections for key in section.model_fields})


def sections_of(annotation: Any) -> list[type[BaseModel]]:
    """Every section class inside an annotation such as `tuple[CorpusOptions, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for part in get_args(annotation) for section in sections_of(part)]


def to_yaml(recipe: Recipe) -> str:
    """The whole recipe, every default written out, so that it means the same with a later version."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
