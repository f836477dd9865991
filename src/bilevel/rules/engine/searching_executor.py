"""An executor for rules of which some explode: it asks another one about the others, and searches for those."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from bilevel.rules.engine.asked import Instance
from bilevel.rules.engine.compiled_executor import CompiledExecutor
from bilevel.rules.engine.searched_rules import SearchedRules
from bilevel.rules.engine.written_executor import WrittenExecutor
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Schema
from bilevel.symbolic.semantics import bind_outcome


class SearchingExecutor:
    """Chooses among all rules as if all had views: a searched rule is asked only before any with views that applies."""

    def __init__(
        self, executor: CompiledExecutor | WrittenExecutor, searched: SearchedRules, rules: tuple[Rule, ...]
    ) -> None:
        """Begin with all rules, and an executor for those that are not searched."""
        self._executor, self._searched, self.rules = executor, searched, rules
        self._viewed = [place for place in range(len(rules)) if place not in searched.places]
        self.open_goals: Callable[[], int] = executor.open_goals

    def choose(self) -> Instance | None:
        """Return the instance of the first rule that applies, joined or searched."""
        return self._first(self._executor.choose(), None)

    def server(self, predicate: str) -> Callable[..., Instance | None]:
        """Return what finds the first instance that serves a goal of this predicate."""
        serve = self._executor.server(predicate)
        return lambda *terms: self._first(serve(*terms), Atom(predicate, terms))

    def _first(self, found: Instance | None, served: Atom | None) -> Instance | None:
        """Return the first of what the executor has found and what a search finds."""
        place = self._viewed[found[0]] if found else len(self.rules)
        for searched in self._searched.places[: bisect_left(self._searched.places, place)]:
            values = self._searched.first(searched, served)
            if values is not None:
                return searched, values
        return (place, found[1]) if found else None

    def add(self, fact: Atom) -> None:
        """Make a fact true."""
        self._executor.add(fact)
        self._searched.add(fact)

    def remove(self, fact: Atom) -> None:
        """Make a fact false."""
        self._executor.remove(fact)
        self._searched.remove(fact)

    def declare(self, name: str, kind: str) -> None:
        """Make an object of a type known."""
        self._executor.declare(name, kind)
        self._searched.declare(name, kind)

    def applier(self, schema: Schema, outcome: int) -> Callable[..., None]:
        """Return what carries out this outcome of the schema, given its arguments and what nature chose."""
        effects = schema.outcomes[outcome]
        names = [parameter.name for parameter in (*schema.parameters, *effects.chosen)]

        def apply(*values: str) -> None:
            bound = bind_outcome(effects, dict(zip(names, values, strict=True)))
            for fact in bound.add:
                self.add(fact)
            for fact in bound.delete - bound.add:
                self.remove(fact)

        return apply

    def holds(self, fact: Atom) -> bool:
        """Return whether a fact is true."""
        return (self._searched if self._searched.keeps(fact) else self._executor).holds(fact)
