"""Checks of a task: what a finding is, and what can be found in a task's parts and in its environment.

Each check says what is wrong and what to do about it. `bilevel.learning.task_checking` runs them all.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import Control, controls_of
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import OBJECTS, Env, Task, failed


@dataclass(frozen=True)
class Finding:
    """Something about a task that stands in the way of learning, or else a piece of advice."""

    message: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{'error' if self.is_error else 'advice'}: {self.message}"


class Findings:
    """Collects findings; what is found again at every step is kept once."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Finding] = {}

    def error(self, about: Hashable, message: str) -> None:
        self._found.setdefault(about, Finding(message))

    def advise(self, about: Hashable, message: str) -> None:
        self._found.setdefault(about, Finding(message, is_error=False))

    @property
    def has_errors(self) -> bool:
        return any(finding.is_error for finding in self._found.values())

    def in_order(self) -> list[Finding]:
        """The errors, then the advice."""
        return sorted(self._found.values(), key=lambda finding: not finding.is_error)


@dataclass
class CheckedEpisode:
    """What was seen in an episode, by whose controls; `outcome` is missing where a function of the task failed."""

    who: str
    seed: int
    scenes: list[Scene] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    actions: list[Action | None] = field(default_factory=list)
    states: list[Facts] = field(default_factory=list)
    goals: list[Facts] = field(default_factory=list)
    events: set[int] = field(default_factory=set)  # the steps at which the environment reported some
    outcome: str | None = None

    def has_events(self, start: int, end: int) -> bool:
        """Whether something was reported after the first of these steps, up to the other."""
        return any(start < step <= end for step in self.events)

    def at(self, step: int) -> str:
        return f"seed {self.seed}, step {step}, {self.who}"


# The parts of a task


def check_parts(task: Task, found: Findings) -> None:
    """Check what can be checked without running anything."""
    for kind in task.spec.objects:
        if task.domain.types and kind not in task.domain.types:
            found.error(
                ("type", kind),
                f"the spec has objects of the type '{kind}', which the domain '{task.domain.name}' does not declare "
                f"(its types: {', '.join(task.domain.types)}): use one name for it in both",
            )
    kinds = [*task.spec.objects, *task.domain.constants.values()]
    for parameter in {p.type for schema in task.domain.schemas.values() for p in schema.parameters}:
        if not any(task.domain.is_subtype(kind, parameter) for kind in kinds):
            message = f"actions of the domain '{task.domain.name}' need objects of the type '{parameter}'"
            found.advise(("type", parameter), f"{message}, but the spec has none: add it to the spec's objects")
    parameters = inspect.signature(task.make_env).parameters
    if not _takes(task.make_env, OBJECTS):
        found.error(
            "make_env",
            f"make_env({', '.join(parameters)}) does not take `objects`, the number of objects that the environment "
            "shall have: add the argument, even if there is only one number that it can be",
        )
    try:
        pickle.dumps(task)
    except Exception as error:
        found.advise(
            "pickle",
            f"the task cannot be sent to other processes ({error}), so only 1 worker can be used: define its functions "
            "at the top of a module instead of as lambdas, or name it as file.py:task",
        )


def _takes(function: Callable[..., Any], argument: str) -> bool:
    parameters = inspect.signature(function).parameters
    return argument in parameters or any(part.kind is part.VAR_KEYWORD for part in parameters.values())


# The environment


def check_environment(task: Task, objects: int, arguments: Mapping[str, Any], found: Findings) -> None:
    """Make the environment and take a step in it as Gymnasium says, to see whether it is one of Gymnasium's."""
    try:
        env = task.make_env(objects=objects, **arguments)
        _check_spaces(env, found)
        if not found.has_errors:
            _check_reset(env, found)
        if not found.has_errors:
            _check_step(env, found)
        if not found.has_errors:
            env.close()
    except BadInput as error:
        found.error("environment", str(error))
    except Exception as error:
        found.error("environment", str(failed("the environment", error)))


def _check_spaces(env: Env, found: Findings) -> None:
    for part in ("action_space", "reset", "step", "close"):
        if not hasattr(env, part):
            found.error("space", f"the environment has no `{part}`: derive it from gymnasium.Env and give it one")
            return
    try:
        controls_of(env.action_space)
    except BadInput as error:
        found.error("space", str(error))


def _check_reset(env: Env, found: Findings) -> None:
    if not _takes(env.reset, "seed"):
        found.error("reset", "env.reset() takes no `seed`: write `def reset(self, *, seed=None, options=None)`")
        return
    result = env.reset(seed=0)
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        found.error("reset", "env.reset(seed=0) must return the observation and a dictionary `info`, as Gymnasium says")
        return
    _check_observation(env, result[0], "env.reset(seed=0)", found)


def _check_step(env: Env, found: Findings) -> None:
    env.action_space.seed(0)
    result = env.step(env.action_space.sample())
    if not (isinstance(result, tuple) and len(result) == 5 and isinstance(result[4], dict)):
        what = f"{len(result)} values" if isinstance(result, tuple) else type(result).__name__
        found.error(
            "step",
            f"env.step(control) returned {what} instead of observation, reward, terminated, truncated and info: an "
            "environment of the old Gym ends with `terminated or truncated` as `done`; return the two separately",
        )
        return
    _check_observation(env, result[0], "env.step(control)", found)


def _check_observation(env: Env, observation: Any, where: str, found: Findings) -> None:
    space = getattr(env, "observation_space", None)
    if space is None:
        found.advise("observation", "the environment has no `observation_space`; other tools of Gymnasium need one")
    elif not space.contains(observation):
        found.advise("observation", f"{where} gave an observation that is not in {space}: mind shape, dtype and bounds")
