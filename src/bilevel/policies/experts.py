"""A task's expert as a policy: it shows the task, and it is the measure of those who learn from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bilevel.policies.policy import BilevelPolicy, ObservedPolicy
from bilevel.symbolic.domain import NO_FACTS, Action, BadInput, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Labels, failed


class ChoosingExpert:
    """A high-level policy that asks a person's program what to do next."""

    def __init__(self, choose: Callable[[Facts, Facts], Action | None]) -> None:
        self._choose = choose

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Nothing to prepare: the program sees all it needs."""

    def declare(self, objects: Mapping[str, str]) -> None:
        """Nothing to note either."""

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        try:
            return self._choose(state, goal)
        except BadInput:
            raise
        except Exception as error:
            raise failed("the expert's choose(state, goal)", error) from error


class ControllingExpert:
    """A low-level policy that asks a person's program how to do it."""

    def __init__(self, control: Callable[[Scene, Action], Control]) -> None:
        self._control = control

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        try:
            return self._control(scene, action)
        except BadInput:
            raise
        except Exception as error:
            raise failed(f"the expert's control(scene, {action})", error) from error


class ActingExpert:
    """A whole policy of somebody else's, which does not say what it is doing."""

    def __init__(self, act: Callable[[Scene], Control], labels: Labels) -> None:
        self._act, self.labels = act, labels
        self.state: Facts = NO_FACTS
        self.goal: Facts = NO_FACTS
        self.action: Action | None = None

    def reset(self, scene: Scene) -> None:
        self.state, self.goal = self.labels.state(scene), self.labels.goal(scene)

    def act(self, scene: Scene) -> Control:
        self.reset(scene)
        try:
            return self._act(scene)
        except BadInput:
            raise
        except Exception as error:
            raise failed("the expert's act(scene)", error) from error


def expert_policy(env: SceneEnv) -> ObservedPolicy:
    """The expert of a task at work in an environment of it; `BadInput` where there is none that can show it."""
    expert = env.expert
    if expert is None or not expert.can_show:
        raise BadInput(f"the task '{env.task.name}' has no expert that can show it")
    if expert.act is not None:
        return ActingExpert(expert.act, env.labels)
    assert expert.choose is not None
    assert expert.control is not None
    return BilevelPolicy(env.labels, ChoosingExpert(expert.choose), ControllingExpert(expert.control))
