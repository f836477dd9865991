"""DAgger: let the learner act, let the expert say what it would have done, and learn from both.

Behaviour cloning sees only where the expert goes. A learner makes small mistakes, and with noise on its controls large
ones, and finds itself in states that no demonstration has. Here the learner acts, and the expert is asked for a
control at every step: for a bilevel policy the expert's low level, conditioned on what the learner's rules decided.
Where these have nothing to say, the expert decides, or else a planner, and the rules learn from that; the expert's
control then moves the agent, as the network may never have seen such an action done. An episode may also begin with a
few random actions, so that the network sees every action of the domain done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.learning.learned_domain import Translation, translated
from bilevel.lowlevel.encoding import ImitationSamples, Situation
from bilevel.planning.planners import PlannedPolicy, bounded_search
from bilevel.policies.policy import AskedExpert, BilevelPolicy, LabellingPolicy, LowLevelPolicy, Policy, expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.state_graph import groundings
from bilevel.rules.traces import Trace, segments, traces_from_states
from bilevel.seeds import RANDOM_ACTIONS, dagger_seed
from bilevel.symbolic.domain import Action, Domain, Facts, Problem
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.scene_env import SceneEnv

Encode = Callable[[Sequence[Scene], Sequence[Situation], Array, int], ImitationSamples]  # an episode and its number


class DaggerConfig(msgspec.Struct, frozen=True):
    """How often the learner acts and asks the expert, and how much."""

    rounds: int = 0
    episodes: int = 60  # in a round
    epochs: int = 5  # of training after each round
    noise: float = 0.7  # amplitude of the control noise, in two of three episodes
    random_actions: int = 12  # at most, with which one of these two begins
    patience: int = 300  # steps without any change of the symbols before an episode is given up
    longest: int = 3000  # steps after which it is given up in any case


# Where the rules of a policy had nothing to say, and what was done from there


@dataclass(frozen=True, slots=True)
class RolloutDecision:
    """What was to be done at a timestep; `asked` says that no rule applied, and the expert or a planner was asked."""

    state: Facts
    goal: Facts
    objects: Mapping[str, str]
    action: Action | None
    asked: bool


class RuleGaps(NamedTuple):
    """The timesteps of rollouts at which no rule applied, as problems, and the traces of what was done from there."""

    problems: tuple[Problem, ...] = ()
    traces: tuple[Trace, ...] = ()


def find_gaps(domain: Domain, decisions: Sequence[RolloutDecision], state: Facts, goal: Facts) -> RuleGaps:
    """Return the gaps of an episode from what was decided at each timestep; `state` and `goal` are those at its end."""
    problems: dict[tuple[Facts, Facts], Problem] = {}
    traces: list[Trace] = []
    for start, decision in enumerate(decisions):
        if decision.asked and not (start and decisions[start - 1] == decision):
            problem = Problem("no-rule", domain.name, decision.objects, decision.state, decision.goal)
            problems.setdefault((decision.state, decision.goal), problem)
            traces += _trace_to_a_goal(domain, decisions[start:], state, goal)
    return RuleGaps(tuple(problems.values()), tuple(traces))


def _trace_to_a_goal(
    domain: Domain, decisions: Sequence[RolloutDecision], state: Facts, goal: Facts
) -> Iterator[Trace]:
    """Yield what was done from the first of the decisions up to the first goal that it achieved, if there was one.

    Only what was decided counts: a block that slips out of the hand looks as if it had been put aside.
    """
    states = [*(decision.state for decision in decisions), state]
    goals = [*(decision.goal for decision in decisions), goal]
    objects = {name: kind for decision in decisions for name, kind in decision.objects.items()}
    explained = traces_from_states(domain, states, goals, objects).actions
    pairs = enumerate(pairwise([None, *explained[:-1]]))  # where another action begins than what was decided
    done = next((i for i, (before, now) in pairs if now not in (None, before, decisions[i].action)), len(decisions))
    for trace in traces_from_states(domain, states[: done + 1], goals[: done + 1], objects).traces[:1]:
        if trace.steps[0].state == states[0]:
            yield from (Trace(steps, trace.objects) for _, steps in islice(segments(trace), 1))


# Who acts


@dataclass
class RandomActions:
    """Some random actions, with which an episode begins."""

    left: int
    rng: np.random.Generator

    def draw(self, domain: Domain, state: Facts, objects: Mapping[str, str]) -> Action | None:
        """Return an action that can be done and would change something, of a random schema; `None` if none is due."""
        if self.left == 0:
            return None
        self.left -= 1
        names = sorted(domain.schemas)
        for index in self.rng.permutation(len(names)):
            found = [
                action.action
                for action in groundings([domain.schemas[names[index]]], domain, {**domain.constants, **objects})
                if action.condition.holds(state)
                and any(outcome.add - state or outcome.delete & state for outcome in action.outcomes)
            ]
            if found:
                return found[int(self.rng.integers(len(found)))]
        return None


class DaggerAgent(Policy):
    """A policy at work in an environment, and the expert that it learns from."""

    shown: Control | None = None  # what the expert would have done in the scene that was acted on last, if it knows
    asked = False  # whether no rule applied there


MakeAgent = Callable[[SceneEnv, RandomActions], DaggerAgent]


# A bilevel policy


RULES, TEACHER, CHANCE = "rules", "teacher", "chance"  # who decided what to do

Teacher = AskedExpert | PlannedPolicy


class AskingRules:
    """Rules, and a teacher who is asked where none applies; at first, if that is wanted, some random actions."""

    failure: tuple[str, str] | None = None

    def __init__(self, rules: RulePolicy, teacher: Teacher, random_actions: RandomActions) -> None:
        self.domain, self.decider = rules.domain, RULES
        self.objects: Mapping[str, str] = {}
        self._rules, self._teacher, self._random_actions = rules, teacher, random_actions

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Begin an episode with these objects."""
        self.decider, self.objects = RULES, dict(objects)
        self._rules.reset(state, goal, objects)

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since."""
        self.objects = dict(objects)
        self._rules.declare(objects)

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return a random action while some are due, then the rules' choice, else the teacher's."""
        action, before = self._random_actions.draw(self.domain, state, self.objects), self.decider
        self.decider = CHANCE
        if action is None:
            action, self.decider = self._rules.choose(state, goal), RULES
        if action is not None or goal <= state:
            return action
        if before == TEACHER:
            self._teacher.declare(self.objects)
        else:
            self._teacher.reset(state, goal, self.objects)
        self.decider = TEACHER
        return self._teacher.choose(state, goal)


