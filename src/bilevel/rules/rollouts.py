"""Rollouts of rules on a problem: choose, act, until there is a reason to stop; step by step, or compiled."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from bilevel.rules.closures import closures_in
from bilevel.rules.commitment import CommittedChoice, Values, getter
from bilevel.rules.engine import is_safe
from bilevel.rules.engine.asked import in_order, relations_asked
from bilevel.rules.engine.compiled_executor import CompiledExecutor, Status
from bilevel.rules.engine.rule_engine import executor_for
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Facts, Outcome, Problem, Schema
from bilevel.symbolic.packed import PackedActions, PackedProblem
from bilevel.symbolic.plans import Nature, NaturesMove, Plan
from bilevel.symbolic.semantics import bind_outcome, ground

if TYPE_CHECKING:
    from bilevel.rules.engine import Executor

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


class Rollout(ABC):
    """One rollout: the engine, nature, and what has been done."""

    def __init__(self, domain: Domain, executor: Executor, nature: Nature) -> None:
        self.domain, self.engine, self.nature = domain, executor, nature
        self.rules = executor.rules
        self.schemas = [domain.schemas[rule.action.name] for rule in self.rules]
        self.safe = [is_safe(rule, domain) for rule in self.rules]
        self.moves: dict[int, NaturesMove] = {}

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many actions have been done."""

    @abstractmethod
    def actions(self) -> Sequence[Action]:
        """Return what has been done."""

    @abstractmethod
    def advance(self, bound: int) -> Solution | None:
        """Act until there are `bound` actions or a reason to stop."""

    @abstractmethod
    def advance_looking_for_circles(self, bound: int) -> Solution | None:
        """Act likewise, looking for a state that comes back without nature's doing.

        Brent's way of finding a cycle: compare with one marked state, and mark anew after twice as many steps. States
        are compared by a hash that changes with each fact that comes or goes, and is about the goal or asked about by
        a rule: nothing else has to do with what the rules will do.
        """

    def until(self, bound: int) -> Solution:
        """Run at full speed; once there has been no progress for a while, run looking for circles."""
        fewest, since = self.engine.open_goals(), 0
        while self.steps < bound:
            if self.steps - since >= PATIENCE:
                stop = self.advance_looking_for_circles(bound)
            else:
                stop = self.advance(min(bound, self.steps + 1000))
            if stop is not None:
                return stop
            if self.engine.open_goals() < fewest:
                fewest, since = self.engine.open_goals(), self.steps
            since = max(since, self.last_move)
        return self.stopped(Stop.STEP_BOUND if self.engine.open_goals() else Stop.SOLVED)

    @property
    def last_move(self) -> int:
        """The last step with which nature had to do."""
        return next(reversed(self.moves), -1)

    def act(self, rule: int, arguments: Values) -> bool:
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
        self.moves[self.steps] = move
        return True

    def stopped(self, stop: Stop, detail: str = "") -> Solution:
        """Return the solution so far, which ends for this reason."""
        return Solution(stop, Plan(self.actions(), self.moves), self.engine.open_goals(), detail)

    def circled(self, mark: int) -> Solution:
        """Return the solution so far, which ends since the state after step `mark` has come back."""
        detail = f"to the rules the state after step {mark} came back after step {self.steps}"
        return self.stopped(Stop.LOOP, detail)


class CompiledRollout(Rollout):
    """The executor runs by itself, but for what nature decides and for actions that must be tested first."""

    def __init__(self, domain: Domain, executor: CompiledExecutor, nature: Nature) -> None:
        super().__init__(domain, executor, nature)
        self.executor, self.it = executor, executor.it
        self._followers: dict[tuple[str, int], Callable[[Iterable[str]], int]] = {}

    @property
    def steps(self) -> int:
        count: int = self.it.steps
        return count

    def actions(self) -> Sequence[Action]:
        schemas, numbers = self.executor.actions()
        return PackedActions(self.domain, self.executor.objects.by_number(), schemas, numbers)

    def advance(self, bound: int) -> Solution | None:
        while True:
            status = self.it.run(bound)
            if self.executor.plan(status):
                continue
            if status == Status.DONE:
                return None
            if status in (Status.NO_RULE, Status.SOLVED):
                return self.stopped(Stop.SOLVED if status == Status.SOLVED else Stop.NO_RULE)
            if status == Status.FOUND and self.safe[self.it.chosen]:
                status = self._follow_nature(self.schemas[self.it.chosen])
            elif status == Status.FOUND:
                rule = self.it.chosen
                arguments = tuple(self.executor.objects.names[number] for number in self.it.arguments)
                if not self.act(rule, arguments):
                    return self.stopped(Stop.NOT_APPLICABLE, str(Action(self.rules[rule].action.name, arguments)))
                status = self.it.note_done(self.last_move)
            if status == Status.LOOP:
                return self.circled(self.it.marked_step)

    def _follow_nature(self, schema: Schema) -> int:
        move = self.nature.move(schema)
        follow = self._followers.get((schema.name, move.outcome))
        if follow is None:
            follow = self._followers[schema.name, move.outcome] = self.executor.follower(schema, move.outcome)
        self.moves[self.steps] = move
        return follow(move.binding.values())

    def advance_looking_for_circles(self, bound: int) -> Solution | None:
        self.it.watch()
        return self.advance(bound)


