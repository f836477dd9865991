"""Solve a problem by its rules alone: choose, act, until the goal holds or there is a reason to stop."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bilevel.rules.engine import RuleEngine
from bilevel.rules.engine.executor import ExecutorStatus
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Outcome, Problem
from bilevel.symbolic.packed import PackedProblem, no_garbage_collection
from bilevel.symbolic.plans import Nature, NaturesMove, Plan
from bilevel.symbolic.semantics import bind_outcome

NO_CHOICE: Mapping[str, str] = {}  # of nature's
PATIENCE = 10_000  # steps without a new low of open goals and without nature's doing, before circles are looked for


class Stop(Enum):
    """Why a run ended."""

    SOLVED = "solved"
    NO_RULE = "no rule applies"
    STEP_BOUND = "the bound on steps is reached"
    LOOP = "going round in circles"
    NOT_APPLICABLE = "a rule chose an action that cannot be done"


@dataclass(frozen=True)
class Solution:
    """What was done, why it ended, and the goals left open; `detail` says more where there is more to say."""

    stop: Stop
    plan: Plan
    open_goals: int
    detail: str = ""

    @property
    def is_solved(self) -> bool:
        """Whether the goal was reached."""
        return self.stop is Stop.SOLVED


def default_bound(problem: Problem | PackedProblem) -> int:
    """Return far more steps than any sensible policy needs, so that every run ends."""
    goal = problem.goal
    goals = sum(rows.size for rows in goal.values()) if isinstance(goal, Mapping) else len(goal)
    return 10_000 + 1_000 * goals


def solve(
    domain: Domain,
    problem: Problem | PackedProblem,
    rules: Sequence[Rule],
    *,
    seed: int = 0,
    max_steps: int | None = None,
    commit: bool = True,
) -> Solution:
    """Follow the rules from the problem's initial state.

    With `commit` the goal fact that the last rule served is served until it holds or no rule serves it any more; that
    finishes problems whose goals undo each other, where the memoryless policy would run in circles.
    """
    bound = default_bound(problem) if max_steps is None else max_steps
    with no_garbage_collection():
        nature = Nature(domain, {} if domain.is_deterministic else problem.all_objects(domain), random.Random(seed))
        return _Rollout(RuleEngine(rules, domain, problem, commit=commit), nature).until(bound)


class _Rollout:
    """One rollout: the engine, nature, and what she did."""

    def __init__(self, engine: RuleEngine, nature: Nature) -> None:
        self.engine, self.nature = engine, nature
        self.moves: dict[int, NaturesMove] = {}

    def until(self, bound: int) -> Solution:
        """Run at full speed; once there was no progress for long, look for a state that comes back.

        Brent's way of finding a cycle: compare with one marked state, and mark anew after twice as many steps. The
        engine keeps the differences, in facts about the goal or that a rule asks about: nothing else has to do with
        what the rules will do.
        """
        engine = self.engine
        fewest, since = engine.open_goals, 0  # and after which step there was progress
        marked: int | None = None  # after which step
        patience = 1  # steps
        while engine.steps < bound:
            if marked is None and engine.steps - since >= PATIENCE:
                marked = engine.steps
                engine.mark()
            stop = self._advance(min(bound, engine.steps + (1000 if marked is None else 1)))
            if stop is not None:
                return stop
            if engine.open_goals < fewest:
                fewest, since = engine.open_goals, engine.steps
            last_move = next(reversed(self.moves), -1)
            since = max(since, last_move)
            if marked is not None:
                if not engine.differences and last_move < marked:
                    detail = f"to the rules the state after step {marked} came back after step {engine.steps}"
                    return self._stopped(Stop.LOOP, detail)
                if engine.steps - marked >= patience:
                    marked, patience = engine.steps, 2 * patience
                    engine.mark()
        return self._stopped(Stop.STEP_BOUND if engine.open_goals else Stop.SOLVED)

    def _advance(self, bound: int) -> Solution | None:
        """Act until there are `bound` actions or a reason to stop; what may fail or needs nature is done one by one."""
        while (status := self.engine.run(bound)) != ExecutorStatus.DONE:
            if status != ExecutorStatus.FOUND:
                return self._stopped(Stop.NO_RULE if self.engine.open_goals else Stop.SOLVED)
            action = self.engine.action
            schema = self.engine.domain.schemas[action.name]
            if not self.engine.is_applicable():
                return self._stopped(Stop.NOT_APPLICABLE, str(action))
            outcome, chosen = 0, NO_CHOICE
            if not schema.is_deterministic:
                outcome, chosen = self.moves[self.engine.steps] = self.nature.move(schema)
                kinds = {chosen[variable.name]: variable.type for variable in schema.outcomes[outcome].chosen}
                self.engine.declare(kinds)
            self.engine.apply(schema, outcome, (*action.arguments, *chosen.values()))
        return None

    def _stopped(self, stop: Stop, detail: str = "") -> Solution:
        """Return the solution so far, which ends for this reason."""
        return Solution(stop, Plan(self.engine.actions(), self.moves), self.engine.open_goals, detail)


def unpacked(problem: Problem | PackedProblem) -> Problem:
    """Return the problem as facts, whichever way it is kept."""
    return problem.unpacked if isinstance(problem, PackedProblem) else problem


def final_state(domain: Domain, problem: Problem, plan: Plan) -> tuple[Facts, dict[str, str]]:
    """Return the state after a plan and the objects there are by then."""
    state: set[Atom] = set(problem.state)
    objects = problem.all_objects(domain)
    for step, action in enumerate(plan.actions):
        move = plan.moves.get(step)
        if move is not None:
            chosen = domain.schemas[action.name].outcomes[move.outcome].chosen
            objects |= {move.binding[v.name]: v.type for v in chosen if move.binding[v.name] not in objects}
        outcome = outcome_of(domain, action, move)
        state -= outcome.delete
        state |= outcome.add
    return frozenset(state), objects


def outcome_of(domain: Domain, action: Action, move: NaturesMove | None) -> Outcome:
    """Return what an action changes, given what nature did where there was a choice."""
    schema = domain.schemas[action.name]
    binding = dict(zip((p.name for p in schema.parameters), action.arguments, strict=True))
    if move is None:
        return bind_outcome(schema.outcomes[0], binding)
    return bind_outcome(schema.outcomes[move.outcome], {**binding, **move.binding})
