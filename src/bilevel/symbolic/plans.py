"""Plans: what nature does in them, their files, and whether they can be carried out and reach the goal.

The files are in the format of the planning competitions: one `(name argument ...)` a line, `;` begins a comment. In a
nondeterministic domain a comment of its own records what nature did: `(press b0) ; outcome 1 ?c=red`. Outcomes count
from 1 in the file; the bindings are those of the outcome's chosen variables.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike, fspath
from sys import intern
from typing import NamedTuple

from bilevel.symbolic.axioms import close
from bilevel.symbolic.domain import Action, BadInput, Domain, Outcome, Problem, Schema
from bilevel.symbolic.expressions import NAME_PATTERN, Misread, is_name, naming_position, quoted, read_text, suggestion
from bilevel.symbolic.packed import no_garbage_collection
from bilevel.symbolic.semantics import Condition, GroundAction, bind_outcome, fresh_names, ground_action, makes_object

RECORD = "outcome"
BLOCK = 50_000  # steps that are written at a time
_ACTION = re.compile(rf"\(\s*{NAME_PATTERN}(?:\s+{NAME_PATTERN})*\s*\)")
MOST_NAMED = 5  # in a message


class NaturesMove(NamedTuple):
    """Which outcome an action had, counted from 0, and what nature bound the outcome's variables to."""

    outcome: int
    binding: Mapping[str, str]


@dataclass(frozen=True)
class Plan:
    """Actions, and for some of their positions, counted from 0, what nature did there."""

    actions: Sequence[Action]
    moves: Mapping[int, NaturesMove] = field(default_factory=dict)


def write_plan(plan: Plan, cost: float | None = None) -> str:
    """Return the plan as text; the last line says how many steps it has or, where actions have costs, what it costs."""
    return b"".join(plan_chunks(plan, cost)).decode()


def plan_chunks(plan: Plan, cost: float | None = None) -> Iterator[bytes]:
    """Yield the text of `write_plan` in blocks, so that a plan of millions of steps takes little memory."""
    actions, moves = iter(plan.actions), plan.moves
    for start in range(0, len(plan.actions), BLOCK):
        block = islice(actions, BLOCK)
        lines = [f"({name} {' '.join(arguments)})\n" if arguments else f"({name})\n" for name, arguments in block]
        for step in range(start, start + len(lines)) if moves else ():
            if step in moves:
                lines[step - start] = f"{lines[step - start][:-1]} ; {record_of(moves[step])}\n"
        yield "".join(lines).encode()
    total = f"{len(plan.actions)} (unit cost)" if cost is None else f"{cost:.15g} (general cost)"
    yield f"; cost = {total}\n".encode()


def record_of(move: NaturesMove) -> str:
    """What the comment on a step says of nature."""
    return " ".join([RECORD, str(move.outcome + 1), *(f"{name}={value}" for name, value in move.binding.items())])


def records_of(outcomes: Sequence[Outcome]) -> str:
    """What the comment may say where an action has these outcomes; a few of them where there are many."""
    moves = [NaturesMove(n, {v.name: "…" for v in outcome.chosen}) for n, outcome in enumerate(outcomes)]
    return listed([f"'; {record_of(move)}'" for move in moves])


def read_plan(path: str | PathLike[str], domain: Domain) -> Plan:
    """Read a plan from a file; `BadInput`, with line and column, where it is none of this domain."""
    return parse_plan(read_text(path), domain, fspath(path))


def parse_plan(text: str, domain: Domain, filename: str = "<plan>") -> Plan:
    """Return the plan that a text is; `BadInput`, which names the file, where it is none of this domain."""
    arities = {name: len(schema.parameters) for name, schema in domain.schemas.items()}
    with naming_position(text, filename) as text, no_garbage_collection():
        actions, moves, start = list[Action](), dict[int, NaturesMove](), 0
        for line in text.split("\n"):
            command, _, comment = line.partition(";")
            command = command.strip()
            if command:
                name, *arguments = map(intern, command[1:-1].lower().split() or [""])
                if not _ACTION.fullmatch(command) or arities.get(name) != len(arguments):
                    raise _bad_action(command, domain, start + line.index(command))
                move = _recorded_move(comment, domain.schemas[name], start + line.index(";")) if comment else None
                if move is not None:
                    moves[len(actions)] = move
                actions.append(Action(name, tuple(arguments)))
            start += len(line) + 1
        return Plan(actions, moves)


def _bad_action(command: str, domain: Domain, offset: int) -> Misread:
    if not _ACTION.fullmatch(command):
        return Misread(offset, f"expected one action such as (name argument ...) but found {quoted(command)}")
    name, *arguments = command[1:-1].lower().split()
    if name not in domain.schemas:
        return Misread(offset + 1, f"unknown action '{name}'{suggestion(name, domain.schemas)}")
    wanted = len(domain.schemas[name].parameters)
    return Misread(offset, f"action '{name}' takes {wanted} arguments, not {len(arguments)}")