class WrittenRollout(Rollout):
    """Step by step in Python."""

    def __init__(self, domain: Domain, problem: Problem, executor: Executor, nature: Nature, commit: bool) -> None:
        super().__init__(domain, executor, nature)
        self.problem = problem
        self.names = [rule.action.name for rule in self.rules]
        self.arguments = [getter(rule, rule.action.arguments) for rule in self.rules]
        self.appliers = [
            self.engine.applier(schema, 0) if schema.is_deterministic and safe else None
            for schema, safe in zip(self.schemas, self.safe, strict=True)
        ]
        self.committed = CommittedChoice(self.engine) if commit else None
        self.choose = self.committed or self.engine.choose
        self.done: list[Action] = []

    @property
    def steps(self) -> int:
        return len(self.done)

    def actions(self) -> Sequence[Action]:
        return self.done

    def advance(self, bound: int) -> Solution | None:
        choose, arguments_of, appliers, names = self.choose, self.arguments, self.appliers, self.names
        done, open_goals = self.done, self.engine.open_goals
        goals_end_it = all(rule.goal_condition for rule in self.rules)
        while len(done) < bound:
            if not goals_end_it and not open_goals():
                return self.stopped(Stop.SOLVED)
            found = choose()
            if found is None:
                return self.stopped(Stop.NO_RULE if open_goals() else Stop.SOLVED)
            rule, values = found
            arguments = arguments_of[rule](values)
            action = Action(names[rule], arguments)
            apply = appliers[rule]
            if apply is not None:
                apply(*arguments)
            elif not self.act(rule, arguments):
                return self.stopped(Stop.NOT_APPLICABLE, str(action))
            done.append(action)
        return None

    def advance_looking_for_circles(self, bound: int) -> Solution | None:
        state = set(final_state(self.domain, self.problem, Plan(self.done, self.moves))[0])
        asked = {relation.name for relation in relations_asked(self.rules, self.domain) if relation.kind == "state"}
        asked |= closures_in(self.rules, self.domain)
        fingerprint, mark, patience = 0, self.steps, 1
        marked = fingerprint, self._aim
        while self.steps < bound:
            stop = self.advance(self.steps + 1)
            if stop is not None:
                return stop
            outcome = outcome_of(self.domain, self.done[-1], self.moves.get(self.steps - 1))
            for fact in (outcome.delete - outcome.add) & state | outcome.add - state:
                if fact.predicate in asked or fact in self.problem.goal:
                    fingerprint ^= hash(fact)
            state -= outcome.delete
            state |= outcome.add
            here = fingerprint, self._aim
            if here == marked and self.last_move < mark:
                return self.circled(mark)
            if self.steps - mark == patience:
                mark, marked, patience = self.steps, here, 2 * patience
        return None

    @property
    def _aim(self) -> object:
        """The goal that is being served, if the policy commits to one."""
        return self.committed.goal if self.committed else None


def compiled_rollout(
    domain: Domain, problem: Problem | PackedProblem, rules: Sequence[Rule], rng: random.Random, commit: bool
) -> Rollout:
    """Return a compiled rollout, which raises `RuleExplodes` if it gets to a rule that does."""
    nature = Nature(domain, {} if domain.is_deterministic else problem.all_objects(domain), rng)
    if isinstance(problem, PackedProblem):
        executor = CompiledExecutor.of_packed(in_order(rules), domain, problem, commit)
    else:
        objects = problem.all_objects(domain)
        executor = CompiledExecutor.of_facts(in_order(rules), domain, problem.state, problem.goal, objects, commit)
    executor.refuses_explosions = True
    return CompiledRollout(domain, executor, nature)


def rollout(
    domain: Domain, problem: Problem | PackedProblem, rules: Sequence[Rule], rng: random.Random, commit: bool
) -> Rollout:
    """Return a rollout step by step, in which rules that explode are searched."""
    task = unpacked(problem)
    nature = Nature(domain, task.all_objects(domain), rng)
    executor = executor_for(in_order(rules), domain, task.state, task.goal, nature.objects, commit)
    return WrittenRollout(domain, task, executor, nature, commit)


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
