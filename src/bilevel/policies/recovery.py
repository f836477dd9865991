"""What a bilevel policy does where it cannot go on as usual: a strategy that is kept with it.

| reason | first | then | at last |
|---|---|---|---|
| no rule applies | wait and look again | follow a plan for as long as it fits | stop |
| unseen: the action names an object that is not seen | wait and look again | do what another rule says | stop |
| stall: the action has had no effect for too long | back off and try again | do what another rule says | stop |
| jam: nothing moves, though it should | nudge it | nudge it for longer | a stall |

All of it is memory within an episode. Where no such thing happens, the policy is just what it is without.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from bilevel.lowlevel.encoding import Situation, Unseen
from bilevel.planning.planner import NoModel
from bilevel.planning.planners import PlanGuide, bounded_search
from bilevel.policies.episode import JAM, NO_RULE, NUDGE, OTHER, PLAN, RETRY, STALL, STOP, UNSEEN, WAIT, Incident
from bilevel.policies.policy import BilevelPolicy, HighLevelPolicy, LowLevelPolicy
from bilevel.policies.rollout import Perturb, Perturbation, RestWatch
from bilevel.rules.traces import implied_types
from bilevel.symbolic.domain import Action, BadInput, Problem
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.estimation import Estimator
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Labels

OFF = "off"
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
    usual, off = (msgspec.structs.asdict(each) for each in (Recovery(), NO_RECOVERY))
    parts = [part.partition("=") for part in text.replace(" ", "").split(",") if text != OFF]
    given = {name: number if equals else usual.get(name) for name, equals, number in parts}
    try:
        return msgspec.convert(off | given, Recovery, strict=False)
    except msgspec.ValidationError:
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
        held = np.zeros(self.controls.size) if self.named is None else self.controls.encode(np.array(self.named))[0]
        if last is not None:
            held[list(self.switches)] = self.controls.encode(last)[0, list(self.switches)]
        return self.controls.decode(held.astype(np.float32))

    def is_still(self, control: Control) -> bool:
        """Whether a control is known to hold still, whatever its switches say."""
        if not isinstance(self.controls, BoxControls):
            return self.named is not None and control == self.named[0]
        held: Control = self.still(control)
        return bool(np.allclose(self.controls.encode(control), self.controls.encode(held), atol=1e-6))


MARGIN = 6  # times the longest demonstration of an action, before it is taken to have no effect
LEAST, UNKNOWN = 50, 1000  # steps: for actions that take next to none, and where nothing is known of any


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

    def reset(self, scene: Scene) -> None:
        super().reset(scene)
        self.incidents: list[Incident] = []
        self.failure, self._step = None, 0  # of this episode
        self._last: Control | None = None  # control that was given
        self._waited = 0  # steps in a row
        self._steps: dict[Situation, int] = {}  # in each situation, since a new one came about
        self._retries: Counter[Action] = Counter()  # since then; each of them gets twice the time
        self._push, self._nudge = (
            Perturb(bursts, self._body.controls, self._body.switches, self._body.seed) for bursts in (PUSHING, NUDGING)
        )
        self._pushes = 0  # steps of backing off that are still to come
        self._avoided: set[Action] = set()
        self._guide: PlanGuide | None = None  # along a plan, whatever the rules say
        self._enter()

    def act(self, scene: Scene) -> Control | None:
        if self.look(scene):
            self._decide_anew()
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
        self._steps[self._situation] += 1
        return control

    def _usual(self) -> Control | None:
        """Return how to do what is to be done, if that is known and can be seen."""
        with suppress(Unseen):
            if self.action is not None and not self.failure:
                return self.control(self.action)
        return None

    def _decide_anew(self) -> None:
        """In another state, go on with the plan if there is one, and do not do what led nowhere."""
        if self._guide is not None:
            planned = self._guide.choose(self.state)
            if planned is not None:
                self.action = planned
            elif self.action is not None:
                self._guide = None
        if self.action in self._avoided:
            self.action = self._alternative() or self.action
        self._enter()

    def _enter(self) -> None:
        """Note what is being done from now on; where that is new, what was tried before is forgiven."""
        self._rest, self._nudges = RestWatch(still=0.0), 0
        self._situation = self.state, self.goal, self.action
        if self._situation not in self._steps:
            self._steps = {**dict.fromkeys(self._steps, 0), self._situation: 0}
            self._retries.clear()

    def _note(self, kind: str, reason: str) -> None:
        objects, rules = self.scene.objects, self.rules
        if rules:
            objects = {**implied_types(rules.domain, [self.state, self.goal]), **rules.objects}
        self.incidents.append(Incident(self._step, kind, reason, self.state, self.goal, dict(objects), self.action))

    def _stop(self, reason: str, detail: str) -> None:
        self.failure = reason, detail
        self._note(STOP, reason)

    def _do(self, action: Action, kind: str, reason: str) -> None:
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
        if self.failure:
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
        if control is None and not self.failure:  # what it does instead is not seen either
            self._stop(UNSEEN, f"{self.action} names an object that is not seen")
        return control

    def _follow_plan(self) -> None:
        """Plan from here, and follow the plan, for rules may lead back to where none of them applies.

        The plan takes the outcome it needs of each action.
        """
        rules, action, self._guide = self.rules, None, None
        if rules and self._recovery.plan:
            problem = Problem("at-hand", rules.domain.name, rules.objects, self.state, self.goal)
            with suppress(NoModel):
                plan = bounded_search(rules.domain, problem, math.inf, self._recovery.plan).plan
                self._guide = PlanGuide(rules.domain, plan or ())
                action = self._guide.choose(self.state)
        if action is not None:
            self._do(action, PLAN, NO_RULE)
            return
        detail = "no rule applies" + (", and there is no plan from here" if self._recovery.plan else "")
        self._stop(*self.high.failure or (NO_RULE, "the goal holds" if self.goal <= self.state else detail))

    # Jams and stalls

    def _loosened(self, scene: Scene, control: Control) -> Control:
        """Return the control, with a push where nothing has moved for some steps although it should have.

        Where a world refuses a movement that would collide, what is seen stays the same, and so does the control of
        a network without memory: for ever.
        """
        if self._rest.look(scene) >= self._recovery.nudge and not self._nudge.left:
            self._rest = RestWatch(still=0.0)
            if not self._body.is_still(control):
                self._nudges += 1
                self._nudge.burst(min(self._nudges, LONGEST_NUDGE))
                if self._nudges == 1:
                    self._note(NUDGE, JAM)
        return self._nudge(control) if self._nudge.left else control

    def _patience(self, action: Action) -> int:
        """Return for how many steps an action may have no effect; what was not shown is like the others."""
        longest = self._body.longest.get(action.name) or max(self._body.longest.values(), default=0)
        return max(LEAST, MARGIN * longest) if longest else UNKNOWN

    def _end_stall(self) -> None:
        """Try again elsewhere, or do something else, where the same few things have been done in vain for too long."""
        action = self.action
        if action is None or not (self._recovery.retry or self._recovery.other):
            return
        retries = self._retries[action]
        if self._steps[self._situation] < self._patience(action) << retries:
            return
        if retries < self._recovery.retry:
            self._pushes = (retries + 1) * BACK_OFF_STEPS
            self._note(RETRY, STALL)
            self._steps[self._situation] = 0
            self._retries[action] += 1
        else:
            steps = self._patience(action)
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
            self._do(other, OTHER, reason)