class BilevelAgent(BilevelPolicy, DaggerAgent):
    """Rules and a network that are being taught; wherever the rules have not decided, the expert moves the agent.

    With a `translation`, the rules are those of a learned domain: a planner is asked where none applies, as its actions
    are not the expert's.
    """

    high: AskingRules

    def __init__(
        self,
        make_rules: Callable[[], RulePolicy],
        make_low: Callable[[], LowLevelPolicy],
        translation: Translation | None,
        env: SceneEnv,
        random_actions: RandomActions,
    ) -> None:
        assert env.expert  # else there is no DAgger
        rules, self._asked, self._translation = make_rules(), AskedExpert(env.expert), translation
        teacher: Teacher = self._asked
        if translation is not None or not env.expert.choose:
            teacher = PlannedPolicy(rules.domain, bounded_search, replan=True, time_limit=math.inf)
        super().__init__(env.labels, AskingRules(rules, teacher, random_actions), make_low())

    def act(self, scene: Scene) -> Control | None:
        control = super().act(scene)
        if self.action is None:
            return None
        self.asked = self.high.decider == TEACHER
        action = self.action if self._translation is None else translated(self.action, self._translation)
        is_known = action is not None and all(name in scene for name in action.arguments)
        self.shown = self._asked.control(scene, self.state, self.goal, action) if action and is_known else None
        return control if self.high.decider == RULES or self.shown is None else self.shown


