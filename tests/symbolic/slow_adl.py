"""What ADL means, straight from the definition, on nested lists; and random domains written as such lists."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product
from typing import Any

from bilevel.symbolic.domain import Atom, Facts

TYPES = {"cup": "object", "lid": "object"}
CONSTANTS = {"a": "cup"}
OBJECTS = {"a": "cup", "b": "cup", "c": "lid"}
ARITIES = {"p": 0, "q": 1, "r": 2, "fixed": 1}

Lists = Any  # a word or a list of such
Binding = Mapping[str, str]


def written(lists: Lists) -> str:
    return lists if isinstance(lists, str) else f"({' '.join(map(written, lists))})"


def fitting(kind: str) -> list[str]:
    return [name for name, its in OBJECTS.items() if kind in (its, "object")]


def bindings(declared: list[str], binding: Binding) -> list[Binding]:
    """Every way to choose objects for `?x - t ?y - u`."""
    names, kinds = declared[::3], declared[2::3]
    return [{**binding, **dict(zip(names, values, strict=True))} for values in product(*map(fitting, kinds))]


def atom_of(lists: Lists, binding: Binding) -> Atom:
    return Atom(lists[0], tuple(binding.get(term, term) for term in lists[1:]))


def holds(condition: Lists, binding: Binding, state: Facts) -> bool:
    match condition:
        case ["and", *parts]:
            return all(holds(part, binding, state) for part in parts)
        case ["or", *parts]:
            return any(holds(part, binding, state) for part in parts)
        case ["not", part]:
            return not holds(part, binding, state)
        case ["imply", premise, conclusion]:
            return not holds(premise, binding, state) or holds(conclusion, binding, state)
        case ["forall", declared, part]:
            return all(holds(part, each, state) for each in bindings(declared, binding))
        case ["exists", declared, part]:
            return any(holds(part, each, state) for each in bindings(declared, binding))
        case ["=", one, other]:
            return bool(binding.get(one, one) == binding.get(other, other))
    return bool(atom_of(condition, binding) in state)


Change = tuple[frozenset[Atom], frozenset[Atom]]  # what is added and what is deleted


def changes(effect: Lists, binding: Binding, state: Facts) -> list[Change]:
    """What nature may do."""
    none: frozenset[Atom] = frozenset()
    match effect:
        case ["and", *parts]:
            return _at_once([changes(part, binding, state) for part in parts])
        case ["forall", declared, part]:
            return _at_once([changes(part, each, state) for each in bindings(declared, binding)])
        case ["oneof", *parts]:
            return [change for part in parts for change in changes(part, binding, state)]
        case ["when", condition, part]:
            return changes(part, binding, state) if holds(condition, binding, state) else [(none, none)]
        case ["not", part]:
            return [(none, frozenset({atom_of(part, binding)}))]
    return [(frozenset({atom_of(effect, binding)}), none)]


def _at_once(parts: list[list[Change]]) -> list[Change]:
    return [
        (frozenset(a for add, _ in chosen for a in add), frozenset(d for _, delete in chosen for d in delete))
        for chosen in product(*parts)
    ]


def successors(action: Lists, arguments: tuple[str, ...], state: Facts) -> frozenset[Facts] | None:
    """The states that an action may lead to; `None` where it cannot be done."""
    _, _, _, declared, _, precondition, _, effect = action
    binding = dict(zip(declared[::3], arguments, strict=True))
    if not holds(precondition, binding, state):
        return None
    return frozenset((state - delete) | add for add, delete in changes(effect, binding, state))


class RandomAdl:
    """Draws domains in which everything is nested in everything."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.count = 0

    def action(self, name: str) -> Lists:
        declared = self._declared(self.rng.randint(0, 2))
        terms = [*declared[::3], "a"]
        condition, effect = self.condition(terms, 2), self.effect(terms, 3)
        return [":action", name, ":parameters", declared, ":precondition", condition, ":effect", effect]

    def _declared(self, count: int) -> list[str]:
        """Sometimes a name that is in use further out."""
        declared = []
        for _ in range(count):
            self.count += 1
            name = self.rng.choice(["?x", f"?v{self.count}"]) if "?x" not in declared else f"?v{self.count}"
            declared += [name, "-", self.rng.choice(["object", "cup", "lid"])]
        return declared

    def atom(self, terms: list[str], changing: bool = False) -> Lists:
        name = self.rng.choice(["p", "q", "q", "r"] if changing else ["p", "q", "q", "r", "fixed"])
        return [name, *self.rng.choices(terms, k=ARITIES[name])]

    def condition(self, terms: list[str], depth: int) -> Lists:
        kind = self.rng.choice(["and", "or", "not", "imply", "forall", "exists", "=", "atom"] if depth else ["atom"])
        if kind in ("and", "or"):
            return [kind, *(self.condition(terms, depth - 1) for _ in range(self.rng.randint(0, 3)))]
        if kind == "not":
            return ["not", self.condition(terms, depth - 1)]
        if kind == "imply":
            return ["imply", self.condition(terms, depth - 1), self.condition(terms, depth - 1)]
        if kind in ("forall", "exists"):
            declared = self._declared(1)
            return [kind, declared, self.condition([*terms, declared[0]], depth - 1)]
        return ["=", *self.rng.choices(terms, k=2)] if kind == "=" else self.atom(terms)

    def effect(self, terms: list[str], depth: int) -> Lists:
        kind = self.rng.choice(["and", "and", "oneof", "when", "when", "forall", "atom"] if depth else ["atom"])
        if kind in ("and", "oneof"):
            return [kind, *(self.effect(terms, depth - 1) for _ in range(self.rng.randint(1, 2)))]
        if kind == "when":
            return ["when", self.condition(terms, 1), self.effect(terms, depth - 1)]
        if kind == "forall":
            declared = self._declared(1)
            return ["forall", declared, self.effect([*terms, declared[0]], depth - 1)]
        atom = self.atom(terms, changing=True)
        return self.rng.choice([atom, ["not", atom]])

    def state(self) -> Facts:
        atoms = [Atom(n, terms) for n, arity in ARITIES.items() for terms in product(OBJECTS, repeat=arity)]
        return frozenset(atom for atom in atoms if self.rng.random() < 0.5)
