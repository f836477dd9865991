"""The last stage of learning rules: complete those of the demonstrations, for what nobody has shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bilevel.learning.rule_gaps import RuleGaps
from bilevel.planning.planners import bounded_plan
from bilevel.rules.completion import complete_rules
from bilevel.rules.completion.completer import Callback
from bilevel.rules.learning import extend_rules
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Domain, Facts, Problem

MAX_STATES = 600  # of a small problem; larger ones are left to chance
BUDGET = 3_000_000
RANDOM_PROBLEMS = 20
MOST_SEEDS = 4


@dataclass(frozen=True)
class LearnedRules:
    """Rules, the first `shown` of them from demonstrations, and what completing them has proved, if it was done."""

    rules: tuple[Rule, ...]
    shown: int
    commit: bool = False
    statement: str = ""


class RuleLearner:
    """Completes the rules of the demonstrations, and again with what a rollout has met, which the seeds are like."""

    def __init__(
        self,
        shown: tuple[Rule, ...],
        domain: Domain,
        seeds: Sequence[Problem],
        met: Sequence[Problem],
        complete: bool,
        callback: Callback,
    ) -> None:
        self._domain, self._seeds, self._met, self._callback = domain, seeds, met, callback
        self._is_completing = complete and bool(seeds)
        self._first = self._completed(LearnedRules(shown, len(shown)), ())

    def beyond(self, gaps: RuleGaps) -> LearnedRules:
        """Return the rules with those that fill the gaps behind them."""
        rules = extend_rules(self._first.rules, gaps.traces, self._domain)
        if rules == self._first.rules and not gaps.problems:
            return self._first
        return self._completed(replace(self._first, rules=rules), gaps.problems)

    def _completed(self, known: LearnedRules, met: Sequence[Problem]) -> LearnedRules:
        if not self._is_completing:
            return known
        found = complete_rules(
            known.rules,
            self._domain,
            self._seeds,
            met=[*self._met, *met],
            plan_for=bounded_plan,
            random_problems=RANDOM_PROBLEMS,
            max_states=MAX_STATES,
            budget=BUDGET,
            callback=self._callback,
        )
        return LearnedRules(found.rules, known.shown, found.commit, str(found))


class Beginnings:
    """Where demonstrations begin, or have the most objects: a problem for each kind, whatever its objects are called.

    Of many kinds, those with the most objects count, but each predicate of a goal shall be in one of them.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._found: dict[object, Problem] = {}

    def note(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Note where a demonstration begins, unless one of the same kind is known."""
        own = {name: kind for name, kind in objects.items() if name not in self._domain.constants}
        counts = (Counter(own.values()), Counter(fact.predicate for fact in state), {f.predicate: 1 for f in goal})
        kind = tuple(frozenset(count.items()) for count in counts)
        if goal:
            name = f"demonstration-{len(self._found) + 1}"
            self._found.setdefault(kind, Problem(name, self._domain.name, own, state, goal))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems that are kept."""
        order = sorted(self._found.values(), key=lambda problem: -len(problem.objects))
        wanted: set[str] = set()
        first: list[Problem] = []
        for problem in order:
            predicates = {fact.predicate for fact in problem.goal}
            if not predicates <= wanted:
                first.append(problem)
                wanted |= predicates
        chosen = [*first, *(problem for problem in order if problem not in first)][:MOST_SEEDS]
        return tuple(sorted(chosen, key=lambda problem: -len(problem.objects)))
