"""The recipes in recipes/ and the pages in docs/ against the code they speak of."""

import dataclasses
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from regard.cli.main import regard
from regard.data.options import (
    CorpusOptions,
    DataOptions,
    FilterRules,
    ImageOptions,
    LabelledOptions,
    TextCorpusOptions,
    TreebankOptions,
)
from regard.data.pairs import Pair
from regard.decoding.options import SearchOptions
from regard.demo import SETTINGS, TRAIN
from regard.jobs.table import job
from regard.recipe.build import build
from regard.recipe.models import (
    BertOptions,
    ByteNetOptions,
    ConvS2SOptions,
    GptOptions,
    RecurrentOptions,
    TransformerOptions,
    VitOptions,
)
from regard.recipe.presets import choose
from regard.recipe.recipe import Recipe, overlay, parse, read_tree, with_settings
from regard.tasks.options import (
    ClassifyImagesOptions,
    ClassifyOptions,
    DenoiseOptions,
    LanguageModelOptions,
    LossOptions,
    MaskedOptions,
    ParseOptions,
    TranslateOptions,
)
from regard.text.options import TextOptions
from regard.training.events import KINDS
from regard.training.options import TrainingOptions

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
SECTIONS = {
    "task (translate)": TranslateOptions,
    "task (language-model)": LanguageModelOptions,
    "task (masked)": MaskedOptions,
    "task (denoise)": DenoiseOptions,
    "task (classify)": ClassifyOptions,
    "task (classify-images)": ClassifyImagesOptions,
    "task (parse)": ParseOptions,
    "data": DataOptions,
    "data.corpora": CorpusOptions,
    "data.texts": TextCorpusOptions,
    "data.labelled": LabelledOptions,
    "data.images": ImageOptions,
    "data.trees": TreebankOptions,
    "data.filters": FilterRules,
    "text": TextOptions,
    "model (transformer)": TransformerOptions,
    "model (recurrent)": RecurrentOptions,
    "model (bytenet)": ByteNetOptions,
    "model (convs2s)": ConvS2SOptions,
    "model (gpt)": GptOptions,
    "model (bert)": BertOptions,
    "model (vit)": VitOptions,
    "loss": LossOptions,
    "training": TrainingOptions,
    "decoding": SearchOptions,
}
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\| (.*) ?\|$", re.MULTILINE)
every_recipe = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
every_section = pytest.mark.parametrize("name", SECTIONS)


@every_recipe
def test_a_recipe_parses_and_builds_its_model(path):
    recipe = parse(read_tree(path), path.name)
    job(recipe).refuse_impossible(recipe)  # builds it without memory: the largest would take a gigabyte


def leaves(tree, path=()):
    """Every value of a tree with its path."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


@every_recipe
def test_a_recipe_says_only_what_differs_from_the_defaults(path):
    tree = read_tree(path)
    kinds = {section: {"kind": tree[section]["kind"]} for section in ("task", "model") if section in tree}
    plain = parse({"data": {}, **kinds}, "defaults").model_dump(mode="json")
    said = parse(tree, path.name).model_dump(mode="json")
    for place, _ in leaves({section: tree[section] for section in tree if section != "data"}):
        default, value = plain, said
        for key in place:
            default, value = default[key], value[key]
        assert place[1:] == ("kind",) or value != default, f"{path.name}: {'.'.join(place)} is the default"


NAMED = "transformer|recurrent|gpt|vit|language-model|characters|parse|classify"  # what a recipe is about


@every_recipe
def test_a_recipe_gives_a_reason_for_each_value(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if re.match(rf"  (?!kind: (?:{NAMED})\b)\w+: ", line):
            assert "  # " in line, f"{path.name}: {line.strip()}"


CHOSEN = {  # pairs, characters of a side on average, preset, and what is set over it
    "dates": (TRAIN, 15, "transformer", SETTINGS),
    "multi30k-en-de": (29_000, 66, "transformer", ()),
    "multi30k-en-de-recurrent": (29_000, 66, "bidirectional-gru", ()),
    "multi30k-de-en": (29_000, 66, "transformer", ()),
    "multi30k-en-fr": (29_000, 66, "transformer", ()),
    "tatoeba-en-es": (114_170, 32, "transformer", ()),
    "tatoeba-en-de": (162_992, 35, "transformer", ()),
    "libreoffice-help-en-de": (33_254, 88, "transformer", ()),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_recipe_is_what_two_files_alone_would_give(name):
    """In the time that the recipe has."""
    pairs, letters, preset, settings = CHOSEN[name]
    written = parse(read_tree(ROOT / "recipes" / f"{name}.yaml"), name)
    chosen = choose([Pair("a" * letters, "b" * letters)] * pairs, preset, written)
    alone = parse(with_settings(chosen, settings), "preset")
    length = {"budget": None, "epochs": alone.training.epochs}
    given = {"training": written.training.model_copy(update=length), "data": alone.data}
    assert written.model_copy(update=given) == alone
    assert written.data.batch_tokens == alone.data.batch_tokens


def documented(name):
    """key → (default, meaning) as the page has it under the heading."""
    _, found, rest = PAGE.partition(f"\n## {name}\n")
    assert found, f"docs/recipes.md has no section {name!r}"
    return {key: (default, meaning) for key, default, meaning in ROW.findall(rest.partition("\n## ")[0])}


def choices(annotation):
    """The words of every Literal inside an annotation."""
    if get_origin(annotation) is Literal:
        return set(map(str, get_args(annotation)))
    return {word for part in get_args(annotation) for word in choices(part)}


@every_section
def test_the_page_has_every_key_in_order(name):
    assert list(documented(name)) == list(SECTIONS[name].model_fields)


@every_section
def test_the_page_has_every_default(name):
    for key, (default, _) in documented(name).items():
        field = SECTIONS[name].model_fields[key]
        expected = field.get_default(call_default_factory=True)
        if isinstance(expected, BaseModel) or field.is_required():
            assert not default, key
            continue
        assert yaml.safe_load(default) == (list(expected) if isinstance(expected, tuple) else expected), key


@every_section
def test_the_page_names_every_choice(name):
    for key, (_, meaning) in documented(name).items():
        words = choices(SECTIONS[name].model_fields[key].annotation)
        assert words <= set(re.findall(r"`([^`]+)`", meaning)), key


def test_the_page_has_every_section():
    top = {name.split(".")[0].split(" ")[0] for name in SECTIONS}
    assert top == set(Recipe.model_fields)
    assert set(re.findall(r"^## (.+)$", PAGE, re.MULTILINE)) == set(SECTIONS)


def test_the_example_in_the_readme_is_a_recipe():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = yaml.safe_load(re.search(r"```yaml\n(.*?)```", readme, re.DOTALL)[1])
    recipe = parse(overlay({}, tree), "README.md")
    assert build(recipe.model, 30, 30, shared=True, seed=1)


def test_the_page_on_training_names_every_event_and_what_it_says():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([A-Z]\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert list(rows) == list(KINDS)
    for name, kind in KINDS.items():
        fields = {field.name for field in dataclasses.fields(kind)}
        said = set(re.findall(r"`(\w+)`", rows[name]))
        assert fields - said <= {"step", "seconds"}, name  # when it was needs no explanation


def test_every_link_between_the_pages_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_command_in_the_readme_exists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^regard (\w+)", readme, re.MULTILINE))
    assert named == set(regard.commands)
    for line in re.findall(r"^regard .*", readme, re.MULTILINE):
        command = regard.commands[line.split()[1]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[\w-]+", line.partition("#")[0])) <= known, line
