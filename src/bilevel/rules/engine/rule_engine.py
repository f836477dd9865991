"""The rule engine: finds the rule that fires while facts come and go, at a cost that does not grow with the objects.

Two ways in: follow a problem by applying actions, or add and remove facts as a robot's labels change. `choose` agrees
with the first of `matching.best_matches`, which is its definition and its test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from bilevel.compiled import find
from bilevel.rules.engine.asked import Instance, in_order
from bilevel.rules.engine.compiled_executor import CompiledExecutor
from bilevel.rules.engine.explosion import exploding
from bilevel.rules.engine.numbering import COMPILED
from bilevel.rules.engine.rows import tables_for
from bilevel.rules.matching import output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts, Schema

if TYPE_CHECKING:
    from bilevel.rules.engine.searching_executor import SearchingExecutor
    from bilevel.rules.engine.written_executor import WrittenExecutor

    Executor: TypeAlias = CompiledExecutor | WrittenExecutor | SearchingExecutor


def executor_for(
    rules: tuple[Rule, ...],
    domain: Domain,
    state: Collection[Atom],
    goal: Facts,
    objects: Mapping[str, str],
    commit: bool,
) -> Executor:
    """Return the compiled executor where there is one, and one that searches for rules that explode."""
    searched = exploding(rules, domain, len(objects), tables_for(rules, domain, state, goal, objects))
    viewed = tuple(rule for place, rule in enumerate(rules) if place not in searched)
    executor: CompiledExecutor | WrittenExecutor
    if find(COMPILED):
        executor = CompiledExecutor.of_facts(viewed, domain, state, goal, objects, commit)
    else:
        from bilevel.rules.engine.written_executor import WrittenExecutor

        executor = WrittenExecutor(viewed, domain, state, goal, objects, commit)
    if not searched:
        return executor
    from bilevel.rules.engine.searched_rules import SearchedRules
    from bilevel.rules.engine.searching_executor import SearchingExecutor

    found = SearchedRules({place: rules[place] for place in searched}, domain, state, goal, objects)
    return SearchingExecutor(executor, found, rules)


class RuleEngine:
    """The facts and open goals that the rules ask about, and an executor that keeps the rules' views of them.

    `state` and `goal` hold atoms; `objects` gives the types of the objects, which matter where a variable's type does
    not follow from the facts it occurs in. `choose` returns the instance that fires, or `None` where no rule applies.
    With `commit` the engine can also be asked for the first rule that serves one given goal fact.

    The compiled executor follows the plans as data; without it a Python program is written for them. Rules that explode
    have no views and are searched.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        domain: Domain,
        state: Collection[Atom],
        goal: Facts,
        objects: Mapping[str, str],
        *,
        commit: bool = False,
    ) -> None:
        self.rules = in_order(rules)
        self.domain = domain
        self.executor = executor_for(self.rules, domain, state, goal, objects, commit)
        self.choose: Callable[[], Instance | None] = self.executor.choose
        self.open_goals: Callable[[], int] = self.executor.open_goals

    def server(self, predicate: str) -> Callable[..., Instance | None]:
        """Return a function from the terms of a goal fact to the first instance that serves it, if it is open."""
        return self.executor.server(predicate)

    def add(self, fact: Atom) -> None:
        """Make a fact true."""
        self.executor.add(fact)

    def remove(self, fact: Atom) -> None:
        """Make a fact false."""
        self.executor.remove(fact)

    def declare(self, name: str, kind: str) -> None:
        """Make a new object of a type known."""
        self.executor.declare(name, kind)

    def applier(self, schema: Schema, outcome: int) -> Callable[..., None]:
        """Return the function that applies an outcome of a rule's action to its arguments and nature's choices."""
        return self.executor.applier(schema, outcome)

    def holds(self, fact: Atom) -> bool:
        """Return whether a fact holds, for the predicates that some rule or the action of an unsafe one asks about."""
        return self.executor.holds(fact)

    def binding(self, instance: Instance) -> dict[str, str]:
        """Return the values of an instance's outputs by variable."""
        rule, values = instance
        return dict(zip(output_variables(self.rules[rule]), values, strict=True))
