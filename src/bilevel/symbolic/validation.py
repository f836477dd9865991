"""Checks that a plan can be carried out step by step and reaches the goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from bilevel.symbolic.bulk_reading import no_garbage_collection
from bilevel.symbolic.domain import (
    EQUALITY,
    Action,
    Atom,
    Domain,
    Outcome,
    Parameter,
    Problem,
    Schema,
    is_variable,
    schema_atoms,
)
from bilevel.symbolic.plans import NaturesMove, Plan
from bilevel.symbolic.semantics import ground

FACTS_NAMED = 5  # in a message; the value itself holds all


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """What became of a plan: empty but for `steps` where it is valid.

    `steps` counts the actions carried out. Where the next one could not be, `action` is that one, `missing` are the
    facts it needs, `forbidden` those it must not find, and `faults` what else is wrong with it. Where all were carried
    out, `unmet` are the goals that do not hold at the end, and `forbidden` what holds but shall not.
    """

    steps: int
    action: Action | None = None
    missing: tuple[Atom, ...] = ()
    forbidden: tuple[Atom, ...] = ()
    faults: tuple[str, ...] = ()
    unmet: tuple[Atom, ...] = ()

    @property
    def is_valid(self) -> bool:
        return self.action is None and not self.unmet and not self.forbidden

    def __str__(self) -> str:
        if self.is_valid:
            return f"valid: {self.steps} steps reach the goal"
        if self.action is None:
            unmet = ", ".join(filter(None, [_listed(self.unmet), *(f"not {atom}" for atom in self.forbidden)]))
            return f"not valid: after {self.steps} steps these goals do not hold: {unmet}"
        reasons = list(self.faults)
        if self.missing:
            reasons.append(f"these facts do not hold: {_listed(self.missing)}")
        if self.forbidden:
            reasons.append(f"these facts must not hold: {_listed(self.forbidden)}")
        return f"not valid: step {self.steps + 1}, {self.action}: {'; '.join(reasons)}"


def _listed(atoms: tuple[Atom, ...]) -> str:
    more = f" and {len(atoms) - FACTS_NAMED} more" if len(atoms) > FACTS_NAMED else ""
    return ", ".join(map(str, atoms[:FACTS_NAMED])) + more


def validate(domain: Domain, problem: Problem, plan: Plan) -> PlanCheck:
    """Carry the plan out in a closed world; a step costs what its schema mentions, whatever the state's size."""
    with no_garbage_collection():
        execution = _Execution(domain, problem)
        for step, action in enumerate(plan.actions):
            failure = execution.carry_out(step, action, plan.moves.get(step))
            if failure is not None:
                return failure
        return PlanCheck(
            len(plan.actions),
            forbidden=tuple(sorted(problem.negative_goal.intersection(execution.state))),
            unmet=tuple(sorted(problem.goal.difference(execution.state))),
        )


class _Template(NamedTuple):
    """An atom of a schema; `terms` picks its terms from the values of parameters, constants and nature's choices."""

    predicate: str
    terms: Callable[[tuple[str, ...]], tuple[str, ...]]


def _templates(atoms: Iterable[Atom], names: Sequence[str]) -> list[_Template]:
    """The atoms but for equalities, to be filled with values that come in the order of the names."""
    atoms = sorted(atom for atom in atoms if atom.predicate != EQUALITY)
    return [_Template(atom.predicate, _picker([names.index(term) for term in atom.terms])) for atom in atoms]


