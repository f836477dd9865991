"""A policy that asks where no rule applies: who decides, who moves the agent, and how an episode is scrambled."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bilevel.learning.asking import AskingPolicy, Decider, asking_policy, random_action
from bilevel.learning.translation import Form, Translation
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Action, Atom, BadInput, Facts
from bilevel.symbolic.semantics import applicable, ground_action
from bilevel.tabletop.problems import shipped_domain
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_demonstrations import studied
from tiny_task import TINY, control

RULES = studied().rules
PUT, PICK = (tuple(rule for rule in RULES if rule.action.name == name) for name in ("put", "pick"))


class Network:
    """One that does as the expert does, and notes for what it was asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        self.asked[action.name] += 1
        return control(scene, action)


def policy_for(task: Task, rules: tuple[Rule, ...], objects: int = 2) -> tuple[SceneEnv, AskingPolicy]:
    env = SceneEnv(task, objects)
    return env, asking_policy(env, RulePolicy(rules, task.domain), Network())


def deciders(env: SceneEnv, policy: AskingPolicy, seed: int = 0) -> tuple[str, dict[str, set[Decider]]]:
    """How an episode ends, and who decided for the actions of each schema."""
    found: dict[str, set[Decider]] = {}

    def note(transition: Transition) -> None:
        assert policy.action is not None
        found.setdefault(policy.action.name, set()).add(policy.high.decider)

    return rollout(env, policy, seed, callback=note).outcome, found


WITH_CHOOSE, WITHOUT = TINY, replace(TINY, expert=Expert(control=control))


@pytest.mark.parametrize("task", [WITH_CHOOSE, WITHOUT], ids=["the expert", "the planner"])
def test_where_no_rule_applies_the_teacher_decides_until_one_does(task: Task) -> None:
    env, policy = policy_for(task, PUT)
    assert deciders(env, policy) == (SUCCESS, {"pick": {Decider.TEACHER}, "put": {Decider.RULES}})
    gaps = policy.gaps(env.scene)
    assert {step.action.action.name for trace in gaps.traces for step in trace.steps} == {"pick", "put"}
    assert all(Atom("free") in problem.state for problem in gaps.problems)


def test_where_rules_apply_nobody_is_asked() -> None:
    env, policy = policy_for(TINY, RULES)
    assert deciders(env, policy) == (SUCCESS, {"pick": {Decider.RULES}, "put": {Decider.RULES}})
    assert policy.gaps(env.scene).problems == ()


def test_the_expert_moves_the_agent_where_it_decided() -> None:
    def still(scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        return np.zeros(3, np.float32)

    network = Network()
    network.control = still  # type: ignore[method-assign]
    env = SceneEnv(TINY, 1)
    assert deciders(env, asking_policy(env, RulePolicy((), TINY.domain), network))[0] == SUCCESS
    policy = asking_policy(env, RulePolicy(RULES, TINY.domain), network)
    policy.reset(env.reset(0))
    assert np.array_equal(np.asarray(policy.act(env.scene)), np.zeros(3))


def test_a_teacher_that_does_not_know_either_ends_the_episode() -> None:
    env, policy = policy_for(replace(TINY, expert=Expert(choose=lambda state, goal: None, control=control)), ())
    assert deciders(env, policy) == ("no action", {})


def test_an_expert_that_chooses_no_action_of_the_domain_is_named() -> None:
    env, policy = policy_for(replace(TINY, expert=Expert(choose=lambda s, g: Action("kick"), control=control)), ())
    with pytest.raises(BadInput, match=r"the expert chose kick\(\), which is no action of the domain; .*: pick, put"):
        policy.reset(env.reset(0))


def test_a_scrambled_episode_begins_with_random_actions_and_only_that_one() -> None:
    env, policy = policy_for(TINY, RULES)
    policy.high.scramble(2, np.random.default_rng(0))
    assert deciders(env, policy)[1]["pick"] >= {Decider.CHANCE}
    policy.high.scramble(0, np.random.default_rng(0))
    assert Decider.CHANCE not in {who for found in deciders(env, policy)[1].values() for who in found}


def test_random_actions_can_be_done_and_change_something() -> None:
    domain = shipped_domain("gacha")
    state = frozenset({Atom("gripper-free"), Atom("opened", ("box",)), Atom("clear", ("box",))})
    objects = {"box": "box", "button": "button"}
    rng = np.random.default_rng(0)
    drawn = {random_action(domain, state, objects, rng) for _ in range(30)}
    assert drawn == {Action("close", ("box",))}  # it is open already
    assert random_action(domain, frozenset(), objects, rng) is None


def test_every_schema_is_drawn_alike() -> None:
    domain, rng = shipped_domain("blocks"), np.random.default_rng(0)
    objects = {**{f"b{i}": "block" for i in range(9)}, "l": "place", "t": "table"}
    state = frozenset(
        {Atom("gripper-free"), Atom("at", ("b0", "l")), *(Atom("clear", (f"b{i}",)) for i in range(1, 9))}
    )
    drawn: Counter[str] = Counter()
    for _ in range(400):
        action = random_action(domain, state, objects, rng)
        assert action is not None
        assert applicable(state, ground_action(domain, action))
        drawn[action.name] += 1
    assert drawn.keys() == {"pick", "take"}
    assert 150 < drawn["take"] < 250


@pytest.mark.parametrize("known", [True, False])
def test_a_learned_domains_actions_are_asked_for_in_the_experts_words(known: bool) -> None:
    """Where the expert does not know an action, nothing is asked, and the network goes on."""
    usual = {"fetch": "pick", "deliver": "put"}
    schemas = {name: replace(TINY.domain.schemas[own], name=name) for name, own in usual.items()}
    domain = replace(TINY.domain, schemas=schemas)
    forms = {name: (Form(own, tuple(range(1 + (own == "put"))), 1 + (own == "put")),) for name, own in usual.items()}

    class Calling(Network):
        def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
            return super().control(scene, state, goal, action._replace(name=usual[action.name]))

    env = SceneEnv(TINY, 2)
    policy = asking_policy(env, RulePolicy((), domain), Calling(), Translation(forms if known else {}))
    policy.high.scramble(0, np.random.default_rng(0))
    outcome, found = deciders(env, policy)
    assert outcome == SUCCESS
    assert found == {name: {Decider.TEACHER} for name in usual}
    assert policy.action is not None
    taught = policy.teach(env.scene)
    wanted = control(env.scene, policy.action._replace(name=usual[policy.action.name]))
    assert (taught is not None and np.array_equal(taught, wanted)) is known
