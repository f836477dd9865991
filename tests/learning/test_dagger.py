"""DAgger: the learner goes where it goes, and the expert says what it would have done there, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import msgspec
import numpy as np
import pytest

from bilevel.learning.dagger import (
    BilevelAgent,
    DaggerConfig,
    DaggerEpisode,
    DaggerRollouts,
    RandomActions,
    RandomPrefixPolicy,
    RuleGaps,
)
from bilevel.learning.learned_domain import Translation
from bilevel.lowlevel.encoding import encode_episode
from bilevel.parallel import parallel
from bilevel.policies.policy import LowLevelPolicy, expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import dagger_seed
from bilevel.symbolic.domain import Action, Atom, Domain, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_demonstrations import labelled, shown
from tiny_task import TINY, control

RULES = labelled().rules
PUT = tuple(rule for rule in RULES if rule.action.name == "put")
SHORT = DaggerConfig(rounds=1, episodes=4, patience=20)


class Slow:
    """A network that moves a third as far as the expert does."""

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        return np.asarray(control(scene, action)) * (1 / 3, 1 / 3, 1)


class Motionless:
    """A network that says nothing at all."""

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        return np.zeros(3, np.float32)


def agent_for(
    task: Task = TINY,
    rules: tuple[Rule, ...] = RULES,
    make_low: Callable[[], LowLevelPolicy] = Slow,
    domain: Domain = TINY.domain,
    translation: Translation | None = None,
    random_actions: int = 0,
) -> tuple[SceneEnv, BilevelAgent]:
    env, first = SceneEnv(task, 2), RandomActions(random_actions, np.random.default_rng(0))
    return env, BilevelAgent(partial(RulePolicy, rules, domain), make_low, translation, env, first)


# Who decides, and who moves the agent


def deciders(env: SceneEnv, agent: BilevelAgent, seed: int = 0) -> tuple[str, dict[str, set[str]]]:
    """How an episode ends, and who decided for the actions of each schema."""
    found: dict[str, set[str]] = {}

    def note(transition: Transition) -> None:
        assert agent.action is not None
        found.setdefault(agent.action.name, set()).add(agent.high.decider)

    return rollout(env, agent, seed, callback=note).outcome, found


@pytest.mark.parametrize("expert", [TINY.expert, Expert(control=control)], ids=["the expert", "the planner"])
def test_where_no_rule_applies_the_teacher_decides_until_one_does(expert: Expert) -> None:
    env, agent = agent_for(replace(TINY, expert=expert), PUT)
    assert deciders(env, agent) == (SUCCESS, {"pick": {"teacher"}, "put": {"rules"}})
    [episode] = run(changed(episodes=1, patience=300), replace(TINY, expert=expert), PUT)
    gaps = episode.gaps
    assert {step.action.action.name for trace in gaps.traces for step in trace.steps} == {"pick", "put"}
    assert all(Atom("free") in problem.state for problem in gaps.problems)


def test_where_rules_apply_nobody_is_asked_and_the_network_moves_the_agent() -> None:
    env, agent = agent_for()
    assert deciders(env, agent) == (SUCCESS, {"pick": {"rules"}, "put": {"rules"}})
    assert all(episode.gaps == RuleGaps() for episode in first_round())
    env, agent = agent_for(make_low=Motionless)
    agent.reset(env.reset(0))
    assert np.array_equal(np.asarray(agent.act(env.scene)), np.zeros(3))


def test_an_expert_that_does_not_know_either_ends_the_episode() -> None:
    clueless = Expert(choose=lambda state, goal: None, control=control)
    assert deciders(*agent_for(replace(TINY, expert=clueless), ())) == ("no action", {})


@pytest.mark.parametrize("known", [True, False])
def test_a_learned_domains_actions_are_asked_for_in_the_experts_words(known: bool) -> None:
    """Where the expert does not know an action, nothing is asked, and the network goes on."""
    usual = {"fetch": "pick", "deliver": "put"}
    schemas = {name: replace(TINY.domain.schemas[own], name=name) for name, own in usual.items()}
    arguments = {name: tuple(parameter.name for parameter in schema.parameters) for name, schema in schemas.items()}
    forms = [(Action(name, arguments[name]), Action(own, arguments[name])) for name, own in usual.items()]

    class Calling:
        def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
            return control(scene, action._replace(name=usual[action.name]))

    domain, translation = replace(TINY.domain, schemas=schemas), forms if known else []
    env, agent = agent_for(rules=(), make_low=Calling, domain=domain, translation=translation)
    assert deciders(env, agent) == (SUCCESS, {name: {"teacher"} for name in usual})
    agent.reset(env.reset(0))
    agent.act(env.scene)
    assert agent.action is not None
    wanted = control(env.scene, agent.action._replace(name=usual[agent.action.name]))
    assert (agent.shown is not None and np.array_equal(agent.shown, wanted)) is known


@pytest.mark.parametrize("prefix", [0, 3])
def test_a_rival_acts_after_the_random_actions_that_the_expert_carries_out(prefix: int) -> None:
    env = SceneEnv(TINY, 2)
    agent, actions = RandomPrefixPolicy(expert_policy, env, RandomActions(prefix, np.random.default_rng(1))), []
    ended = rollout(env, agent, 0, callback=lambda transition: actions.append(agent.action))
    assert ended.outcome == SUCCESS
    assert len({action for action in actions if action is not None}) == prefix
    assert actions[-1] is None


# Rollouts


def run(
    config: DaggerConfig = SHORT,
    task: Task = TINY,
    rules: tuple[Rule, ...] = RULES,
    make_low: Callable[[], LowLevelPolicy] = Slow,
    round_: int = 1,
    seed: int = 0,
    workers: int = 1,
    objects: int = 2,
    **arguments: Any,
) -> list[DaggerEpisode]:
    env_factory = partial(SceneEnv, task, objects, **arguments)
    make_agent = partial(BilevelAgent, partial(RulePolicy, rules, TINY.domain), make_low, None)
    encode = partial(encode_episode, labelled(task).encoding)
    rollouts = DaggerRollouts(env_factory, make_agent, encode, config, round_, seed)
    return [*parallel(rollouts, range(config.episodes), workers)]


@cache
def first_round() -> list[DaggerEpisode]:
    return run()


def changed(**settings: object) -> DaggerConfig:
    return msgspec.structs.replace(SHORT, **settings)


def content(episodes: Sequence[DaggerEpisode]) -> list[bytes]:
    return [b"".join(array.tobytes() for array in episode.arrays) for episode in episodes]


def test_episodes_come_in_order_and_do_not_depend_on_the_worker_or_on_those_before_them() -> None:
    assert [set(episode.arrays[1].tolist()) for episode in first_round()] == [{0}, {1}, {2}, {3}]
    assert content(run(workers=2)) == content(first_round())
    assert content(run(changed(episodes=1))) == content(first_round()[:1])


def test_the_controls_to_learn_are_the_experts_where_the_learner_went() -> None:
    env, agent = agent_for()
    shown_controls = []

    def note(transition: Transition) -> None:
        assert agent.action is not None
        shown_controls.append(control(transition.scene, agent.action))

    targets = first_round()[0].arrays[0]
    rollout(env, agent, dagger_seed(0, 1, 0), callback=note, stop=lambda: len(shown_controls) == len(targets))
    assert np.array_equal(targets, shown().controls.encode(np.stack(shown_controls)))


@pytest.mark.parametrize(("settings", "steps"), [({"patience": 10}, 11), ({"longest": 7}, 7)])
def test_one_that_stands_still_or_takes_long_is_given_up(settings: dict[str, int], steps: int) -> None:
    """After the first step, and as many more without any change."""
    found = run(changed(episodes=2, noise=0.0, random_actions=0, **settings), make_low=Motionless, objects=1)
    assert [len(episode.arrays[0]) for episode in found] == [steps] * 2


def test_two_of_three_episodes_are_perturbed_and_one_of_three_begins_with_random_actions() -> None:
    calm = changed(episodes=6, noise=0.0, random_actions=0, patience=60)
    usual = content(run(calm))
    noisy = content(run(msgspec.structs.replace(calm, noise=3.0)))
    prefixed = content(run(msgspec.structs.replace(calm, random_actions=50)))
    assert [one == other for one, other in zip(usual, noisy, strict=True)] == [True, False, False] * 2
    assert [one == other for one, other in zip(usual, prefixed, strict=True)] == [True, True, False] * 2
