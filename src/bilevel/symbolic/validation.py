"""Checks that a plan can be carried out step by step and reaches the goal."""

from __future__ import annotations

from dataclasses import dataclass

from bilevel.symbolic.bulk_reading import no_garbage_collection
from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Outcome, Problem
from bilevel.symbolic.plans import NaturesMove, Plan
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground_action, makes_object

FACTS_NAMED = 5  # in a message; the value itself holds all


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """What became of a plan: empty but for `steps` where it is valid.

    `steps` counts the actions carried out. Where the next one could not be, `action` is that one, `missing` are the
    facts it needs, `forbidden` those it must not find, and `fault` what else is wrong with it. Where all were carried
    out, `unmet` are the goals that do not hold at the end, and `forbidden` what holds but shall not.
    """

    steps: int
    action: Action | None = None
    missing: tuple[Atom, ...] = ()
    forbidden: tuple[Atom, ...] = ()
    fault: str = ""
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
        if self.fault:
            return f"not valid: step {self.steps + 1}: {self.fault}"
        reasons = []
        if self.missing:
            reasons.append(f"these facts do not hold: {_listed(self.missing)}")
        if self.forbidden:
            reasons.append(f"these facts must not hold: {_listed(self.forbidden)}")
        return f"not valid: step {self.steps + 1}, {self.action}: {'; '.join(reasons)}"


def _listed(atoms: tuple[Atom, ...]) -> str:
    more = f" and {len(atoms) - FACTS_NAMED} more" if len(atoms) > FACTS_NAMED else ""
    return ", ".join(map(str, atoms[:FACTS_NAMED])) + more


@no_garbage_collection()
def validate(domain: Domain, problem: Problem, plan: Plan) -> PlanCheck:
    """Carry the plan out in a closed world; a step costs what its schema mentions, whatever the state's size."""
    state, objects = set(problem.state), problem.all_objects(domain)
    for step, action in enumerate(plan.actions):
        try:
            grounded = ground_action(domain, action, objects)
            needed, barred = grounded.condition.positive, grounded.condition.negative
            if not (needed <= state and barred.isdisjoint(state)):
                return PlanCheck(step, action, tuple(sorted(needed - state)), tuple(sorted(barred & state)))
            outcome = _outcome(grounded, plan.moves.get(step), domain, objects)
        except BadInput as error:
            return PlanCheck(step, action, fault=str(error))
        state -= outcome.delete
        state |= outcome.add
    unmet, forbidden = problem.goal.difference(state), problem.negative_goal.intersection(state)
    return PlanCheck(len(plan.actions), forbidden=tuple(sorted(forbidden)), unmet=tuple(sorted(unmet)))


def _outcome(action: GroundAction, move: NaturesMove | None, domain: Domain, objects: dict[str, str]) -> Outcome:
    """The outcome as nature's move says; what she makes joins the objects. `BadInput` where she cannot do so."""
    if move is None:
        first, *others = action.outcomes
        if not others and not first.chosen:
            return first
        example = " ".join(["; outcome 1", *(f"{variable.name}=…" for variable in first.chosen)])
        raise BadInput(
            f"{action.action}: what nature did is not recorded; write it at the end of the line, such as '{example}'"
        )
    outcome, binding = action.outcomes[move.outcome], move.binding
    unknown = [v for v in outcome.chosen if v.name in outcome.new or binding[v.name] not in objects]
    made = [variable for variable in unknown if makes_object(variable, outcome, domain, objects)]
    for variable in outcome.chosen:
        name = binding[variable.name]
        if variable in made and name in objects:
            raise BadInput(f"{action.action}: '{name}' is not new: there is such an object already")
        if variable in made:
            objects[name] = variable.type
        if name not in objects or not domain.is_subtype(objects[name], variable.type):
            raise BadInput(f"{action.action}: there is no {variable.type} '{name}'")
    return bind_outcome(outcome, binding)
