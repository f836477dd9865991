"""What a policy does where no rule applies, where an object is not seen, and where nothing comes of what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bilevel.lowlevel.encoding import Unseen
from bilevel.policies.episode import NO_ACTION, Episode
from bilevel.policies.policy import AskedExpert, BilevelPolicy, LowLevelPolicy, expert_policy
from bilevel.policies.recovery import NO_RECOVERY, ONLY_WAIT, Body, RecoveringPolicy, Recovery, parse_recovery
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Action, Atom, BadInput, Facts
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.semantics import ground_action, progress
from bilevel.tasks.controls import BoxControls, Control, Controls, DiscreteControls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Expert, Labels
from tiny_policies import CONTROLS, PICK, RULES_TEXT
from tiny_task import SPEC, TINY, Delivery, control

LONGEST = {"pick": 20, "put": 20}
BODY = Body(CONTROLS, TINY.switches, LONGEST, seed=3)
USUAL = Recovery()
ONLY_PUT = RULES_TEXT.replace(PICK, "")


def policy(
    env: SceneEnv, rules: str = RULES_TEXT, low: LowLevelPolicy | None = None, recovery: Recovery = USUAL
) -> RecoveringPolicy:
    high = RulePolicy(parse_rules(rules), TINY.domain)
    return RecoveringPolicy(env.labels, high, low or AskedExpert(Expert(control=control)), recovery, BODY)


def run(objects: int = 1, **about: object) -> tuple[Episode, list[Control]]:
    """An episode, and its controls."""
    env = SceneEnv(TINY, objects)
    controls: list[Control] = []

    def note(transition: Transition) -> None:
        controls.append(transition.control)

    return rollout(env, policy(env, **about), 1, callback=note), controls  # type: ignore[arg-type]


def kinds(found: Episode) -> list[tuple[str, str]]:
    return [(incident.kind, incident.reason) for incident in found.incidents]


class Low:
    """The expert, but for what a test says about each step."""

    def __init__(self, odd: Callable[[int, Scene, Action], Control | None]) -> None:
        self._odd, self._calls = odd, 0

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        self._calls += 1
        odd = self._odd(self._calls - 1, scene, action)
        return control(scene, action) if odd is None else odd


def test_where_all_is_well_it_does_what_a_policy_without_recovery_does() -> None:
    found, controls = run(3)
    env = SceneEnv(TINY, 3)
    plain = BilevelPolicy(
        env.labels, RulePolicy(parse_rules(RULES_TEXT), TINY.domain), AskedExpert(Expert(control=control))
    )
    seen: list[Control] = []
    without = rollout(env, plain, 1, callback=lambda transition: seen.append(transition.control))
    assert (found, found.incidents) == (without, [])
    assert np.array_equal(controls, seen)


# No rule applies


def test_it_waits_then_plans_until_a_rule_applies() -> None:
    found, controls = run(rules=ONLY_PUT)
    assert (found.outcome, kinds(found)) == (SUCCESS, [("wait", "no rule"), ("plan", "no rule")])
    wait, plan = found.incidents
    assert (wait.step, wait.action, plan.step, plan.action) == (0, None, 20, Action("pick", ("parcel1",)))
    assert wait.objects == {"parcel1": "parcel", "spot1": "spot"}
    assert wait.goal == {Atom("at", ("parcel1", "spot1"))}
    assert np.allclose(controls[:20], [0, 0, 0.5])  # velocities of nought, and a grip of which nothing is known yet


def test_parts_that_are_off_are_left_out() -> None:
    found, controls = run(rules=ONLY_PUT, recovery=Recovery(wait=5, plan=0))
    assert (found.outcome, found.reason, len(controls)) == (NO_ACTION, "no rule", 5)
    assert kinds(found) == [("wait", "no rule"), ("stop", "no rule")]
    found, _ = run(rules=ONLY_PUT, recovery=Recovery(wait=0))
    assert kinds(found) == [("plan", "no rule")]


@pytest.mark.parametrize(
    ("controls", "named", "last", "held"),
    [
        (BoxControls([-1.0] * 4, [1.0] * 4, [2, 2]), None, np.full((2, 2), -0.5), [[0, 0], [0, -0.5]]),
        (BoxControls([-1.0] * 4, [1.0] * 4, [4]), [0.5, 0, 0, 0], None, [0.5, 0, 0, 0]),
        (BoxControls([-1.0] * 4, [1.0] * 4, [4]), [0.5, 0, 0, 0], np.ones(4), [0.5, 0, 0, 1]),
        (DiscreteControls(5, 1), None, np.int64(4), 4),
        (DiscreteControls(5, 1), [5.0], np.int64(4), 5),
    ],
)
def test_while_it_waits_it_holds_still_and_switches_stay_as_they_were(
    controls: Controls, named: list[float] | None, last: Control | None, held: Any
) -> None:
    assert np.array_equal(Body(controls, [3], named=named).still(last), held)  # type: ignore[arg-type]


LOOP = parse_domain("""
(define (domain loop)
  (:predicates (a) (b) (done))
  (:action on :parameters () :precondition (a) :effect (and (b) (not (a))))
  (:action back :parameters () :precondition (b) :effect (and (a) (not (b))))
  (:action finish :parameters () :precondition (b) :effect (and (done) (not (b)))))
