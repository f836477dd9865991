"""What a bilevel policy does where it is at a loss: a strategy that is kept with it.

| at a loss, because | first | then | at last |
|---|---|---|---|
| no rule applies | wait and look again | follow a plan until a rule applies | stop |
| an object is not seen that the action names | wait and look again | do what another rule says | stop |
| nothing comes of the action (a stall) | back off and try again | do what another rule says | stop |
| nothing moves, though it should (a jam) | nudge it | nudge it for longer | a stall |

All of it is memory within an episode. Where no such thing happens, the policy is just what it is without.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from bilevel.lowlevel.encoding import Unseen
from bilevel.policies.body import Body
from bilevel.policies.episode import JAM, NO_RULE, NUDGE, OTHER, PLAN, RETRY, STALL, STOP, UNSEEN, WAIT, Incident
from bilevel.policies.policy import BilevelPolicy, LowLevelPolicy
from bilevel.policies.rollout import Perturb, Perturbation
from bilevel.policies.stalls import JamWatch, StallWatch
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import implied_types
from bilevel.symbolic.domain import Action, BadInput, Facts, Problem
from bilevel.tasks.controls import Control
from bilevel.tasks.estimation import Estimator
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Labels

if TYPE_CHECKING:
    from bilevel.planning.planners import PlanGuide

OFF = "off"
BREADTH_FIRST_STATES = 1000  # for a shortest plan, before the search looks for any
BACKING_OFF = Perturbation(amplitude=1.0, rate=1.0, flips=0.0)
WHERE_GOAL_HOLDS = 25  # times as long to wait, for what is seen may be wrong or take its time
BACK_OFF_STEPS = 15  # the first time; each further time lasts that much longer
NUDGING = Perturbation(amplitude=1.0, rate=0.0, flips=0.0)
LONGEST_NUDGE = 15  # steps; the first one is a step long, and each further one a step longer


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long or how often each part is tried; 0 leaves it out."""

    wait: int = 20  # steps to hold still and look again
    plan: int = 50_000  # effort of a search: how many states and operators it may take up
    retry: int = 3  # times to back off and try again, for each action
    other: int = 3  # times to do something else instead, in an episode
    nudge: int = 5  # steps in which nothing moves, though it should, before it is nudged

    def __post_init__(self) -> None:
        if min(msgspec.structs.astuple(self)) < 0:
            raise ValueError("the numbers of a recovery must be at least 0")

    def __str__(self) -> str:
        parts = [f"{name}={number}" for name, number in msgspec.structs.asdict(self).items() if number]
        return ",".join(parts) or OFF


NO_RECOVERY = Recovery(0, 0, 0, 0, 0)


def parse_recovery(text: str) -> Recovery:
    """Read what `str` of a recovery writes; a part without a number has the usual one, and one left out is off."""
    usual, found = msgspec.structs.asdict(Recovery()), msgspec.structs.asdict(NO_RECOVERY)
    for part in () if text == OFF else text.split(","):
        name, equals, number = part.strip().partition("=")
        if name not in usual or (equals and not (number.isascii() and number.isdecimal() and len(number) < 10)):
            raise BadInput(f"--recovery takes {OFF}, or some of {Recovery()}, not '{text}'")
        found[name] = int(number) if equals else usual[name]
    return Recovery(**found)


