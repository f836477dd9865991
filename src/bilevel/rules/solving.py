"""Solve a problem by its rules alone: choose, act, until the goal holds or there is a reason to stop."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bilevel.rules.commitment import CommittedChoice, Values, getter
from bilevel.rules.engine import RuleEngine, is_safe
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Facts, Outcome, Problem
from bilevel.symbolic.pddl_problem import no_garbage_collection
from bilevel.symbolic.plans import Nature, NaturesMove, Plan
from bilevel.symbolic.semantics import bind_outcome, ground


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
        return self.stop is Stop.SOLVED


def default_bound(problem: Problem) -> int:
    """Return far more steps than any sensible policy needs, so that every run ends."""
    return 10_000 + 1_000 * len(problem.goal)


def solve(
    domain: Domain,
    problem: Problem,
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
        return _Run(domain, problem, rules, random.Random(seed), commit).until(bound)


PATIENCE = 10_000  # steps without a new low of open goals and without nature's doing, before circles are looked for


class _Run:
    """One rollout: the engine, nature, and per rule how to get from an instance to the action and the goal."""

    def __init__(
        self, domain: Domain, problem: Problem, rules: Sequence[Rule], rng: random.Random, commit: bool
    ) -> None:
        self.domain = domain
        self.problem = problem
        self.nature = Nature(domain, problem.all_objects(domain), rng)
        self.engine = RuleEngine(rules, domain, problem.state, problem.goal, self.nature.objects, commit=commit)
        self.rules = self.engine.rules
        self.names = [rule.action.name for rule in self.rules]
        self.schemas = [domain.schemas[rule.action.name] for rule in self.rules]
        self.arguments = [getter(rule, rule.action.arguments) for rule in self.rules]
        self.safe = [is_safe(rule, domain) for rule in self.rules]
        self.appliers = [
            self.engine.applier(schema, 0) if schema.is_deterministic and safe else None
            for schema, safe in zip(self.schemas, self.safe, strict=True)
        ]
        self.committed = CommittedChoice(self.engine) if commit else None
        self.choose = self.committed or self.engine.choose
        self.actions: list[Action] = []
        self.moves: dict[int, NaturesMove] = {}

    def until(self, bound: int) -> Solution:
        """Run at full speed; once there has been no progress for a while, run looking for circles."""
        fewest, since = self.engine.open_goals(), 0
        while len(self.actions) < bound:
            if len(self.actions) - since >= PATIENCE:
                stop = self._advance_looking_for_circles(bound)
            else:
                stop = self._advance(min(bound, len(self.actions) + 1000))
            if stop is not None:
                return stop
            if self.engine.open_goals() < fewest:
                fewest, since = self.engine.open_goals(), len(self.actions)
            since = max(since, next(reversed(self.moves), 0))
        return self._stopped(Stop.STEP_BOUND if self.engine.open_goals() else Stop.SOLVED)

    def _advance(self, bound: int) -> Solution | None:
        """Act until there are `bound` actions or a reason to stop."""
        choose, arguments_of, appliers, names = self.choose, self.arguments, self.appliers, self.names
        actions, open_goals = self.actions, self.engine.open_goals
        goals_end_it = all(rule.goal_condition for rule in self.rules)
        while len(actions) < bound:
            if not goals_end_it and not open_goals():
                return self._stopped(Stop.SOLVED)
            found = choose()
            if found is None:
                return self._stopped(Stop.NO_RULE if open_goals() else Stop.SOLVED)
            rule, values = found
            arguments = arguments_of[rule](values)
            action = Action(names[rule], arguments)
            apply = appliers[rule]
            if apply is not None:
                apply(*arguments)
            elif not self._act(rule, arguments):
                return self._stopped(Stop.NOT_APPLICABLE, str(action))
            actions.append(action)
        return None

    def _advance_looking_for_circles(self, bound: int) -> Solution | None:
        """Act step by step, looking for a state that comes back without nature's doing.

        Brent's way of finding a cycle: compare with one marked state, and mark anew after twice as many steps. States
        are compared by a hash that changes with each fact that comes or goes.
        """
        state = set(final_state(self.domain, self.problem, Plan(self.actions, self.moves))[0])
        fingerprint, mark, patience = 0, len(self.actions), 1
        marked = fingerprint, self._aim
        while len(self.actions) < bound:
            stop = self._advance(len(self.actions) + 1)
            if stop is not None:
                return stop
            step = len(self.actions)
            outcome = _outcome(self.domain, self.actions[-1], self.moves.get(step - 1))
            for fact in (outcome.delete - outcome.add) & state | outcome.add - state:
                fingerprint ^= hash(fact)
            state -= outcome.delete
            state |= outcome.add
            here = fingerprint, self._aim
            if here == marked and next(reversed(self.moves), -1) < mark:
                return self._stopped(Stop.LOOP, f"the state after step {mark} came back after step {step}")
            if step - mark == patience:
                mark, marked, patience = step, here, 2 * patience
        return None

    @property
    def _aim(self) -> object:
        """The goal that is being served, if the policy commits to one."""
        return self.committed.goal if self.committed else None

    def _act(self, rule: int, arguments: Values) -> bool:
        """Apply an action that may not be applicable or may have several outcomes."""
        schema = self.schemas[rule]
        if not self.safe[rule]:
            action = ground(schema, arguments)
            holds = self.engine.holds
            if action is None or not all(map(holds, action.condition.positive)):
                return False
            if any(holds(fact) for fact in action.condition.negative if fact.predicate != EQUALITY):
                return False
        if schema.is_deterministic:
            self.engine.applier(schema, 0)(*arguments)
            return True
        move = self.nature.move(schema)
        outcome = schema.outcomes[move.outcome]
        for variable in outcome.chosen:
            self.engine.declare(move.binding[variable.name], variable.type)
        self.engine.applier(schema, move.outcome)(*arguments, *move.binding.values())
        self.moves[len(self.actions)] = move
        return True

    def _stopped(self, stop: Stop, detail: str = "") -> Solution:
        return Solution(stop, Plan(self.actions, self.moves), self.engine.open_goals(), detail)


def final_state(domain: Domain, problem: Problem, plan: Plan) -> tuple[Facts, dict[str, str]]:
    """Return the state after a plan and the objects there are by then."""
    state: set[Atom] = set(problem.state)
    objects = problem.all_objects(domain)
    for step, action in enumerate(plan.actions):
        move = plan.moves.get(step)
        if move is not None:
            chosen = domain.schemas[action.name].outcomes[move.outcome].chosen
            objects |= {move.binding[v.name]: v.type for v in chosen if move.binding[v.name] not in objects}
        outcome = _outcome(domain, action, move)
        state -= outcome.delete
        state |= outcome.add
    return frozenset(state), objects


def _outcome(domain: Domain, action: Action, move: NaturesMove | None) -> Outcome:
    """Return what an action changes, given what nature did where there was a choice."""
    schema = domain.schemas[action.name]
    binding = dict(zip((p.name for p in schema.parameters), action.arguments, strict=True))
    if move is None:
        return bind_outcome(schema.outcomes[0], binding)
    return bind_outcome(schema.outcomes[move.outcome], {**binding, **move.binding})
