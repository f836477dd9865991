"""What a bilevel policy does where it cannot go on as usual: a strategy that is kept with it.

| reason | first | then | at last |
|---|---|---|---|
| no rule applies | wait and look again | follow a plan until a rule applies | stop |
| unseen: the action names an object that is not seen | wait and look again | do what another rule says | stop |
| stall: the action has had no effect for too long | back off and try again | do what another rule says | stop |
| jam: nothing moves, though it should | nudge it | nudge it for longer | a stall |

All of it is memory within an episode. Where no such thing happens, the policy is just what it is without.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from bilevel.lowlevel.encoding import Unseen
from bilevel.policies.episode import JAM, NO_RULE, NUDGE, OTHER, PLAN, RETRY, STALL, STOP, UNSEEN, WAIT, Incident
from bilevel.policies.policy import BilevelPolicy, HighLevelPolicy, LowLevelPolicy
from bilevel.policies.rollout import Perturb, Perturbation
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import implied_types
from bilevel.symbolic.domain import Action, BadInput, Facts, Problem
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.estimation import Estimator
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Labels

if TYPE_CHECKING:
    from bilevel.planning.planners import PlanGuide

OFF = "off"
BREADTH_FIRST_STATES = 1000  # for a shortest plan, before the search looks for any
WHERE_GOAL_HOLDS = 25  # times as long to wait, for what is seen may be wrong or take its time
PUSHING = Perturbation(amplitude=1.0, rate=1.0, flips=0.0)
BACK_OFF_STEPS = 15  # the first time; each further time lasts that much longer
NUDGING = Perturbation(amplitude=1.0, rate=0.0, flips=0.0)
LONGEST_NUDGE = 15  # steps; the first one is a step long, and each further one a step longer

Times = Annotated[int, msgspec.Meta(ge=0, lt=10**9)]


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long or how often each part is tried; 0 leaves it out."""

    wait: Times = 20  # steps to hold still and look again
    plan: Times = 50_000  # effort of a search: how many states and operators it may take up
    retry: Times = 3  # times to back off and try again, for each action
    other: Times = 3  # times to do something else instead, in an episode
    nudge: Times = 5  # steps in which nothing moves, though it should, before it is nudged

    def __str__(self) -> str:
        return ",".join(f"{name}={number}" for name, number in msgspec.structs.asdict(self).items() if number) or OFF


NO_RECOVERY = Recovery(0, 0, 0, 0, 0)
ONLY_WAIT = Recovery(Recovery().wait, 0, 0, 0, 0)


def parse_recovery(text: str) -> Recovery:
    """Read what `str` of a recovery writes; a part without a number has the usual one, and one left out is off."""
    usual, parts = msgspec.structs.asdict(Recovery()), msgspec.structs.asdict(NO_RECOVERY)
    try:
        for part in () if text == OFF else text.split(","):
            name, equals, number = part.strip().partition("=")
            parts[name] = int(number) if equals else usual[name]
        return msgspec.convert(parts, Recovery)
    except (KeyError, ValueError, msgspec.ValidationError):
        raise BadInput(f"--recovery takes {OFF}, or some of {Recovery()}, not '{text}'") from None


@dataclass(frozen=True)
class Body:
    """What must be known of a robot to hold it still, to push it, and to notice that it is stuck."""

    controls: Controls
    switches: Sequence[int] = ()  # numbers of a control that open or close something
    longest: Mapping[str, int] = field(default_factory=dict)  # demonstration of each schema, in steps
    named: Sequence[float] | None = None  # the control that holds still, if the task names one
    seed: int = 0  # of the pushes

    def still(self, last: Control | None) -> Control | None:
        """Return a control that holds still, as far as one is known, after the last one.

        If the task names none, it is the middle of a Box, where a velocity is nought. No control of a Discrete space is
        known to do nothing, so the last one is repeated. Switches stay as they were.
        """
        if not isinstance(self.controls, BoxControls):
            return last if self.named is None else np.int64(self.named[0])
        held = np.zeros(self.controls.size, np.float32)
        if self.named is not None:
            held[:] = self.controls.encode(np.array(self.named))[0]
        if last is not None and self.switches:
            switches = list(self.switches)
            held[switches] = self.controls.encode(last)[0, switches]
        return self.controls.decode(held)

    def is_still(self, control: Control) -> bool:
        """Whether a control is known to hold still, whatever its switches say."""
        if not isinstance(self.controls, BoxControls):
            return self.named is not None and control == self.named[0]
        held: Control = self.still(control)
        return bool(np.allclose(self.controls.encode(control), self.controls.encode(held), atol=1e-6))


# Stalls: noticed by how long the demonstrations took for an action

MARGIN = 6  # times the longest demonstration of an action, for one attempt at it
MANY_TIMES = 60  # times the same, for all attempts at it in the same state together
LEAST, UNKNOWN = 50, 1000  # steps: for actions that take next to none, and where nothing is known of any
SETTLING = 5  # steps that a state may be left for without being another attempt

Situation = tuple[Facts, Facts, Action]  # state, goal, and what is being done