def _picker(positions: list[int]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Picks the values at these positions, in C; a slice because one position alone would not give a tuple."""
    if len(positions) > 1:
        return itemgetter(*positions)
    start = positions[0] if positions else 0
    return itemgetter(slice(start, start + len(positions)))


def _filled(templates: list[_Template], values: tuple[str, ...]) -> list[Atom]:
    make = tuple.__new__  # half the time of calling Atom
    return [make(Atom, (predicate, terms(values))) for predicate, terms in templates]


class _PreparedSchema:
    """A schema with its conditions and effects as templates, made ready for being carried out millions of times."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.is_deterministic = schema.is_deterministic
        self.constants = tuple(sorted({t for a in schema_atoms(schema) for t in a.terms if not is_variable(t)}))
        names = [*(parameter.name for parameter in schema.parameters), *self.constants]
        self.needed = _templates(schema.precondition, names)
        self.barred = _templates(schema.negative_precondition, names)
        self.has_equalities = any(a.predicate == EQUALITY for a in schema.precondition | schema.negative_precondition)
        self.effects = []
        for outcome in schema.outcomes:
            chosen = [*names, *(variable.name for variable in outcome.chosen)]
            self.effects.append((_templates(outcome.add, chosen), _templates(outcome.delete, chosen)))
        self.fitting_types: set[tuple[str | None, ...]] = set()  # of arguments, as far as met and found to fit


class _Execution:
    """A state that changes in place, and the objects known so far."""

    def __init__(self, domain: Domain, problem: Problem) -> None:
        self.domain = domain
        self.state = set(problem.state)
        self.objects = problem.all_objects(domain)
        self.schemas = {name: _PreparedSchema(schema) for name, schema in domain.schemas.items()}

    def carry_out(self, step: int, action: Action, move: NaturesMove | None) -> PlanCheck | None:
        """Change the state as the action and nature do, or say why the action cannot be carried out."""
        schema = self.schemas.get(action.name)
        types = tuple(map(self.objects.get, action.arguments))
        if schema is None or types not in schema.fitting_types:
            if faults := self.faults(action):
                return PlanCheck(step, action, faults=tuple(faults))
            schema = self.schemas[action.name]
            schema.fitting_types.add(types)
        values = action.arguments + schema.constants
        needed = _filled(schema.needed, values)
        barred = _filled(schema.barred, values) if schema.barred else ()
        if not self.state.issuperset(needed) or not self.state.isdisjoint(barred):
            missing = tuple(atom for atom in needed if atom not in self.state)
            return PlanCheck(step, action, missing, tuple(atom for atom in barred if atom in self.state))
        if schema.has_equalities and ground(schema.schema, action.arguments) is None:
            return PlanCheck(step, action, faults=("its arguments break an (in)equality",))
        if move is None and schema.is_deterministic:
            add, delete = schema.effects[0]
        else:
            fault = self.let_nature_choose(schema.schema, move)
            if move is None or fault:
                return PlanCheck(step, action, faults=(fault,))
            values += tuple(move.binding[variable.name] for variable in schema.schema.outcomes[move.outcome].chosen)
            add, delete = schema.effects[move.outcome]
        self.state.difference_update(_filled(delete, values))
        self.state.update(_filled(add, values))
        return None

    def faults(self, action: Action) -> list[str]:
        """What is wrong with an action before any state is looked at."""
        schema = self.domain.schemas.get(action.name)
        if schema is None:
            return [f"there is no action '{action.name}'"]
        if len(action.arguments) != len(schema.parameters):
            return [f"'{action.name}' takes {len(schema.parameters)} arguments, not {len(action.arguments)}"]
        pairs = zip(action.arguments, schema.parameters, strict=True)
        return [fault for argument, parameter in pairs if (fault := self.misfit(argument, parameter))]

    def misfit(self, name: str, variable: Parameter) -> str:
        """Why the object cannot stand for the variable; nothing where it can."""
        kind = self.objects.get(name)
        if kind is None:
            return f"unknown object '{name}'"
        if self.domain.is_subtype(kind, variable.type):
            return ""
        return f"'{name}' is of type '{kind}' but '{variable.name}' is of type '{variable.type}'"

    def let_nature_choose(self, schema: Schema, move: NaturesMove | None) -> str:
        """Makes the objects that nature makes; says why the recorded move is impossible, nothing where it is not."""
        outcomes = schema.outcomes
        if move is None:
            example = " ".join(["; outcome 1", *(f"{variable.name}=…" for variable in outcomes[0].chosen)])
            return f"what nature did is not recorded; write it at the end of the line, such as '{example}'"
        if not 0 <= move.outcome < len(outcomes):
            return f"there is no outcome {move.outcome + 1}; there are {len(outcomes)}"
        outcome = outcomes[move.outcome]
        if move.binding.keys() != {variable.name for variable in outcome.chosen}:
            wanted = ", ".join(variable.name for variable in outcome.chosen) or "nothing"
            return f"outcome {move.outcome + 1} binds {wanted}, not {', '.join(move.binding) or 'nothing'}"
        made = [variable for variable in outcome.chosen if self.makes(variable, move.binding[variable.name], outcome)]
        faults = (self.choose(variable, move.binding[variable.name], variable in made) for variable in outcome.chosen)
        return next(filter(None, faults), "")

    def makes(self, variable: Parameter, name: str, outcome: Outcome) -> bool:
        """Whether nature binds a variable to an object of her making: a new one, or the first of its type."""
        return variable.name in outcome.new or not (name in self.objects or self.any_of(variable.type))

    def choose(self, variable: Parameter, name: str, made: bool) -> str:
        if made and name in self.objects:
            return f"'{name}' is not new: there is such an object already"
        if made:
            self.objects[name] = variable.type
        return self.misfit(name, variable)

    def any_of(self, kind: str) -> bool:
        return any(self.domain.is_subtype(other, kind) for other in self.objects.values())
