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


@dataclass(frozen=True)
class Method:
    """A way to a policy."""

    make: Callable[[Task, Tabletop], BilevelPolicy] | None = None  # where nothing has to be learned
    bind: Callable[[SavedPolicy, Task, Tabletop], BilevelPolicy] | None = None  # where it comes from a folder


def _expert(task: Task, environment: Tabletop) -> BilevelPolicy:
    return task.expert(environment.slots)


def _bison(saved: SavedPolicy, task: Task, environment: Tabletop) -> BilevelPolicy:
    return saved.bind(environment.slots)


METHODS: Mapping[str, Method] = {"bison": Method(bind=_bison), "expert": Method(make=_expert)}


def find_contender(method: str, folder: Path | None) -> Contender:
    """Who is to be measured; `BadInput` where there is a folder and none is needed, or the other way round."""
    if method not in METHODS:
        raise BadInput(f"unknown method '{method}'; known methods: {', '.join(METHODS)}")
    found = METHODS[method]
    if found.make is not None:
        if folder is not None:
            raise BadInput(f"the method '{method}' takes no --policy")
        return Contender(method, found.make)
    assert found.bind is not None
    if folder is None:
        raise BadInput(f"the method '{method}' needs a --policy; `bilevel learn` makes one")
    saved = read_policy(folder)
    make = partial(found.bind, saved)
    return Contender(method, make, saved.task, saved.domain.name, str(folder), saved.digest, saved.seed)
