"""What acts. A policy turns scenes into controls; a bilevel policy decides what to do, then does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bilevel.lowlevel.encoding import Unseen
from bilevel.lowlevel.numpy_network import NumpyNetwork
from bilevel.policies.episode import Incident
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import NO_FACTS, Action, BadInput, Domain, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.estimation import Estimator
from bilevel.tasks.scene import Roster, Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Labels, call


class Policy:
    """The base of all policies; what a policy can do beside acting is declared by its attributes."""

    labels: Labels | None = None  # what it sees, in symbols; without them, an episode has no entries
    scene: Scene | None = None  # what it takes to be there, where that is not just what is seen
    state: Facts = NO_FACTS
    goal: Facts = NO_FACTS
    action: Action | None = None  # that is being done, if it says so
    incidents: Sequence[Incident] = ()  # the times in this episode that it could not go on as usual
    rules: RulePolicy | None = None  # that it follows, and can be explained by
    domain: Domain | None = None  # whose actions it does, where it is not that of the task
    looks_at = ""  # the object that it sees in the place of one that its action names, if there is one
    is_memoryless = False  # whether what it does depends on what it sees alone
    acts_elsewhere = False  # in a process of its own
    failure: tuple[str, str] | None = None  # why it does not know what to do: the reason in short, and in a line

    def reset(self, scene: Scene) -> None:
        """Begin an episode."""

    def act(self, scene: Scene) -> Control | None:
        """Return the next control, or `None` where the policy does not know what to do."""
        raise NotImplementedError

    def reconsider(self) -> None:
        """Choose anew at the next step, whatever is seen: what decides is no longer what it was."""


class LabellingPolicy(Policy):
    """The part of a policy that says what it sees, and not what it is doing: its labels are to be watched."""

    def __init__(self, labels: Labels) -> None:
        self.labels: Labels = labels

    def reset(self, scene: Scene) -> None:
        """Begin an episode with what is seen first."""
        self.state, self.goal = self.labels.state(scene), self.labels.goal(scene)


class HighLevelPolicy(Protocol):
    """Decides what to do: rules, a plan, a person's own program, which derives from this."""

    failure: tuple[str, str] | None = None  # why it does not know what to do: the reason in short, and in a line

    @property
    def domain(self) -> Domain | None:
        """The domain whose actions it chooses, where it is not that of the task."""
        return None

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Begin an episode with these objects, given as names with their types; a program may not need to know."""
        return

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since."""
        return

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return the next action; `None` where it does not know what to do."""


class LowLevelPolicy(Protocol):
    """Does it: from a scene and the action that is to be done, a control."""

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        """Return how to do the action in this scene."""


class BilevelPolicy(LabellingPolicy):
    """Label, choose, control. What is being done is kept for whoever wants to show or record it."""

    def __init__(
        self, labels: Labels, high: HighLevelPolicy, low: LowLevelPolicy, estimator: Estimator | None = None
    ) -> None:
        """With an `estimator`, what is labelled and acted upon is its estimate of what is seen."""
        super().__init__(labels)
        self.high, self.low, self.estimator = high, low, estimator
        self.domain, self.rules = high.domain, high if isinstance(high, RulePolicy) else None
        self.scene: Scene  # seen last, or what is estimated from that
        self._begun = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.high!r}, {self.low!r})"

    def reset(self, scene: Scene) -> None:
        if self.estimator:
            self.estimator.reset()
            scene = self.estimator.update(scene)
        self._begun, self.scene = True, scene
        super().reset(scene)
        self._chosen_for: tuple[Facts, Facts, Roster] | None = self.state, self.goal, scene.roster
        self.high.reset(self.state, self.goal, scene.objects)
        self.action = self.high.choose(self.state, self.goal)

    def act(self, scene: Scene) -> Control | None:
        """Return the control for what is seen now; `None` where the high level does not know what to do."""
        self.look(scene)
        self.failure = self.high.failure if self.action is None else None
        return None if self.action is None else self.given(self.control(self.action))

    def look(self, scene: Scene) -> bool:
        """Label what is seen now, and choose anew where state or goal have changed; return whether they have."""
        if not self._begun:
            self.reset(scene)
        if self.estimator:
            scene = self.estimator.update(scene)
        self.scene = scene
        situation = self.labels.state(scene), self.labels.goal(scene), scene.roster
        if situation == self._chosen_for:  # mostly all three are the very same, which comparing tuples finds at once
            return False
        self._chosen_for = situation
        self.high.declare(scene.objects)
        self.state, self.goal, _ = situation
        self.action = self.high.choose(self.state, self.goal)
        return True

    def reconsider(self) -> None:
        self._chosen_for = None

    def control(self, action: Action) -> Control:
        """How to do an action in what was seen last."""
        control = self.low.control(self.scene, self.state, self.goal, action)
        self.looks_at = self.low.looks_at if isinstance(self.low, NumpyNetwork) else ""
        return control

    def given(self, control: Control | None) -> Control | None:
        """Note the control that is given, which the estimator has to know, and return it."""
        if self.estimator and control is not None:
            self.estimator.act(control)
        return control


# A task's expert as a policy: it shows the task, and it is the measure of what learns from it


class AskedExpert(HighLevelPolicy):
    """Both levels of a person's program, which is asked what to do next, and how to do it."""

    def __init__(self, expert: Expert) -> None:
        self._expert = expert

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return the expert's next action."""
        assert self._expert.choose is not None
        return call("the expert's choose(state, goal)", self._expert.choose, state, goal)

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        """Return the expert's control; `Unseen` where an argument of the action is not in the scene."""
        assert self._expert.control is not None
        for name in action.arguments:
            if name not in scene:
                raise Unseen(f"the expert wants {action}, but no '{name}' is seen")
        return call("the expert's control(scene, {1})", self._expert.control, scene, action)


class ActingExpert(LabellingPolicy):
    """A whole policy from elsewhere, which does not say what it is doing."""

    def __init__(self, act: Callable[[Scene], Control], labels: Labels) -> None:
        super().__init__(labels)
        self._act = act

    def act(self, scene: Scene) -> Control:
        """Return the expert's control for what is seen now."""
        self.reset(scene)
        return call("the expert's act(scene)", self._act, scene)


def expert_policy(env: SceneEnv) -> Policy:
    """The expert of a task at work in an environment of it; `BadInput` where there is none that can show it."""
    expert = env.expert
    if expert is None or not expert.can_show:
        raise BadInput(f"the task '{env.task.name}' has no expert that can show it")
    if expert.act is not None:
        return ActingExpert(expert.act, env.labels)
    asked = AskedExpert(expert)
    return BilevelPolicy(env.labels, asked, asked)