# A rival


class RandomPrefixPolicy(LabellingPolicy, DaggerAgent):
    """A network that does all, after an expert that carries out some random actions, where it can.

    The expert that it learns from decides by itself what to do: it sees what the network sees, and says what it would
    do next. Some episodes begin with random actions, so that a rival sees as much as BISON does.
    """

    def __init__(
        self, make_network: Callable[[SceneEnv], Policy], env: SceneEnv, random_actions: RandomActions
    ) -> None:
        super().__init__(env.labels)
        self._domain, expert = env.task.domain, env.expert
        self._asked = AskedExpert(expert) if expert and expert.control and not self._domain.adl else None
        self._network, self._expert, self._random_actions = make_network(env), expert_policy(env), random_actions

    def reset(self, scene: Scene) -> None:
        super().reset(scene)
        self.action = self._random_actions.draw(self._domain, self.state, scene.objects) if self._asked else None

    def act(self, scene: Scene) -> Control | None:
        """Return the expert's control for a random action while some are due, then the network's."""
        before = self.state, self.goal
        super().reset(scene)
        if self.action is not None and (self.state, self.goal) != before:
            self.reset(scene)
        if self.action is None or self._asked is None:
            control = self._network.act(scene)
        else:
            control = self._asked.control(scene, self.state, self.goal, self.action)
        self.shown = self._expert.act(scene)
        return control


# Rollouts


@dataclass(frozen=True)
class DaggerEpisode:
    """What is learned from an episode: at the low level samples, at the high level what the rules lack."""

    arrays: Sequence[NDArray[Any]]  # of the samples
    gaps: RuleGaps
    success: bool


@dataclass
class DaggerRollouts:
    """Runs the episodes of a round, by their numbers, in an environment that is made in whichever process needs it."""

    env_factory: Callable[[], SceneEnv]
    make_agent: MakeAgent
    encode: Encode
    config: DaggerConfig
    round: int
    seed: int  # of learning

    @cached_property
    def _env(self) -> SceneEnv:
        return self.env_factory()

    def __call__(self, number: int) -> DaggerEpisode:
        """Return what is learned from the episode of this number."""
        env, config, seed = self._env, self.config, dagger_seed(self.seed, self.round, number)
        rng = np.random.default_rng([seed, RANDOM_ACTIONS])
        first = RandomActions(int(rng.integers(config.random_actions + 1)) if number % 3 == 2 else 0, rng)
        agent = self.make_agent(env, first)
        noise = config.noise if number % 3 else 0.0
        shown: list[tuple[Scene, Situation, Control]] = []  # where the expert knows what it would have done
        decisions: list[RolloutDecision] = []
        since = 0  # the step from which on the situation has been the same

        def note(transition: Transition) -> None:
            nonlocal since
            situation, scene = (agent.state, agent.goal, agent.action), transition.scene
            if not decisions or situation != (decisions[-1].state, decisions[-1].goal, decisions[-1].action):
                since = env.steps
            decisions.append(RolloutDecision(agent.state, agent.goal, scene.objects, agent.action, agent.asked))
            if agent.shown is not None:
                shown.append((scene, situation, agent.shown))

        def is_given_up() -> bool:
            return env.steps - since > config.patience or env.steps >= config.longest

        episode = rollout(env, agent, seed, noise=noise, callback=note, stop=is_given_up)
        scenes, known, controls = zip(*shown, strict=True) if shown else ((), (), ())
        samples = self.encode(scenes, known, env.controls.encode(np.array(controls)), number)
        end = episode.entries[-1]
        gaps = find_gaps(agent.domain or env.task.domain, decisions, end.state, end.goal)
        return DaggerEpisode([*samples.arrays()], gaps, episode.success)
