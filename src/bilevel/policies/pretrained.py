"""Policies that come with tasks, and are known by the names of these: nobody has to learn them first."""

from __future__ import annotations

import os
from pathlib import Path

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.registry import registered_task, task_names
from bilevel.tasks.task import Task


def pretrained_policies() -> dict[str, Path]:
    """Return the folders of all policies that come with a registered task, by the names of the tasks.

    list(pretrained_policies())              # what `bilevel policies` lists
    """
    tasks = {name: registered_task(name) for name in task_names()}
    return {name: Path(task.pretrained) for name, task in tasks.items() if task and task.pretrained}


def pretrained_policy(task: Task) -> Path | None:
    """Return what `find_folder` finds the policy of a task by: its name, unless that is another's, else its folder."""
    if task.pretrained is None:
        return None
    known = registered_task(task.name)
    is_known = known is not None and known.pretrained == task.pretrained and not Path(task.name).exists()
    return Path(task.name if is_known else task.pretrained)


def find_folder(source: Path | str) -> Path:
    """Return the folder of a policy: the one of this path, or else that of the pretrained policy of this name.

    What is there goes before what has the same name. `BadInput` for a mere name that is neither.
    """
    path = Path(source)
    if os.path.exists(path) or len(path.parts) != 1:
        return path
    task = registered_task(path.name)
    if task is not None and task.pretrained:
        return Path(task.pretrained)
    known = ", ".join(pretrained_policies())
    remedy = f", or name a pretrained policy: {known}" if known else ""
    raise BadInput(f"{path}: there is no such folder; `bilevel learn` makes one{remedy}")
