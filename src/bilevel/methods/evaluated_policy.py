"""A policy that is to be run or measured, as it is sent to other processes, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bilevel.policies.episode_run import EpisodeRun
from bilevel.policies.policy import ObservedPolicy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task

MakePolicy = Callable[[SceneEnv], ObservedPolicy]
Measure = Callable[[Task, int, int], EpisodeRun]  # of a task, a number of objects and a seed

MAX_SYMBOLIC_OBJECTS = 1_000_000


@dataclass(frozen=True)
class EvaluatedPolicy:
    """What makes the policy for an environment, and what its results depend on."""

    method: str
    make: MakePolicy | None = None
    task: str | None = None  # that it was learned on
    check: Callable[[Task], None] | None = None  # `BadInput` for a task that it does not fit
    policy: str | None = None  # its folder, as given
    digest: str | None = None
    seed: int | None = None  # of learning it
    settings: Mapping[str, Any] = field(default_factory=dict)  # all else that its results depend on
    measure: Measure | None = None  # for what is measured on symbols alone, and has nothing to `make`
    render_mode: str | None = None  # for a policy that looks at pictures

    def check_task(self, task: Task) -> None:
        """`BadInput` for a task that it does not fit."""
        if self.check is not None:
            self.check(task)

    def check_run(self, task: Task, objects: int, noise: float, arguments: Mapping[str, Any]) -> None:
        """`BadInput` for a task, a number of objects, or noise or arguments that it is not measured with."""
        self.check_task(task)
        most = self.max_objects(task)
        if objects < 1 or (most is not None and objects > most):
            raise BadInput(f"the task '{task.name}' takes 1 to {most} objects, not {objects}")
        if self.make:
            SceneEnv(task, objects, **arguments).close()
        elif noise or arguments:
            names = [*(["noise"] if noise else []), *(["env-args"] if arguments else [])]
            options = " and no ".join(f"--{name}" for name in names)
            raise BadInput(f"the method '{self.method}' is measured without an environment: it takes no {options}")

    def max_objects(self, task: Task) -> int | None:
        """The most objects that it can be measured with."""
        return task.max_objects if self.make else MAX_SYMBOLIC_OBJECTS