@dataclass(slots=True)
class _Visits:
    """What is known of a situation: when it was left last, the steps of that attempt, and the steps of all."""

    left: float = -math.inf
    attempt: int = 0
    total: int = 0


class StallWatch:
    """Says until when something must have changed; the one who acts compares that with the present step.

    Only a change of the symbols counts, and not if it is undone at once. Where the same few states come again and
    again, the steps in each of them add up: then it is the total that ends the patience.
    """

    def __init__(self, longest: Mapping[str, int]) -> None:
        """`longest` gives the steps of the longest demonstration of each schema."""
        self._longest = longest
        self._visits: dict[Situation, _Visits] = {}
        self._here: Situation | None = None
        self._began = 0
        self.retries: Counter[Action] = Counter()  # since something new came about; each of them gets twice the time
        self.deadline = math.inf  # the step at which a stall is to be noticed

    def patience(self, schema: str) -> int:
        """Return for how many steps an attempt may be without effect; what was not shown is like the others."""
        longest = self._longest.get(schema) or max(self._longest.values(), default=0)
        return max(LEAST, MARGIN * longest) if longest else UNKNOWN

    def enter(self, step: int, situation: Situation | None) -> None:
        """Note that this is the situation from now on; `None` where nothing is being done."""
        if self._here is not None:
            left, steps = self._visits[self._here], step - self._began
            left.left, left.attempt, left.total = step, left.attempt + steps, left.total + steps
        self._here, self._began, self.deadline = situation, step, math.inf
        if situation is None:
            return
        if situation not in self._visits:
            self.retries.clear()
        visits = self._visits.setdefault(situation, _Visits())
        if step - visits.left > SETTLING:
            visits.attempt = 0
        patience = self.patience(situation[2].name) << self.retries[situation[2]]
        self.deadline = step + min(patience - visits.attempt, MANY_TIMES * patience // MARGIN - visits.total)

    def forgive(self, step: int) -> None:
        """Give the present situation its whole time again, and twice as much."""
        here, self._here = self._here, None
        if here is not None:
            self._visits[here] = _Visits()
            self.retries[here[2]] += 1
        self.enter(step, here)


class RecoveringPolicy(BilevelPolicy):
    """A bilevel policy that knows what to do where it cannot go on as usual; all but waiting is done with rules."""

    def __init__(
        self,
        labels: Labels,
        high: HighLevelPolicy,
        low: LowLevelPolicy,
        recovery: Recovery,
        body: Body,
        estimator: Estimator | None = None,
    ) -> None:
        super().__init__(labels, high, low, estimator)
        self._recovery, self._body = recovery, body
        self._forget()

    def _forget(self) -> None:
        self.incidents: list[Incident] = []
        self._stopped: tuple[str, str] | None = None  # why it does nothing any more
        self._step = 0  # of this episode
        self._last: Control | None = None  # control that was given
        self._waited = 0  # steps in a row
        self._stall = StallWatch(self._body.longest)
        self._push, self._nudge = (
            Perturb(bursts, self._body.controls, self._body.switches, self._body.seed) for bursts in (PUSHING, NUDGING)
        )
        self._pushes = 0  # steps of backing off that are still to come
        self._nudges = 0  # in this state, of this action
        self._seen: Scene | None = None  # last
        self._unmoved = 0  # steps for which this has been seen
        self._avoided: set[Action] = set()
        self._plans: dict[tuple[Facts, Facts], tuple[Action, ...]] = {}
        self._guide: PlanGuide | None = None
        self._is_committed = False  # to the whole plan, whatever the rules say

    @property
    def failure(self) -> tuple[str, str] | None:
        return self._stopped

    def reset(self, scene: Scene) -> None:
        super().reset(scene)
        self._forget()
        self._enter()

    def act(self, scene: Scene) -> Control | None:
        if self.look(scene):
            self._decide_anew()
        if self._step >= self._stall.deadline:
            self._end_stall()
        control = self._usual()
        if control is None:
            control = self._fallback()
        else:
            self._waited = 0
            if self._recovery.nudge:
                control = self._loosened(scene, control)
        if self._pushes and control is not None:
            self._pushes -= 1
            control = self._push(control)
        self._last = self.given(control)
        self._step += 1
        return control

    def _usual(self) -> Control | None:
        """Return how to do what is to be done, if that is known and can be seen."""
        if self.action is None or self._stopped:
            return None
        try:
            return self.control(self.action)
        except Unseen:
            return None

    def _decide_anew(self) -> None:
        """In another state, go on with the plan if no rule applies, and do not do what led nowhere."""
        if self._guide is not None:
            planned = self._guide.choose(self.state) if self._is_committed or self.action is None else None
            if planned is not None:
                self.action = planned
            elif self.action is not None:
                self._guide = None
        if self.action in self._avoided:
            self.action = self._alternative() or self.action
        self._enter()

    def _enter(self) -> None:
        """Note what is being done from now on."""
        self._seen, self._unmoved, self._nudges = None, 0, 0
        if self.action is None or not (self._recovery.retry or self._recovery.other):
            self._stall.enter(self._step, None)
        else:
            self._stall.enter(self._step, (self.state, self.goal, self.action))

    def _note(self, kind: str, reason: str) -> None:
        objects, rules = self.scene.objects, self.rules
        if rules:
            objects = {**implied_types(rules.domain, [self.state, self.goal]), **rules.objects}
        self.incidents.append(Incident(self._step, kind, reason, self.state, self.goal, dict(objects), self.action))

    def _stop(self, reason: str, detail: str) -> None:
        self._stopped = reason, detail
        self._note(STOP, reason)

    def _do_instead(self, kind: str, reason: str, action: Action) -> None:
        self.action = action
        self._note(kind, reason)
        self._enter()

    def _alternative(self) -> Action | None:
        """Return the first action of a rule that is not to be avoided."""
        actions = self.rules.alternatives(self.state, self.goal) if self.rules else ()
        return next((action for action in actions if action not in self._avoided), None)

    # No rule applies, or what the action names is not seen

    def _fallback(self) -> Control | None:
        """Wait, then do something else, then stop."""
        if self._stopped:
            return None
        still = self._body.still(self._last)
        patience = self._recovery.wait * (WHERE_GOAL_HOLDS if self.goal <= self.state else 1)
        if self._waited < patience and still is not None:
            if not self._waited:
                self._note(WAIT, NO_RULE if self.action is None else UNSEEN)
            self._waited += 1
            return still
        if self.action is None:
            self._follow_plan()
        else:
            self._do_something_else(UNSEEN, f"{self.action} names an object that is not seen")
        control = self._usual()
        if control is None and not self._stopped:  # what it does instead is not seen either
            self._stop(UNSEEN, f"{self.action} names an object that is not seen")
        return control

    def _follow_plan(self) -> None:
        """Plan from here; the second time from the same state, the plan is followed to its end.

        Rules that lead back to where none of them applies would else do so for ever.
        """
        from bilevel.planning.planners import PlanGuide  # which most policies never need

        here, rules = (self.state, self.goal), self.rules
        self._is_committed = here in self._plans
        if rules and not self._is_committed:
            self._plans[here] = self._plan(rules)
        self._guide = PlanGuide(rules.domain, self._plans[here]) if rules else None
        action = self._guide.choose(self.state) if self._guide else None
        if action is not None:
            self._do_instead(PLAN, NO_RULE, action)
            return
        self._guide = None
        detail = "no rule applies" + (", and there is no plan from here" if self._recovery.plan else "")
        self._stop(*self.high.failure or (NO_RULE, "the goal holds" if self.goal <= self.state else detail))

    def _plan(self, rules: RulePolicy) -> tuple[Action, ...]:
        """Return a plan for the present state, or nothing. It takes the outcome it needs of each action."""
        from bilevel.planning.planner import Deadline, NoModel
        from bilevel.planning.search import search_until

        if not self._recovery.plan:
            return ()
        problem = Problem("at-hand", rules.domain.name, rules.objects, self.state, self.goal)
        effort = Deadline(math.inf, self._recovery.plan)
        try:
            return search_until(effort, rules.domain, problem, BREADTH_FIRST_STATES).plan or ()
        except NoModel:
            return ()

    # Jams and stalls

    def _loosened(self, scene: Scene, control: Control) -> Control:
        """Return the control, with a push where nothing has moved for some steps although it should have.

        Where a world refuses a movement that would collide, what is seen stays the same, and so does the control of
        a network without memory: for ever.
        """
        self._unmoved = self._unmoved + 1 if self._seen is not None and _looks_like(scene, self._seen) else 0
        self._seen = scene
        if self._unmoved >= self._recovery.nudge and not self._nudge.left:
            self._seen, self._unmoved = None, 0
            if not self._body.is_still(control):
                self._nudges += 1
                self._nudge.burst(min(self._nudges, LONGEST_NUDGE))
                if self._nudges == 1:
                    self._note(NUDGE, JAM)
        return self._nudge(control) if self._nudge.left else control

    def _end_stall(self) -> None:
        """Try again from somewhere else, or do something else, as the action has had no effect for too long."""
        action = self.action
        assert action is not None
        retries = self._stall.retries[action]
        if retries < self._recovery.retry:
            self._pushes = (retries + 1) * BACK_OFF_STEPS
            self._note(RETRY, STALL)
            self._stall.forgive(self._step)
        else:
            steps = self._stall.patience(action.name)
            self._do_something_else(STALL, f"nothing came of {action} in {steps} steps; retries: {retries}")

    def _do_something_else(self, reason: str, detail: str) -> None:
        """Avoid the present action from now on, as long as there are others."""
        assert self.action is not None
        self._avoided.add(self.action)
        tried = sum(incident.kind == OTHER for incident in self.incidents)
        other = self._alternative() if tried < self._recovery.other else None
        if other is None:
            self._stop(reason, detail)
        else:
            self._guide = None
            self._do_instead(OTHER, reason, other)


def _looks_like(one: Scene, other: Scene) -> bool:
    """Return whether nothing has changed at all; almost always the agent has moved, which is found at once."""
    return one.values.tobytes() == other.values.tobytes() and one.features.tobytes() == other.features.tobytes()
