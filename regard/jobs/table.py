"""Every kind of task by its name: the one place that asks which one a recipe means."""

from typing import Any

from regard.jobs.classify import ClassifyJob
from regard.jobs.denoise import DenoiseJob
from regard.jobs.images import ImageJob
from regard.jobs.interface import Job
from regard.jobs.language_model import LanguageModelJob
from regard.jobs.masked import MaskedJob
from regard.jobs.parse import ParseJob
from regard.jobs.translate import TranslateJob
from regard.recipe.recipe import Recipe

JOBS: dict[str, Job[Any, Any]] = {
    "translate": TranslateJob(),
    "language-model": LanguageModelJob(),
    "masked": MaskedJob(),
    "denoise": DenoiseJob(),
    "classify": ClassifyJob(),
    "classify-images": ImageJob(),
    "parse": ParseJob(),
}


def job(recipe: Recipe) -> Job[Any, Any]:
    return JOBS[recipe.task.kind]
