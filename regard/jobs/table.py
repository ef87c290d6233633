"""Every kind of task by its name: the one place that asks which one a recipe means."""

from typing import Any

from regard.jobs.images import ImageJob
from regard.jobs.interface import Job
from regard.jobs.language_model import LanguageModelJob
from regard.jobs.translate import TranslateJob
from regard.recipe.recipe import Recipe

JOBS: dict[str, Job[Any, Any]] = {
    "translate": TranslateJob(),
    "language-model": LanguageModelJob(),
    "classify-images": ImageJob(),
}


def job(recipe: Recipe) -> Job[Any, Any]:
    return JOBS[recipe.task.kind]