""")


def test_rules_that_lead_back_are_not_followed_for_ever() -> None:
    """The plan is on, finish, although between the two a rule says back."""
    state = frozenset({Atom("a")})
    labels = Labels(lambda scene: state, lambda scene: [Atom("done")])
    high = RulePolicy(parse_rules("1: b() & goal done() -> back()"), LOOP)
    low = Low(lambda call, scene, action: np.zeros(3, np.float32))
    found = RecoveringPolicy(labels, high, low, Recovery(wait=1), Body(CONTROLS))
    done = []
    while Atom("done") not in state:
        found.act(Scene(SPEC, {"x": 0.0, "y": 0.0, "closed": 0.0}, {"parcel": {}, "spot": {}}))
        if found.action is not None:
            done.append(found.action.name)
            state = progress(state, ground_action(LOOP, found.action).outcomes[0])
    assert done == ["on", "finish"]


# What the action names is not seen


def test_what_is_not_seen_for_a_while_is_waited_for() -> None:
    def hidden(call: int, scene: Scene, action: Action) -> None:
        if 5 <= call < 9:
            raise Unseen("the parcel is behind something")

    found, controls = run(low=Low(hidden))
    assert (found.outcome, kinds(found)) == (SUCCESS, [("wait", "unseen")])
    assert (found.incidents[0].step, found.incidents[0].action) == (5, Action("put", ("parcel1", "spot1")))
    assert np.array_equal(controls[5:9], [[0, 0, 1]] * 4)  # it is still held
    assert found.steps == run()[0].steps + 4


# Stalls


def stuck(call: int, scene: Scene, action: Action) -> Control:
    return np.array([0, 0, 1], np.float32)


def test_a_stall_is_retried_after_backing_off_and_then_it_stops() -> None:
    found, controls = run(low=Low(stuck), recovery=Recovery(retry=1))
    assert (found.outcome, found.reason) == (NO_ACTION, "stall")
    assert found.detail == "nothing came of pick(parcel1) in 120 steps; retries: 1"
    assert [(i.step, i.kind) for i in found.incidents] == [(120, "retry"), (360, "stop")]
    pushed = [step for step, given in enumerate(controls) if not np.array_equal(given, [0, 0, 1])]
    assert pushed == [*range(120, 135)]
    assert {given[2] for given in controls} == {1.0}  # the switch


def test_what_stalls_again_is_left_and_another_binding_is_tried() -> None:
    def heavy(call: int, scene: Scene, action: Action) -> Control | None:
        return np.zeros(3, np.float32) if action == Action("pick", ("parcel1",)) else None

    found, _ = run(2, low=Low(heavy), recovery=Recovery(retry=1))
    assert kinds(found) == [("retry", "stall"), ("other", "stall"), ("retry", "stall"), ("stop", "stall")]
    other = found.incidents[1]
    assert other.action == Action("pick", ("parcel2",))
    assert Action("put", ("parcel2", "spot2")) in [entry.action for entry in found.decisions()]


# Jams


class Obstacle(Delivery):
    """A pillar stands a step before the first parcel; a step into it is refused whole, as kinematic worlds do."""

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        way = self.parcels[0, :2] / np.linalg.norm(self.parcels[0, :2])
        here = self.agent[:2] + action[:2]
        if not self.parcels[0, 2] and np.linalg.norm(here - 0.15 * way) < 0.1:
            return self.observation(), 0.0, False, False, self.info([])
        return super().step(action)


def jammed(recovery: Recovery) -> Episode:
    env = SceneEnv(replace(TINY, make_env=lambda objects: Obstacle(objects, 0.0, discrete=False)), 1)
    return rollout(env, policy(env, recovery=recovery), 1)


def test_what_does_not_move_though_it_should_is_nudged() -> None:
    found = jammed(USUAL)
    assert (found.outcome, kinds(found)) == (SUCCESS, [("nudge", "jam")])
    assert found.incidents[0].step == 5
    assert found.steps < 60
    assert jammed(USUAL) == found


# The strategy as text


def test_a_strategy_is_written_as_it_is_read() -> None:
    assert str(Recovery()) == "wait=20,plan=50000,retry=3,other=3,nudge=5"
    assert parse_recovery(str(Recovery())) == parse_recovery("wait,plan,retry,other,nudge") == Recovery()
    assert (parse_recovery("off"), str(NO_RECOVERY)) == (NO_RECOVERY, "off")
    assert parse_recovery("wait=7, plan") == Recovery(wait=7, retry=0, other=0, nudge=0)


@pytest.mark.parametrize(
    "text", ["", "on", "wait=", "wait=-1", "wait=1.5", "wait;plan", "off,wait", "plan=99999999999"]
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"--recovery takes off, or some of wait=20,.*, not"):
        parse_recovery(text)


# A policy without rules only waits


@pytest.mark.parametrize(("blind", "found"), [(5, (SUCCESS, None)), (50, (NO_ACTION, "unseen"))])
def test_it_waits_where_another_does_not_see_what_to_do_but_not_for_ever(
    blind: int, found: tuple[str, str | None]
) -> None:
    def hidden(call: int, scene: Scene, action: Action) -> None:
        if call < blind:
            raise Unseen("dark")

    env = SceneEnv(TINY, 1)
    expert = expert_policy(env)
    assert isinstance(expert, BilevelPolicy)
    body = Body(CONTROLS, TINY.switches)
    episode = rollout(env, RecoveringPolicy(env.labels, expert.high, Low(hidden), ONLY_WAIT, body), 1)
    assert (episode.outcome, episode.reason) == found
