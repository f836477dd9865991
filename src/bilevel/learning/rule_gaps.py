"""Where the rules of a policy had nothing to say, and what was done from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bilevel.rules.traces import Trace, segments, traces_from_states
from bilevel.symbolic.domain import Action, Domain, Facts, Problem


@dataclass(frozen=True, slots=True)
class Decision:
    """What was to be done at a timestep; `asked` says that no rule applied, and a teacher was asked."""

    state: Facts
    goal: Facts
    objects: Mapping[str, str]
    action: Action
    asked: bool


@dataclass(frozen=True)
class RuleGaps:
    """The timesteps of rollouts at which no rule applied, as problems, and the traces of what was done from there."""

    problems: tuple[Problem, ...] = ()
    traces: tuple[Trace, ...] = ()

    def __add__(self, other: RuleGaps) -> RuleGaps:
        return RuleGaps(self.problems + other.problems, self.traces + other.traces)

    def to_json(self) -> str:
        """Return the gaps as text; the same gaps give the same text."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @staticmethod
    def from_json(text: str) -> RuleGaps:
        """Return the gaps of a text; none where there is none."""
        return msgspec.json.decode(text, type=RuleGaps) if text else RuleGaps()


def find_gaps(domain: Domain, decisions: Sequence[Decision], state: Facts, goal: Facts) -> RuleGaps:
    """Return the gaps of an episode from what was decided at each timestep; `state` and `goal` are those at its end."""
    problems: dict[tuple[Facts, Facts], Problem] = {}
    traces: list[Trace] = []
    for start, decision in enumerate(decisions):
        if decision.asked and not (start and decisions[start - 1] == decision):
            unruled = Problem("no-rule", domain.name, decision.objects, decision.state, decision.goal)
            problems.setdefault((decision.state, decision.goal), unruled)
            traces += _trace_to_a_goal(domain, decisions[start:], state, goal)
    return RuleGaps(tuple(problems.values()), tuple(traces))


def _trace_to_a_goal(domain: Domain, decisions: Sequence[Decision], state: Facts, goal: Facts) -> Iterator[Trace]:
    """Yield what was done from the first of the decisions up to the first goal that it achieved, if there was one.

    Only what was decided counts: a block that slips out of the hand looks as if it had been put aside.
    """
    states = [*(decision.state for decision in decisions), state]
    goals = [*(decision.goal for decision in decisions), goal]
    objects = {name: kind for decision in decisions for name, kind in decision.objects.items()}
    explained = traces_from_states(domain, states, goals, objects).actions
    done = len(decisions)
    for index, decision in enumerate(decisions):
        begins = explained[index] != (explained[index - 1] if index else None)
        if begins and explained[index] not in (None, decision.action):
            done = index
            break
    for trace in traces_from_states(domain, states[: done + 1], goals[: done + 1], objects).traces[:1]:
        if trace.steps[0].state == states[0]:
            for _, steps in segments(trace):
                yield Trace(steps, trace.objects)
                return
