"""Checks that a plan can be carried out step by step and reaches the goal."""

from __future__ import annotations

from dataclasses import dataclass

from bilevel.symbolic.bulk_reading import no_garbage_collection
from bilevel.symbolic.domain import Action, Atom, Domain, Outcome, Parameter, Problem
from bilevel.symbolic.plans import NaturesMove, Plan
from bilevel.symbolic.prepared_schemas import PreparedSchema, filled

FACTS_NAMED = 5  # in a message; the value itself holds all


@dataclass(frozen=True, slots=True)
class Verdict:
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


class NotApplicable(Exception):
    """A step cannot be carried out; its verdict says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


def validate(domain: Domain, problem: Problem, plan: Plan) -> Verdict:
    """Carries the plan out in a closed world; a step costs what its schema mentions, whatever the state's size."""
    with no_garbage_collection():
        execution = _Execution(domain, problem)
        try:
            for step, action in enumerate(plan.actions):
                execution.carry_out(step, action, plan.moves.get(step))
        except NotApplicable as failure:
            return failure.verdict
        return Verdict(
            len(plan.actions),
            forbidden=tuple(sorted(problem.negative_goal.intersection(execution.state))),
            unmet=tuple(sorted(problem.goal.difference(execution.state))),
        )


class _Execution:
    """A state that changes in place, and the objects known so far."""

    def __init__(self, domain: Domain, problem: Problem) -> None:
        self.domain = domain
        self.state = set(problem.state)
        self.objects = problem.all_objects(domain)
        self.schemas = {name: PreparedSchema(schema) for name, schema in domain.schemas.items()}

    def carry_out(self, step: int, action: Action, move: NaturesMove | None) -> None:
        """Changes the state as the action and nature do; `NotApplicable` where the action cannot be carried out."""
        schema = self.schemas.get(action.name)
        types = tuple(map(self.objects.get, action.arguments))
        if schema is None or types not in schema.fitting_types:
            if faults := self.faults(action):
                raise NotApplicable(Verdict(step, action, faults=tuple(faults)))
            schema = self.schemas[action.name]
            schema.fitting_types.add(types)
        values = action.arguments + schema.constants
        needed = filled(schema.needed, values)
        barred = filled(schema.barred, values) if schema.barred else ()
        if not self.state.issuperset(needed) or not self.state.isdisjoint(barred):
            missing = tuple(atom for atom in needed if atom not in self.state)
            forbidden = tuple(atom for atom in barred if atom in self.state)
            raise NotApplicable(Verdict(step, action, missing, forbidden))
        if schema.has_equalities and not schema.equalities_hold(values):
            raise NotApplicable(Verdict(step, action, faults=("its arguments break an (in)equality",)))
        if move is None and schema.is_deterministic:
            add, delete = schema.effects[0]
        else:
            fault = self.let_nature_choose(schema, move)
            if move is None or fault:
                raise NotApplicable(Verdict(step, action, faults=(fault,)))
            outcome = schema.schema.outcomes[move.outcome]
            values += tuple(move.binding[variable.name] for variable in outcome.chosen)
            add, delete = schema.effects[move.outcome]
        self.state.difference_update(filled(delete, values))
        self.state.update(filled(add, values))

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

    def let_nature_choose(self, schema: PreparedSchema, move: NaturesMove | None) -> str:
        """Makes the objects that nature makes; says why the recorded move is impossible, nothing where it is not."""
        outcomes = schema.schema.outcomes
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