class RecoveringPolicy(BilevelPolicy):
    """A bilevel policy that knows what to do where it is at a loss.

    `incidents` are the times that it was, in this episode; `failure` says why it has stopped, in short and in a line.
    """

    def __init__(
        self,
        labels: Labels,
        high: RulePolicy,
        low: LowLevelPolicy,
        recovery: Recovery,
        body: Body,
        estimator: Estimator | None = None,
    ) -> None:
        super().__init__(labels, high, low, estimator)
        self._rules, self._recovery, self._body = high, recovery, body
        self._watch = StallWatch(body.longest)
        self._forget()

    def _forget(self) -> None:
        self.incidents: list[Incident] = []
        self._failure: tuple[str, str] | None = None
        self._watch.reset()
        self._push = Perturb(BACKING_OFF, self._body.controls, self._body.switches, self._body.seed)
        self._step = 0  # of this episode
        self._last: Control | None = None  # control that was given
        self._waited = 0  # steps in a row
        self._pushes = 0  # steps of backing off that are still to come
        self._nudge = Perturb(NUDGING, self._body.controls, self._body.switches, self._body.seed)
        self._jam = JamWatch()
        self._nudges = 0  # in this state, of this action
        self._retries: Counter[Action] = Counter()
        self._avoided: set[Action] = set()
        self._plans: dict[tuple[Facts, Facts], tuple[Action, ...]] = {}
        self._guide: PlanGuide | None = None
        self._committed = False  # to the whole plan, whatever the rules say

    @property
    def failure(self) -> tuple[str, str] | None:
        return self._failure

    def reset(self, scene: Scene) -> None:
        super().reset(scene)
        self._forget()
        self._enter()

    def act(self, scene: Scene) -> Control | None:
        if self.look(scene):
            self._reconsider()
        if self._step >= self._watch.deadline:
            self._stalled()
        control = self._usual()
        if control is None:
            control = self._at_a_loss()
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
        """How to do what is to be done, if that is known and can be seen."""
        if self.action is None or self._failure is not None:
            return None
        try:
            return self.control(self.action)
        except Unseen:
            return None

    def _enter(self) -> None:
        """Note what is being done from now on."""
        self._jam.reset()
        self._nudges = 0
        if self.action is None or not (self._recovery.retry or self._recovery.other):
            self._watch.enter(self._step, None)
        elif self._watch.enter(self._step, (self.state, self.goal, self.action)):
            self._retries.clear()  # as something has come of what was done

    def _note(self, kind: str, reason: str) -> None:
        objects = {**implied_types(self._rules.domain, [self.state, self.goal]), **self._rules.objects}
        self.incidents.append(Incident(self._step, kind, reason, self.state, self.goal, objects, self.action))

    def _stop(self, reason: str, detail: str) -> None:
        if self._failure is None:
            self._failure = reason, detail
            self._note(STOP, reason)

    def _reconsider(self) -> None:
        """In another state, go on with the plan if no rule applies, and do not do what led nowhere."""
        if self._guide is not None:
            planned = self._guide.choose(self.state) if self._committed or self.action is None else None
            if planned is not None:
                self.action = planned
            elif self.action is not None:
                self._guide = None
        if self.action in self._avoided:
            self.action = self._alternative() or self.action
        self._enter()

    def _alternative(self) -> Action | None:
        """The first action of a rule that is not to be avoided."""
        found = self._rules.alternatives(self.state, self.goal)
        return next((action for action in found if action not in self._avoided), None)

    # No rule applies, or what the action names is not seen

    def _at_a_loss(self) -> Control | None:
        """Wait, then do something else, then stop."""
        reason = NO_RULE if self.action is None else UNSEEN
        still = self._body.still(self._last)
        patience = self._recovery.wait * (WHERE_GOAL_HOLDS if self.goal <= self.state else 1)
        if self._failure is None and self._waited < patience and still is not None:
            if not self._waited:
                self._note(WAIT, reason)
            self._waited += 1
            return still
        if self.action is None:
            self._follow_plan()
        else:
            self._do_something_else(UNSEEN, f"{self.action} names an object that is not seen")
        control = self._usual()
        if control is None and self._failure is None:  # what it does instead is not seen either
            self._stop(UNSEEN, f"{self.action} names an object that is not seen")
        return control

    def _follow_plan(self) -> None:
        """Plan from here; the second time from the same state, the plan is followed to its end.

        Rules that lead back to where none of them applies would else do so for ever.
        """
        from bilevel.planning.planners import PlanGuide  # which most policies never need

        here = self.state, self.goal
        self._committed = here in self._plans
        if not self._committed:
            self._plans[here] = self._plan()
        self._guide = PlanGuide(self._rules.domain, self._plans[here])
        self.action = self._guide.choose(self.state)
        if self.action is None:
            self._guide = None
            self._stop(NO_RULE, "the goal holds" if self.goal <= self.state else self._no_plan)
        else:
            self._note(PLAN, NO_RULE)
            self._enter()

    def _plan(self) -> tuple[Action, ...]:
        """A plan for the present state, or nothing. It counts on nature being kind: if not, there is another one."""
        from bilevel.planning.planner import Effort, NoModel
        from bilevel.planning.search import search_until

        domain = self._rules.domain
        if not self._recovery.plan:
            return ()
        problem = Problem("at-hand", domain.name, self._rules.objects, self.state, self.goal)
        try:
            found = search_until(Effort(self._recovery.plan), domain, problem, BREADTH_FIRST_STATES)
        except NoModel:
            return ()
        return found.plan or ()

    @property
    def _no_plan(self) -> str:
        return "no rule applies" + (", and there is no plan from here" if self._recovery.plan else "")

    # Jams

    def _loosened(self, scene: Scene, control: Control) -> Control:
        """Return the control, with a push where nothing has moved for some steps although it should have.

        Where a world refuses a movement that would collide, what is seen stays the same, and so does the control of
        a network without memory: for ever.
        """
        if self._jam.look(scene) >= self._recovery.nudge and not self._nudge.left:
            self._jam.reset()
            if not self._body.is_still(control):
                self._nudges += 1
                self._nudge.burst(min(self._nudges, LONGEST_NUDGE))
                if self._nudges == 1:
                    self._note(NUDGE, JAM)
        return self._nudge(control) if self._nudge.left else control

    # Stalls

    def _stalled(self) -> None:
        """Nothing has come of the action for too long: try again from somewhere else, or do something else."""
        action = self.action
        assert action is not None
        if self._retries[action] < self._recovery.retry:
            self._retries[action] += 1
            self._pushes = self._retries[action] * BACK_OFF_STEPS
            self._note(RETRY, STALL)
            self._watch.forgive(self._step)
        else:
            steps = self._watch.patience(action.name)
            self._do_something_else(
                STALL, f"nothing came of {action} in {steps} steps; retries: {self._retries[action]}"
            )

    def _do_something_else(self, reason: str, detail: str) -> None:
        """Avoid the present action from now on, as long as there are others."""
        assert self.action is not None
        others = sum(incident.kind == OTHER for incident in self.incidents)
        self._avoided.add(self.action)
        other = self._alternative() if others < self._recovery.other else None
        if other is None:
            self._stop(reason, detail)
            return
        self.action, self._guide = other, None
        self._note(OTHER, reason)
        self._enter()
