"""Solve a problem by its rules alone: choose, act, until the goal holds or there is a reason to stop."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bilevel.native import find
from bilevel.rules.engine import RuleEngine, is_safe
from bilevel.rules.engine.executor import ExecutorStatus
from bilevel.rules.engine.objects import COMPILED
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Facts, Outcome, Problem, Schema
from bilevel.symbolic.packed import PackedProblem, no_garbage_collection
from bilevel.symbolic.plans import Nature, NaturesMove, Plan
from bilevel.symbolic.semantics import bind_outcome, ground

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
        if isinstance(problem, PackedProblem) and find(COMPILED):
            engine = RuleEngine.of_problem(rules, domain, problem, commit)
        else:
            task = unpacked(problem)
            engine = RuleEngine(rules, domain, task.state, task.goal, task.all_objects(domain), commit=commit)
        return _Rollout(engine, nature).until(bound)


class _Rollout:
    """One rollout: the engine, nature, and what she did."""

    def __init__(self, engine: RuleEngine, nature: Nature) -> None:
        self.engine, self.nature = engine, nature
        self.moves: dict[int, NaturesMove] = {}
        self._unsafe = {place for place, rule in enumerate(engine.rules) if not is_safe(rule, engine.domain)}

    def until(self, bound: int) -> Solution:
        """Run at full speed; once there was no progress for long, look for a state that comes back.

        Brent's way of finding a cycle: compare with one marked state, and mark anew after twice as many steps. States
        are compared by a hash that changes with each fact that comes or goes, and is about the goal or asked about by
        a rule: nothing else has to do with what the rules will do.
        """
        engine = self.engine
        fewest, since = engine.open_goals(), 0  # and after which step there was progress
        marked: tuple[int, int] | None = None  # after which step, and the hash
        patience = 1  # steps
        while engine.steps < bound:
            if marked is None and engine.steps - since >= PATIENCE:
                marked = engine.steps, engine.fingerprint()
            stop = self._advance(min(bound, engine.steps + (1000 if marked is None else 1)))
            if stop is not None:
                return stop
            if engine.open_goals() < fewest:
                fewest, since = engine.open_goals(), engine.steps
            last_move = next(reversed(self.moves), -1)
            since = max(since, last_move)
            if marked is not None:
                mark, fingerprint = marked
                if engine.fingerprint() == fingerprint and last_move < mark:
                    detail = f"to the rules the state after step {mark} came back after step {engine.steps}"
                    return self._stopped(Stop.LOOP, detail)
                if engine.steps - mark >= patience:
                    marked, patience = (engine.steps, engine.fingerprint()), 2 * patience
        return self._stopped(Stop.STEP_BOUND if engine.open_goals() else Stop.SOLVED)

    def _advance(self, bound: int) -> Solution | None:
        """Act until there are `bound` actions or a reason to stop; what may fail or needs nature is done one by one."""
        while (status := self.engine.run(bound)) != ExecutorStatus.DONE:
            if status != ExecutorStatus.FOUND:
                return self._stopped(Stop.NO_RULE if self.engine.open_goals() else Stop.SOLVED)
            place, arguments = self.engine.chosen()
            schema = self.engine.domain.schemas[self.engine.rules[place].action.name]
            if place in self._unsafe and not self._is_applicable(schema, arguments):
                return self._stopped(Stop.NOT_APPLICABLE, str(Action(schema.name, arguments)))
            outcome, chosen = 0, NO_CHOICE
            if not schema.is_deterministic:
                outcome, chosen = self.moves[self.engine.steps] = self.nature.move(schema)
                kinds = {chosen[variable.name]: variable.type for variable in schema.outcomes[outcome].chosen}
                self.engine.declare(kinds)
            self.engine.apply(schema, outcome, (*arguments, *chosen.values()))
        return None

    def _is_applicable(self, schema: Schema, arguments: tuple[str, ...]) -> bool:
        action, holds = ground(schema, arguments), self.engine.holds
        if action is None or not all(map(holds, action.condition.positive)):
            return False
        return not any(holds(fact) for fact in action.condition.negative if fact.predicate != EQUALITY)

    def _stopped(self, stop: Stop, detail: str = "") -> Solution:
        """Return the solution so far, which ends for this reason."""
        return Solution(stop, Plan(self.engine.actions(), self.moves), self.engine.open_goals(), detail)


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
