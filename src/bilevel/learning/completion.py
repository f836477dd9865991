"""The last stage of learning rules: complete those of the demonstrations, for what nobody has shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bilevel.planning.planners import plan_function
from bilevel.rules.completion import Completion, complete_rules
from bilevel.rules.completion.completer import Callback
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Domain, Facts, Problem

MAX_STATES = 600  # of a small problem; larger ones are left to chance
BUDGET = 3_000_000
RANDOM_PROBLEMS = 20
MOST_SEEDS = 4
PLANNING_SECONDS = 5.0


def complete_learned(
    rules: Sequence[Rule], domain: Domain, seeds: Sequence[Problem], met: Sequence[Problem], callback: Callback
) -> Completion:
    """Return the rules, completed for problems like the seeds, with fewer objects too, and for those that were met."""
    return complete_rules(
        rules,
        domain,
        seeds,
        met=met,
        plan_for=plan_function("search", PLANNING_SECONDS),
        random_problems=RANDOM_PROBLEMS,
        max_states=MAX_STATES,
        budget=BUDGET,
        callback=callback,
    )


class Beginnings:
    """How demonstrations begin: a problem for each kind of beginning, whatever its objects are called."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._found: dict[object, Problem] = {}

    def note(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        own = {name: kind for name, kind in objects.items() if name not in self._domain.constants}
        kind = frozenset(Counter(own.values()).items()), frozenset(Counter(fact.predicate for fact in state).items())
        if goal and len(self._found) < MOST_SEEDS:
            name = f"demonstration-{len(self._found) + 1}"
            self._found.setdefault(kind, Problem(name, self._domain.name, own, state, goal))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(self._found.values())
