"""Everything that can be measured, in one table: how a policy comes about, from a folder or without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bilevel.environments.tabletop import Tabletop
from bilevel.execution.policies import BilevelPolicy
from bilevel.execution.policy_folder import SavedPolicy, read_policy
from bilevel.experiments.evaluation import MakePolicy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks import Task


@dataclass(frozen=True)
class Contender:
    """A policy that is to be measured: what makes it for an environment, and where it comes from."""

    method: str
    make: MakePolicy
    task: str | None = None  # that it was learned on
    domain_name: str | None = None  # that it fits; any, if there is none
    policy: str | None = None  # its folder, as given
    digest: str | None = None
    seed: int | None = None  # of learning it

    def check_task(self, task: Task) -> None:
        """`BadInput` for a task of another domain."""
        if self.domain_name not in (None, task.domain_name):
            raise BadInput(
                f"{self.policy}: a policy for the domain '{self.domain_name}', "
                f"but the task '{task.name}' is of the domain '{task.domain_name}'"
            )


def _load_bison(folder: Path | None) -> Contender:
    if folder is None:
        raise BadInput("the method 'bison' needs a --policy; `bilevel learn` makes one")
    saved = read_policy(folder)
    make = partial(_bind, saved)
    return Contender("bison", make, saved.task, saved.domain.name, str(folder), saved.digest, saved.seed)


def _bind(saved: SavedPolicy, task: Task, environment: Tabletop) -> BilevelPolicy:
    return saved.bind(environment.slots)


def _load_expert(folder: Path | None) -> Contender:
    if folder is not None:
        raise BadInput("the method 'expert' takes no --policy")
    return Contender("expert", _expert)


def _expert(task: Task, environment: Tabletop) -> BilevelPolicy:
    return task.expert(environment.slots)


# For each method, what finds its policy in a folder, or does without one.
METHODS: Mapping[str, Callable[[Path | None], Contender]] = {"bison": _load_bison, "expert": _load_expert}


def find_contender(method: str, folder: Path | None) -> Contender:
    """Who is to be measured; `BadInput` where there is a folder and none is needed, or the other way round."""
    if method not in METHODS:
        raise BadInput(f"unknown method '{method}'; known methods: {', '.join(METHODS)}")
    return METHODS[method](folder)
