"""A task is one file of tasks/ and one of jobs/; each table that must know it by name knows every one."""

from typing import get_args

from regard.jobs.table import JOBS
from regard.recipe.folder import COMMANDS
from regard.recipe.recipe import FAMILIES, MODELS
from regard.recipe.starting import KIN
from regard.tasks.options import TaskOptions

KINDS = {section.model_fields["kind"].default for section in get_args(get_args(TaskOptions)[0])}


def test_every_task_has_a_job_a_model_a_command_and_something_to_begin_with():
    assert KINDS == JOBS.keys() == MODELS.keys() == COMMANDS.keys() == KIN.keys()
    assert {start for starts in KIN.values() for start in starts} <= KINDS
    assert {kind for kinds in MODELS.values() for kind in kinds} == set(FAMILIES)


def test_every_command_that_uses_a_model_is_there():
    from regard.cli.group import regard
    from regard.cli.main import main  # noqa: F401  (it brings all commands)

    assert set(COMMANDS.values()) <= regard.commands.keys()
