"""Solve a problem by its rules alone: choose, act, until the goal holds or there is a reason to stop."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bilevel.compiled import find
from bilevel.rules.engine import RuleEngine, is_safe
from bilevel.rules.engine.executor import ExecutorStatus
from bilevel.rules.engine.objects import COMPILED
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Facts, Outcome, Problem
from bilevel.symbolic.packed import PackedProblem, no_garbage_collection
from bilevel.symbolic.plans import Nature, NaturesMove, Plan
from bilevel.symbolic.semantics import bind_outcome, ground

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

    def until(self, bound: int) -> Solution:
        """Run at full speed; once there has been no progress for a while, run looking for circles."""
        fewest, since = self.engine.open_goals(), 0
        while self.engine.steps < bound:
            if self.engine.steps - since >= PATIENCE:
                stop = self._advance_looking_for_circles(bound)
            else:
                stop = self._advance(min(bound, self.engine.steps + 1000))
            if stop is not None:
                return stop
            if self.engine.open_goals() < fewest:
                fewest, since = self.engine.open_goals(), self.engine.steps
            since = max(since, self._last_move)
        return self._stopped(Stop.STEP_BOUND if self.engine.open_goals() else Stop.SOLVED)

    def _advance(self, bound: int) -> Solution | None:
        """Act until there are `bound` actions or a reason to stop; what may fail or needs nature is done one by one."""
        while (status := self.engine.run(bound)) != ExecutorStatus.DONE:
            if status != ExecutorStatus.FOUND:
                return self._stopped(Stop.NO_RULE if self.engine.open_goals() else Stop.SOLVED)
            rule, arguments = self.engine.chosen()
            action = self.engine.rules[rule].action
            if not self._act(self.engine.rules[rule], arguments):
                return self._stopped(Stop.NOT_APPLICABLE, str(Action(action.name, arguments)))
        return None

    def _act(self, rule: Rule, arguments: tuple[str, ...]) -> bool:
        """Do an action unless it is not applicable; return whether it is."""
        schema, holds = self.engine.domain.schemas[rule.action.name], self.engine.holds
        if not is_safe(rule, self.engine.domain):
            action = ground(schema, arguments)
            if action is None or not all(map(holds, action.condition.positive)):
                return False
            if any(holds(fact) for fact in action.condition.negative if fact.predicate != EQUALITY):
                return False
        if schema.is_deterministic:
            self.engine.apply(schema, 0, arguments)
            return True
        move = self.moves[self.engine.steps] = self.nature.move(schema)
        chosen = schema.outcomes[move.outcome].chosen
        self.engine.declare({move.binding[variable.name]: variable.type for variable in chosen})
        self.engine.apply(schema, move.outcome, (*arguments, *move.binding.values()))
        return True

    def _advance_looking_for_circles(self, bound: int) -> Solution | None:
        """Act likewise, looking for a state that comes back without nature's doing.

        Brent's way of finding a cycle: compare with one marked state, and mark anew after twice as many steps. States
        are compared by a hash that changes with each fact that comes or goes, and is about the goal or asked about by
        a rule: nothing else has to do with what the rules will do.
        """
        engine = self.engine
        mark, marked, patience = engine.steps, engine.fingerprint(), 1
        while engine.steps < bound:
            stop = self._advance(engine.steps + 1)
            if stop is not None:
                return stop
            here = engine.fingerprint()
            if here == marked and self._last_move < mark:
                detail = f"to the rules the state after step {mark} came back after step {engine.steps}"
                return self._stopped(Stop.LOOP, detail)
            if engine.steps - mark == patience:
                mark, marked, patience = engine.steps, here, 2 * patience
        return None

    @property
    def _last_move(self) -> int:
        """The last step with which nature had to do."""
        return next(reversed(self.moves), -1)

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
