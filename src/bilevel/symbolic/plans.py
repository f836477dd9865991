"""Plans in the format of the planning competitions: one `(name argument ...)` a line, `;` begins a comment.

In a nondeterministic domain a comment of its own records what nature did: `(press b0) ; outcome 1 ?c=red`. Outcomes
count from 1 in the file; the bindings are those of the outcome's chosen variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from sys import intern
from typing import NamedTuple

from bilevel.symbolic.bulk_reading import no_garbage_collection
from bilevel.symbolic.domain import Action, Domain, Outcome, Schema
from bilevel.symbolic.expressions import (
    NAME_PATTERN,
    Misread,
    is_name,
    naming_position,
    normalised,
    quoted,
    read_text,
    suggestion,
)

RECORD = "outcome"
_ACTION = re.compile(rf"\(\s*{NAME_PATTERN}(?:\s+{NAME_PATTERN})*\s*\)")
_OUTCOME_NUMBER = re.compile(r"[0-9]{1,9}")  # Python refuses to convert thousands of digits


class NaturesMove(NamedTuple):
    """Which outcome an action had, counted from 0, and what nature bound the outcome's variables to."""

    outcome: int
    binding: Mapping[str, str]


@dataclass(frozen=True)
class Plan:
    """Actions, and for some of their positions, counted from 0, what nature did there."""

    actions: Sequence[Action]
    moves: Mapping[int, NaturesMove] = field(default_factory=dict)


def write_plan(plan: Plan) -> str:
    """The plan as text, its cost in the last line."""
    lines = [f"({name} {' '.join(arguments)})" if arguments else f"({name})" for name, arguments in plan.actions]
    for step, move in plan.moves.items():
        lines[step] += f" ; {_record(move)}"
    lines.append(f"; cost = {len(plan.actions)} (unit cost)\n")
    return "\n".join(lines)


def _record(move: NaturesMove) -> str:
    return " ".join([RECORD, str(move.outcome + 1), *(f"{name}={value}" for name, value in move.binding.items())])


def read_plan(path: str | PathLike[str], domain: Domain) -> Plan:
    return parse_plan(read_text(path), domain, fspath(path))


def parse_plan(text: str, domain: Domain, filename: str = "<plan>") -> Plan:
    text = normalised(text)
    with naming_position(text, filename), no_garbage_collection():
        actions: list[Action] = []
        moves: dict[int, NaturesMove] = {}
        for action, move in _steps(text, domain):
            if move is not None:
                moves[len(actions)] = move
            actions.append(action)
        return Plan(actions, moves)


def _steps(text: str, domain: Domain) -> Iterator[tuple[Action, NaturesMove | None]]:
    arities = {name: len(schema.parameters) for name, schema in domain.schemas.items()}
    start = 0
    for line in text.split("\n"):
        command, comment, _ = line.partition(";")
        command = command.strip()
        move = _recorded_move(line, command, domain, start) if comment else None
        if command:
            if not _ACTION.fullmatch(command):
                raise _bad_action(command, domain, start + line.index(command))
            name, *arguments = map(intern, command[1:-1].lower().split())
            if arities.get(name) != len(arguments):
                raise _bad_action(command, domain, start + line.index(command))
            yield Action(name, tuple(arguments)), move
        start += len(line) + 1


def _bad_action(command: str, domain: Domain, offset: int) -> Misread:
    words = command[1:-1].lower().split()
    if command[0] != "(" or command[-1] != ")" or not words or "(" in command[1:] or ")" in command[:-1]:
        return Misread(offset, f"expected one action such as (name argument ...) but found {quoted(command)}")
    for word in words:
        if not is_name(word):
            return Misread(offset + command.lower().index(word), f"expected a name but found {quoted(word)}")
    schema = domain.schemas.get(words[0])
    if schema is None:
        return Misread(offset + 1, f"unknown action '{words[0]}'{suggestion(words[0], domain.schemas)}")
    return Misread(offset, f"action '{schema.name}' takes {len(schema.parameters)} arguments, not {len(words) - 1}")


def _recorded_move(line: str, command: str, domain: Domain, start: int) -> NaturesMove | None:
    """What the comment at the end of an action's line says of nature; `None` where it is another comment."""
    offset = start + line.index(";")
    record = line[line.index(";") + 1 :].lower().split()
    schema = domain.schemas.get((command[1:-1].lower().split() or [""])[0])
    if schema is None or not record or record[0] != RECORD:
        return None
    number = record[1] if len(record) > 1 else ""
    if not (_OUTCOME_NUMBER.fullmatch(number) and 1 <= int(number) <= len(schema.outcomes)):
        raise Misread(offset, f"'{schema.name}' has outcomes 1 to {len(schema.outcomes)}, not {quoted(number)}")
    index = int(number) - 1
    return NaturesMove(index, _binding(record[2:], schema, schema.outcomes[index], offset))


def _binding(words: Sequence[str], schema: Schema, outcome: Outcome, offset: int) -> dict[str, str]:
    binding: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not is_name(value) or name in binding:
            raise Misread(offset, f"expected a variable and its value such as ?c=red but found {quoted(word)}")
        binding[name] = value
    chosen = [variable.name for variable in outcome.chosen]
    if set(binding) != set(chosen):
        wanted = " ".join(f"{name}=…" for name in chosen) or "nothing"
        raise Misread(offset, f"this outcome of '{schema.name}' binds {wanted}, not {quoted(' '.join(words))}")
    return binding