def _recorded_move(comment: str, schema: Schema, offset: int) -> NaturesMove | None:
    """What the comment at the end of an action's line says of nature; `None` where it is another comment."""
    word, *record = comment.lower().split() or [""]
    if word != RECORD:
        return None
    values = dict(entry.split("=", 1) for entry in record[1:] if "=" in entry)
    for number, outcome in enumerate(schema.outcomes):
        fits = values.keys() == {variable.name for variable in outcome.chosen} and len(record) == 1 + len(values)
        if fits and record[0] == str(number + 1) and all(map(is_name, values.values())):
            return NaturesMove(number, values)
    raise Misread(offset, f"nature in '{schema.name}' is {records_of(schema.outcomes)}, not {quoted(comment.strip())}")


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """What became of a plan: how many actions were carried out, and what is wrong, nothing where it is valid."""

    steps: int
    fault: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether it can be carried out and reaches the goal."""
        return not self.fault

    def __str__(self) -> str:
        return f"not valid: {self.fault}" if self.fault else f"valid: {self.steps} steps reach the goal"


@no_garbage_collection()
def validate(domain: Domain, problem: Problem, plan: Plan) -> PlanCheck:
    """Carry the plan out in a closed world; a step costs what its schema mentions, whatever the state's size."""
    state, objects = set(problem.state), problem.all_objects(domain)
    for step, action in enumerate(plan.actions):
        try:
            grounded = ground_action(domain, action, objects)
            if not grounded.condition.holds(state):
                return PlanCheck(step, f"step {step + 1}, {action}: {listed(grounded.condition.unmet(state))}")
            outcome = _outcome(grounded, plan.moves.get(step), domain, objects)
        except BadInput as error:
            return PlanCheck(step, f"step {step + 1}: {error}")
        state -= outcome.delete
        state |= outcome.add
        state = {*close(frozenset(state), domain, objects)} if domain.axioms else state
    unmet, steps = Condition(problem.goal, problem.negative_goal).unmet(state), len(plan.actions)
    return PlanCheck(steps, f"the goal is not reached after {steps} steps: {listed(unmet)}" if unmet else "")


def listed(names: Sequence[str]) -> str:
    """The first few of the names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _outcome(action: GroundAction, move: NaturesMove | None, domain: Domain, objects: dict[str, str]) -> Outcome:
    """The outcome as nature's move says; what she makes joins the objects. `BadInput` where she cannot do so."""
    if move is None:
        first, *others = action.outcomes
        if not others and not first.chosen:
            return first
        how = f"write it at the end of the line as {records_of(action.outcomes)}"
        raise BadInput(f"{action.action}: what nature did is not recorded; {how}")
    outcome, binding = action.outcomes[move.outcome], move.binding
    made = [variable for variable in outcome.chosen if makes_object(variable, outcome, domain, objects)]
    for variable in outcome.chosen:
        name = binding[variable.name]
        if variable not in made and not (name in objects and domain.is_subtype(objects[name], variable.type)):
            raise BadInput(f"{action.action}: there is no {variable.type} '{name}'")
        if variable in made and name in objects:
            raise BadInput(f"{action.action}: '{name}' is not new: there is such an object already")
        objects.setdefault(name, variable.type)
    return bind_outcome(outcome, binding)


class Nature:
    """Draws outcomes, each with the same probability, and remembers the objects she has made."""

    def __init__(self, domain: Domain, objects: Mapping[str, str], rng: random.Random) -> None:
        self.domain = domain
        self.objects = dict(objects)
        self._rng = rng
        self._known: dict[str, list[str]] = {}
        self._made: dict[str, Iterator[str]] = {}  # names of new objects of a type

    def move(self, schema: Schema) -> NaturesMove:
        """An outcome of an action of this schema, with values for the outcome's open variables."""
        index = self._rng.randrange(len(schema.outcomes)) if len(schema.outcomes) > 1 else 0
        outcome = schema.outcomes[index]
        # What she makes in this move she cannot choose in it, so the numbers of objects are taken beforehand.
        known = [0 if v.name in outcome.new else len(self._objects_of(v.type)) for v in outcome.chosen]
        values = [
            self._objects_of(v.type)[self._rng.randrange(count)] if count else self._new_object(v.type)
            for v, count in zip(outcome.chosen, known, strict=True)
        ]
        return NaturesMove(index, {v.name: value for v, value in zip(outcome.chosen, values, strict=True)})

    def _objects_of(self, kind: str) -> list[str]:
        if kind not in self._known:
            self._known[kind] = [o for o, own in self.objects.items() if self.domain.is_subtype(own, kind)]
        return self._known[kind]

    def _new_object(self, kind: str) -> str:
        """Make an object with a name that none has yet."""
        name = next(self._made.setdefault(kind, fresh_names(kind, self.objects)))
        self.objects[name] = kind
        for ancestor, known in self._known.items():
            if self.domain.is_subtype(kind, ancestor):
                known.append(name)
        return name
