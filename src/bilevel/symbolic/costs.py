"""What a plan costs, where actions have costs: `(increase (total-cost) 5)`, or as much as a function of objects says.

Rules and planners count steps, so costs are read from the files only when a plan is written or checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from os import SEEK_END, PathLike

from bilevel.symbolic.domain import Action, BadInput
from bilevel.symbolic.expressions import (
    NAME_PATTERN,
    NUMBER_PATTERN,
    Expression,
    Group,
    Misread,
    Word,
    is_number,
    normalised,
    read_text,
)
from bilevel.symbolic.pddl_domain import TOTAL_COST
from bilevel.symbolic.pddl_parts import read_definition

LONGEST_CLAIM = 200  # characters at the end of a plan file
Term = tuple[str, ...]  # a function and its arguments
_VALUE = re.compile(
    rf"\(\s*=\s*\(\s*({NAME_PATTERN}(?:\s+{NAME_PATTERN})*)\s*\)\s*({NUMBER_PATTERN})\s*\)", re.IGNORECASE
)
_COMMENT = re.compile(r";[^\n]*")
_CLAIM = re.compile(r";\s*cost\s*=\s*([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*\((unit|general) cost\)\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class ActionCost:
    """What an action of some parameters adds to the cost: numbers, and functions of its parameters and of constants."""

    parameters: Sequence[str]
    amounts: Sequence[Decimal | Term]


@dataclass(frozen=True)
class Costs:
    """What the actions of a domain cost in a problem. An action that is not listed costs nothing."""

    actions: Mapping[str, ActionCost]
    values: Mapping[Term, Decimal] = field(default_factory=dict)  # of functions
    unknown: str = ""  # why it is not known, where it is not

    def total(self, actions: Iterable[Action]) -> Decimal:
        """Return what these cost together; `BadInput` where that is not known."""
        if self.unknown:
            raise BadInput(self.unknown)
        return sum((amount for action in actions for amount in self._amounts(action)), Decimal(0))

    def _amounts(self, action: Action) -> Iterator[Decimal]:
        cost = self.actions.get(action.name, ActionCost((), ()))
        bound = dict(zip(cost.parameters, action.arguments, strict=False))
        for amount in cost.amounts:
            if isinstance(amount, Decimal):
                yield amount
                continue
            function, *arguments = amount
            term = (function, *(bound.get(argument, argument) for argument in arguments))
            if term not in self.values:
                raise BadInput(f"({' '.join(term)}) has no value in the problem, so what {action} costs is not known")
            yield self.values[term]


def read_costs(domain: str | PathLike[str], problem: str | PathLike[str]) -> Costs | None:
    """Return what actions cost by these files, which can be read as a domain and a problem; `None` where they do not.

    Costs that depend on more than an action's arguments, such as those in a `when`, are not known.
    """
    try:
        actions = _action_costs(normalised(read_text(domain)))
    except Misread as error:
        return Costs({}, unknown=error.message)
    if not actions:
        return None
    needed = {amount[0] for cost in actions.values() for amount in cost.amounts if isinstance(amount, tuple)}
    values = parse_values(read_text(problem)) if needed else {}
    return Costs(actions, {term: value for term, value in values.items() if term[0] in needed})


def parse_values(text: str) -> dict[Term, Decimal]:
    """Return the values of functions that a problem gives: `(= (distance a b) 5)`."""
    found = _VALUE.finditer(_COMMENT.sub("", normalised(text)))
    return {tuple(match[1].lower().split()): Decimal(match[2]) for match in found}


def _action_costs(text: str) -> dict[str, ActionCost]:
    """Return the costs of all actions that have some; `Misread` where one depends on more than the arguments."""
    found: dict[str, ActionCost] = {}
    seen: set[str] = set()
    _, parts = read_definition(text, "domain")
    for part in parts:
        if isinstance(part, Group) and part.head == ":action" and part.arguments:
            name, sections = str(part.arguments[0]).strip("'"), _keyed(part.arguments[1:])
            effect = sections.get(":effect")
            increases = list(_increases(effect))
            if _count_increases(effect) != len(increases):
                raise Misread(part.offset, f"what '{name}' costs depends on more than its arguments")
            if name in seen and (increases or name in found):
                raise Misread(part.offset, f"there are several actions '{name}'")
            seen.add(name)
            if increases:
                amounts = [_amount(group, name) for group in increases]
                found[name] = ActionCost(_variables(sections.get(":parameters")), amounts)
    return found


def _keyed(items: Sequence[Expression]) -> dict[str, Expression]:
    """Return `:parameters`, `:precondition` and `:effect` of an action by these names."""
    return {key.text: item for key, item in zip(items[::2], items[1::2], strict=False) if isinstance(key, Word)}


def _variables(parameters: Expression | None) -> list[str]:
    items = parameters.items if isinstance(parameters, Group) else ()
    return [item.text for item in items if isinstance(item, Word) and item.text.startswith("?")]


def _increases(effect: Expression | None) -> Iterator[Group]:
    """Yield the increases of the total cost that always happen."""
    if isinstance(effect, Group):
        if effect.head == "and":
            for part in effect.arguments:
                yield from _increases(part)
        elif _is_increase(effect):
            yield effect


def _count_increases(effect: Expression | None) -> int:
    if not isinstance(effect, Group):
        return 0
    return _is_increase(effect) or sum(map(_count_increases, effect.items))


def _is_increase(group: Group) -> bool:
    total = group.arguments[0] if group.head == "increase" and len(group.arguments) == 2 else None
    return isinstance(total, Group) and total.head == TOTAL_COST


def _amount(increase: Group, action: str) -> Decimal | Term:
    amount = increase.arguments[1]
    if isinstance(amount, Word) and is_number(amount.text):
        return Decimal(amount.text)
    words = [item.text for item in amount.items if isinstance(item, Word)] if isinstance(amount, Group) else []
    if isinstance(amount, Group) and len(words) == len(amount.items) > 0:
        return tuple(words)
    raise Misread(amount.offset, f"what '{action}' costs is neither a number nor a function of its arguments")


# What plan files say


def cost_comment(actions: Sequence[Action], costs: Costs | None) -> str:
    """Return the last line of a plan file, which says what the plan costs."""
    if costs is None:
        return f"; cost = {len(actions)} (unit cost)\n"
    try:
        return f"; cost = {digits(costs.total(actions))} (general cost)\n"
    except BadInput as error:
        return f"; {len(actions)} steps; cost unknown: {error}\n"


def wrong_claim(path: str | PathLike[str], steps: int, cost: Decimal | None) -> str:
    """Return what is wrong with the cost that the last line of a plan file claims; nothing where it is right."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, SEEK_END) - LONGEST_CLAIM))
        claim = _CLAIM.search(file.read().decode(errors="replace").rstrip())
    true = Decimal(steps) if claim and claim[2].lower() == "unit" else cost
    if claim is None or true is None or Decimal(claim[1]) == true:
        return ""
    return f"its last line says that the cost is {claim[1]}, but it is {digits(true)}"


def digits(cost: Decimal) -> str:
    """Return 12 or 2.5, whatever a number was written like."""
    text = f"{cost:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
