"""A policy that is being taught while it acts: where no rule applies it asks what to do, and is led.

Demonstrations show what an expert runs into, not all that a learner does. Where its rules have nothing to say, the
expert decides, or else a planner, and the expert's control moves the agent: the network may never have seen such an
action done. An episode may also begin with a few random actions, so that it sees every action of the domain done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Protocol

import numpy as np

from bilevel.learning.rule_gaps import Decision, RuleGaps, find_gaps
from bilevel.learning.translation import Translation
from bilevel.planning.planners import PlannedPolicy, bounded_search
from bilevel.policies.policy import BilevelPolicy, ChoosingExpert, ControllingExpert, HighLevelPolicy, LowLevelPolicy
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.verification.state_space import groundings
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts
from bilevel.symbolic.semantics import applicable
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert


class Decider(Enum):
    """Who said what to do."""

    RULES = "rules"
    TEACHER = "teacher"
    CHANCE = "chance"


class AskingRules:
    """Rules, and a teacher who is asked where none applies; at first, if that is wanted, some random actions."""

    failure: tuple[str, str] | None = None

    def __init__(self, rules: RulePolicy, teacher: HighLevelPolicy) -> None:
        self.domain = rules.domain
        self.decider = Decider.RULES
        self.objects: Mapping[str, str] = {}
        self._rules, self._teacher = rules, teacher
        self._random_actions, self._rng = 0, np.random.default_rng(0)

    def scramble(self, actions: int, rng: np.random.Generator) -> None:
        """Begin the next episode with so many random actions."""
        self._random_actions, self._rng = actions, rng

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Begin an episode with these objects."""
        self.decider, self.objects = Decider.RULES, dict(objects)
        self._rules.reset(state, goal, objects)

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since."""
        self.objects = dict(objects)
        self._rules.declare(objects)

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return a random action while some are due, then the rules' choice, else that of who is asked."""
        if self._random_actions > 0:
            self._random_actions -= 1
            action = random_action(self.domain, state, self.objects, self._rng)
            if action is not None:
                self.decider = Decider.CHANCE
                return action
        action = self._rules.choose(state, goal)
        if action is None and not goal <= state:
            return self._ask(state, goal)
        self.decider = Decider.RULES
        return action

    def _ask(self, state: Facts, goal: Facts) -> Action | None:
        if self.decider is Decider.TEACHER:
            self._teacher.declare(self.objects)
        else:
            self._teacher.reset(state, goal, self.objects)
        self.decider = Decider.TEACHER
        action = self._teacher.choose(state, goal)
        if action is not None and action.name not in self.domain.schemas:
            known = ", ".join(sorted(self.domain.schemas))
            raise BadInput(f"the expert chose {action}, which is no action of the domain; its actions: {known}")
        return action


def random_action(domain: Domain, state: Facts, objects: Mapping[str, str], rng: np.random.Generator) -> Action | None:
    """Draw an action that can be done and would change something: first its schema, then its arguments."""
    schemas = [domain.schemas[name] for name in sorted(domain.schemas)]
    for index in rng.permutation(len(schemas)):
        found = [
            action
            for action in groundings([schemas[index]], domain, {**domain.constants, **objects})
            if applicable(state, action)
            and any(outcome.add - state or outcome.delete & state for outcome in action.outcomes)
        ]
        if found:
            return found[int(rng.integers(len(found)))].action
    return None


class AskedExpert(Protocol):
    """Who can be asked how to do an action, and may not know it."""

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control | None:
        """Return what the expert would do; `None` where it does not know."""


class TranslatingExpert:
    """An expert that is asked about the actions of a learned domain, and calls them by names of its own."""

    def __init__(self, expert: Expert, translation: Translation) -> None:
        assert expert.control is not None
        self._low, self._translation = ControllingExpert(expert.control), translation
        self._high = ChoosingExpert(expert.choose) if expert.choose else None

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control | None:
        """Return the expert's control for an action that it knows."""
        high = self._high
        known = self._translation.expert_action(action, lambda: high.choose(state, goal) if high else None)
        if known is None or any(name not in scene for name in known.arguments):
            return None
        return self._low.control(scene, state, goal, known)


class AskingPolicy(BilevelPolicy):
    """Rules and a network that are being taught; wherever the rules have not decided, the expert moves the agent."""

    high: AskingRules

    def __init__(self, env: SceneEnv, high: AskingRules, network: LowLevelPolicy, expert: AskedExpert) -> None:
        super().__init__(env.labels, high, network)
        self._expert = expert
        self._decisions: list[Decision] = []

    def reset(self, scene: Scene) -> None:
        self._decisions = []
        super().reset(scene)

    def act(self, scene: Scene) -> Control | None:
        control = super().act(scene)
        if self.action is None:
            return None
        decider = self.high.decider
        asked = decider is Decider.TEACHER
        self._decisions.append(Decision(self.state, self.goal, self.high.objects, self.action, asked))
        if decider is Decider.RULES:
            return control
        taught = self.teach(scene)
        return control if taught is None else taught

    def teach(self, scene: Scene) -> Control | None:
        """Return the expert's control for what is being done, if it knows that."""
        assert self.action is not None
        return self._expert.control(scene, self.state, self.goal, self.action)

    def gaps(self, scene: Scene) -> RuleGaps:
        """Return where the rules had nothing to say in the episode that ended with this scene."""
        return find_gaps(self.high.domain, self._decisions, self.labels.state(scene), self.labels.goal(scene))


def asking_policy(
    env: SceneEnv, rules: RulePolicy, network: LowLevelPolicy, translation: Translation | None = None
) -> AskingPolicy:
    """Return the policy with the teachers that a task has: its expert, and a planner where that cannot choose.

    With a `translation`, the rules are those of a learned domain: a planner chooses, as its actions are not the
    expert's.
    """
    expert = env.expert
    if expert is None or expert.control is None:
        raise BadInput(f"the expert of the task '{env.task.name}' cannot be asked for controls, so no DAgger")
    teacher: HighLevelPolicy
    if expert.choose is not None and translation is None:
        teacher = ChoosingExpert(expert.choose)
    else:
        teacher = PlannedPolicy(rules.domain, bounded_search, replan=True, time_limit=math.inf)
    asked: AskedExpert = ControllingExpert(expert.control)
    if translation is not None:
        asked = TranslatingExpert(expert, translation)
    return AskingPolicy(env, AskingRules(rules, teacher), network, asked)
