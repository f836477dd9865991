"""Who is measured: what runs an episode of it, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bilevel.experiments.evaluation import MakePolicy, Run, Trial, run_job
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import Task

Measure = Callable[[Trial, int], Run]  # like all that a contender holds, it is sent to other processes

MOST_WITHOUT_WORLD = 1_000_000  # objects


@dataclass(frozen=True)
class Contender:
    """A policy that is to be measured."""

    method: str
    make: MakePolicy | None = None  # for an environment
    task: str | None = None  # that it was learned on
    domain_name: str | None = None  # that it fits; any, if there is none
    policy: str | None = None  # its folder, as given
    digest: str | None = None
    seed: int | None = None  # of learning it
    settings: Mapping[str, Any] = field(default_factory=dict)  # all else that its results depend on
    without_world: Measure | None = None  # for what is measured on symbols alone, and has nothing to `make`

    def check_domain(self, task: Task) -> None:
        """`BadInput` for a task of another domain."""
        if self.domain_name not in (None, task.domain_name):
            raise BadInput(
                f"{self.policy}: a policy for the domain '{self.domain_name}', "
                f"but the task '{task.name}' is of the domain '{task.domain_name}'"
            )

    def check(self, task: Task, objects: int, noise: float, arguments: Mapping[str, Any]) -> None:
        """`BadInput` for a task, a number of objects, or a world with noise or arguments that it is not measured in."""
        self.check_domain(task)
        most = self.most(task)
        if not 1 <= objects <= most:
            raise BadInput(f"the task '{task.name}' takes 1 to {most} objects, not {objects}")
        if self.make:
            task.make(objects, **arguments).close()
        elif noise or arguments:
            names = [*(["noise"] if noise else []), *arguments]
            options = " and no ".join(f"--{name.replace('_', '-')}" for name in names)
            raise BadInput(f"the method '{self.method}' is measured without a world: it takes no {options}")

    def most(self, task: Task) -> int:
        """The most objects that it can be measured with."""
        return task.most_objects if self.make else MOST_WITHOUT_WORLD

    def run(self, trial: Trial, episode: int) -> Run:
        """One episode of a trial, by its number."""
        if self.make:
            return run_job((trial, self.make, episode))
        assert self.without_world is not None
        return self.without_world(trial, episode)
