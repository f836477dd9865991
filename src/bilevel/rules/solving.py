"""Solve a problem by its rules alone: choose, act, until the goal holds or there is a reason to stop."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bilevel.rules.engine import RuleEngine, effects_of
from bilevel.rules.engine.executor import ExecutorStatus
from bilevel.rules.rule import Rule
from bilevel.symbolic.axioms import close
from bilevel.symbolic.domain import Atom, Domain, Facts, Problem
from bilevel.symbolic.packed import PackedProblem, no_garbage_collection
from bilevel.symbolic.plans import Nature, NaturesMove, Plan

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
        nature = Nature(
            domain, {} if domain.is_deterministic else {**domain.constants, **problem.objects}, random.Random(seed)
        )
        engine, moves = RuleEngine(rules, domain, problem, commit=commit), dict[int, NaturesMove]()
        stop, detail = _run(engine, nature, moves, bound)
        return Solution(stop, Plan(engine.actions(), moves), engine.executor.open_goals, detail)


def _run(engine: RuleEngine, nature: Nature, moves: dict[int, NaturesMove], bound: int) -> tuple[Stop, str]:
    """Run at full speed; once there was no progress for long, look for a state that comes back.

    Brent's way of finding a cycle: compare with one marked state, and mark anew after twice as many steps. Only what a
    rule asks about and the goals are compared: nothing else has to do with what the rules will do. What may fail or
    needs nature is done one by one.
    """
    step, fewest, since, last_move = 0, engine.executor.open_goals, 0, -1  # the last progress, and what nature did last
    marked: int | None = None  # after which step
    patience = 1
    while step < bound:
        if marked is None and step - max(since, last_move) >= PATIENCE:
            marked = step
            engine.mark()
        status = engine.run(min(bound, step + (1000 if marked is None else 1)))
        step = engine.executor.steps
        if status == ExecutorStatus.NO_RULE:
            return Stop.NO_RULE if engine.executor.open_goals else Stop.SOLVED, ""
        if status == ExecutorStatus.FOUND:
            action, move = engine.action, None
            if not engine.is_applicable():
                return Stop.NOT_APPLICABLE, str(action)
            schema = engine.domain.schemas[action.name]
            if not schema.is_deterministic:
                known, last_move = len(nature.objects), step
                move = moves[step] = nature.move(schema)
                if len(nature.objects) > known:
                    engine.declare({move.binding[v.name]: v.type for v in schema.outcomes[move.outcome].chosen})
            engine.apply(*effects_of(engine.domain, action, move))
            step += 1
        if engine.executor.open_goals < fewest:
            fewest, since = engine.executor.open_goals, step
        if marked is not None:
            if engine.is_back and last_move < marked:
                return Stop.LOOP, f"to the rules the state after step {marked} came back after step {step}"
            if step - marked >= patience:
                marked, patience = step, 2 * patience
                engine.mark()
    return Stop.STEP_BOUND if engine.executor.open_goals else Stop.SOLVED, ""


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
        added, deleted = effects_of(domain, action, move)
        state -= deleted
        state |= added
    return close(frozenset(state), domain, objects), objects
