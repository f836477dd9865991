"""What a policy does in one episode, and why: in words while it acts, in pictures, and where it fails, in the end."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bilevel.contact_sheet import PICTURES, Tile, contact_sheet, thinned
from bilevel.experiments.evaluation import Run
from bilevel.policies.changes import UNEXPECTED, Change, find_changes
from bilevel.policies.chronicle import Chronicle
from bilevel.policies.policies import BilevelPolicy, WatchedPolicy
from bilevel.policies.rollout import NO_ACTION, Moment
from bilevel.rules.explanation.formats import explain_match
from bilevel.rules.explanation.why_not import why_not
from bilevel.rules.matching import Match
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import NO_FACTS, Action, Domain, Facts
from bilevel.tabletop.tabletop import UNSTABLE, Tabletop
from bilevel.video import Video

DRAWN = 2  # every so many steps, for a video: 80 steps are a second, and 40 pictures are enough
STEPS_PER_SECOND = 80
CAPTION = 70  # characters in a line of a sentence below a video
LINES_BELOW = 4  # for the action and its sentence
MOST_SHOTS = 1000  # kept while an episode goes on; so many that thinning them does not show
MOST_TOLD = 10  # unexpected changes

Say = Callable[[int, str], None]  # a step, and what there is to say about it, in one line or more

FAILURES = {
    "no rule": "it does not know what to do",
    "no model": "its planner cannot plan here",
    "no plan": "its planner found no plan",
    "plan broken": "what happened is not what it had planned for",
    "physics": "the simulation became unstable",
    "label": "its labels flicker: {flicker} changes of the state were undone at once",
    "stall": "it is stuck: nothing that it does has an effect any more",
    "drop": "it keeps losing what it holds or needs: {drop} times in this episode",
    "collision": "it keeps upsetting other things: {collision} times in this episode",
    "time": "it was still making progress when the time was up",
}
SURPRISES = {
    "drop": "a drop, which sets {action} back",
    "collision": "a collision: during {action} something else has changed",
    "flicker": "a flicker: during {action} the labels did not settle",
}


@dataclass(frozen=True)
class Decision:
    """From this step on, do this; for a policy that is asked why, and has rules, with the one that says so."""

    step: int
    action: Action
    match: Match | None = None

    @property
    def sentence(self) -> str | None:
        return explain_match(self.match) if self.match else None

    def reasons(self) -> list[str]:
        """The rule, what its variables stand for, and the sentence."""
        if self.match is None:
            return []
        binding = ", ".join(f"{variable} = {value}" for variable, value in sorted(self.match.binding.items()))
        return [f"rule {self.match.rule}", *([f"with {binding}"] if binding else []), explain_match(self.match)]

    def caption(self) -> str:
        return "\n".join([str(self.action), *textwrap.wrap(self.sentence or "", CAPTION)])

    def as_json(self) -> dict[str, object]:
        rule = str(self.match.rule) if self.match else None
        binding = dict(sorted(self.match.binding.items())) if self.match else None
        step, action = self.step, str(self.action)
        return {"step": step, "action": action, "rule": rule, "binding": binding, "sentence": self.sentence}


def rules_of(policy: WatchedPolicy) -> RulePolicy | None:
    """The rules that a policy follows, if it does."""
    high = policy.high if isinstance(policy, BilevelPolicy) else None
    return high if isinstance(high, RulePolicy) else None


class Narrator:
    """Watches a policy: keeps what it decides, and says it as soon as it is decided.

    Of a policy that does not say what it decides, as an end-to-end network, it says what changes.
    """

    def __init__(self, policy: WatchedPolicy, say: Say = lambda step, text: None, explain: bool = False) -> None:
        self._policy, self._say, self.explains = policy, say, explain and rules_of(policy) is not None
        self._chronicle = Chronicle(policy)
        self._seen = NO_FACTS
        self.decisions: list[Decision] = []

    def __call__(self, moment: Moment) -> None:
        step, action = self._chronicle.steps, self._policy.action
        self._chronicle(moment)
        for event in moment.info["events"]:
            self._say(step, f"({event})")
        if action is not None and not (self.decisions and self.decisions[-1].action == action):
            self.decisions.append(Decision(step, action, self._match()))
            self._say(step, "\n".join([str(action), *self.decisions[-1].reasons()]))
        if action is None and self._policy.state != self._seen:
            if self._seen:
                self._say(step, _difference(self._seen, self._policy.state))
            self._seen = self._policy.state

    @property
    def caption(self) -> str:
        """What is being done, if that is known."""
        return self.decisions[-1].caption() if self.decisions else ""

    def _match(self) -> Match | None:
        policy = self._policy
        if self.explains and isinstance(policy, BilevelPolicy) and isinstance(policy.high, RulePolicy):
            return policy.high.explain(policy.state, policy.goal)
        return None

    def surprises(self, domain: Domain) -> list[Change]:
        """The changes of the state so far that neither an action nor an event explains."""
        return [change for change in find_changes(domain, self._chronicle.runs(), {}) if change.kind in UNEXPECTED]

    def action_before(self, moment: int) -> str:
        """What was being done at the step that led to a moment."""
        known = (str(decision.action) for decision in reversed(self.decisions) if decision.step < moment)
        return next(known, "what it does")


def _difference(before: Facts, after: Facts) -> str:
    """The facts that are new, and those that are gone."""
    new, gone = (", ".join(map(str, sorted(facts))) for facts in (after - before, before - after))
    return "; ".join([*([new] if new else []), *([f"no longer {gone}"] if gone else [])])


def tell_surprises(narrator: Narrator, domain: Domain) -> list[str]:
    """A line for each of the first unexpected changes, and one for how many more there were."""
    found = narrator.surprises(domain)
    lines = []
    for change in found[:MOST_TOLD]:
        what = SURPRISES[change.kind].format(action=narrator.action_before(change.moment))
        lines.append(f"unexpected at step {change.moment}: {what}")
    more = len(found) - MOST_TOLD
    return [*lines, f"{more} more unexpected change{'s' if more > 1 else ''}"] if more > 0 else lines


def why_failed(run: Run, narrator: Narrator, policy: WatchedPolicy, environment: Tabletop) -> str | None:
    """Why an episode that has just ended did not succeed: a line, and where no rule applies, what each one lacks."""
    if run.reason is None:
        return None
    why = FAILURES[run.reason].format(**asdict(run.changes))
    if run.outcome == NO_ACTION and isinstance(policy, BilevelPolicy) and isinstance(policy.high, RulePolicy):
        _, info = environment.restore(environment.save())  # look again at what was seen last
        objects = {**policy.high.domain.constants, **info["objects"]}
        lacking = why_not(policy.high.rules, policy.high.domain, policy.state, policy.goal, objects)
        return "\n".join([f"{why}: no rule applies", *(f"  {line}" for line in lacking.splitlines())])
    if run.detail is not None:
        return f"{why}: {run.detail}"
    if not narrator.decisions:
        return why
    last = narrator.decisions[-1]
    return f"{why}; at last it did {last.action}, for {run.steps - last.step} steps"


# Pictures


@dataclass(frozen=True)
class Shot:
    """A moment to be drawn later."""

    step: int
    text: str
    snapshot: dict[str, Any]


class Camera:
    """Shows what is narrated: every second step in a video, and each decision, later, on a contact sheet."""

    def __init__(self, environment: Tabletop, narrator: Narrator, video: Video | None, sheet: bool = False) -> None:
        self._environment, self._narrator, self._video, self._sheet = environment, narrator, video, sheet
        self._lines_below = LINES_BELOW if narrator.explains else 0
        self._steps = 0
        self._shown = 0  # decisions
        self.shots: list[Shot] = []

    def __call__(self, moment: Moment) -> None:
        if self._sheet and self._shown < len(self._narrator.decisions):
            self._shown = len(self._narrator.decisions)
            self._shoot(str(self._narrator.decisions[-1].action))
        if self._video and self._steps % DRAWN == 0:
            self._video.add(self._environment.render(), self._narrator.caption, self._lines_below)
        self._steps += 1

    def end(self, outcome: str) -> None:
        """Show for a second how it ended."""
        if self._sheet and outcome != UNSTABLE:
            self._shoot(outcome)
        if self._video:
            picture = self._environment.render()
            for _ in range(STEPS_PER_SECOND // DRAWN):
                self._video.add(picture, outcome, self._lines_below)

    def _shoot(self, text: str) -> None:
        if len(self.shots) >= MOST_SHOTS:
            del self.shots[1::2]
        self.shots.append(Shot(self._steps, text, self._environment.save()))


def draw_sheet(environment: Tabletop, shots: Sequence[Shot], headline: str, details: str) -> bytes:
    """A PNG of some of the shots, drawn by an environment of the same kind, as well as it can."""
    tiles = []
    for shot in thinned(shots, PICTURES):
        environment.restore(shot.snapshot)
        tiles.append(Tile(environment.render(), f"step {shot.step}", shot.text))
    return contact_sheet(headline, details, tiles)
