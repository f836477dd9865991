"""The program of a rule engine, specialised to its rules.

It is meant to be read (`RuleEngine.source`): relations are sets, views are dictionaries of sets, a function per
predicate adds or removes a fact and updates the views, one per rule reads off its first instance, and one per action
and outcome applies its effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bilevel.rules.engine.choices import write_choosing, write_serving
from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.statistics import Relation
from bilevel.rules.engine.updates import (
    write_applying_function,
    write_building,
    write_declaring_function,
    write_fact_functions,
    write_view_functions,
)
from bilevel.rules.engine.views import RulePlan
from bilevel.rules.engine.writer import PARAMETERS, Writer
from bilevel.symbolic.domain import Schema


def program(
    planner: Planner,
    plans: Sequence[RulePlan],
    arities: Mapping[Relation, int],
    schemas: Sequence[Schema],
    identifiers: Mapping[str, str],
    *,
    commit: bool,
) -> str:
    """Return the source of a function `engine` that is handed the data and returns the functions to work with."""
    writer = Writer(planner, plans, arities, schemas, identifiers)

    def functions() -> None:
        _write_functions(writer, schemas, commit)

    def lines(write: Callable[[], None]) -> list[str]:
        writer.lines = []
        write()
        return writer.lines

    lines(functions)  # written twice, since only the writing shows which indexes there must be
    lines(lambda: write_building(writer))
    building = lines(lambda: write_building(writer))
    return "\n".join([f"def engine({', '.join(PARAMETERS)}):", *building, *lines(functions), ""])


def _write_functions(writer: Writer, schemas: Sequence[Schema], commit: bool) -> None:
    for view in reversed(writer.views):
        if view.key:
            write_view_functions(writer, view)
    for predicate in sorted({relation.name for relation in writer.arities if relation.kind in ("state", "goal")}):
        write_fact_functions(writer, predicate)
    for relation in sorted(writer.arities):
        if relation.kind == "type":
            write_declaring_function(writer, relation)
    write_choosing(writer)
    if commit:
        write_serving(writer)
    for schema in schemas:
        for number, outcome in enumerate(schema.outcomes):
            write_applying_function(writer, schema, number, outcome)
    writer.emit("")
    writer.emit("def count_open_goals(): return open_goals")
    writer.emit("return locals()")
