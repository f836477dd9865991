"""What axioms derive, straight from the definition: try all objects for all variables, again and again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from bilevel.symbolic.domain import Atom, Facts

OBJECTS = {"a": "cup", "b": "cup", "c": "lid"}
BASIC, DERIVED = {"p": 0, "q": 1, "r": 2}, {"d": 0, "e": 1, "f": 2}
Formula = tuple[Any, ...]


class Axiom(NamedTuple):
    """A derived atom, the types of its variables, and what it follows from."""

    head: Atom
    kinds: Mapping[str, str]
    body: Formula


def fitting(kind: str) -> list[str]:
    return [name for name, its in OBJECTS.items() if kind in (its, "object")]


def holds(formula: Formula, binding: Mapping[str, str], facts: Facts) -> bool:
    match formula:
        case ("and", *parts):
            return all(holds(part, binding, facts) for part in parts)
        case ("or", *parts):
            return any(holds(part, binding, facts) for part in parts)
        case ("not", part):
            return not holds(part, binding, facts)
        case ("imply", premise, conclusion):
            return not holds(premise, binding, facts) or holds(conclusion, binding, facts)
        case ("exists", name, kind, part):
            return any(holds(part, {**binding, name: each}, facts) for each in fitting(kind))
        case ("forall", name, kind, part):
            return all(holds(part, {**binding, name: each}, facts) for each in fitting(kind))
    predicate, *terms = (binding.get(term, term) for term in formula)
    return terms[0] == terms[1] if predicate == "=" else Atom(predicate, tuple(terms)) in facts


def signed(formula: Formula, sign: bool = True) -> Iterator[tuple[str, bool]]:
    """Every predicate in a formula, and whether it stands under an even number of negations."""
    match formula:
        case ("and" | "or", *parts):
            for part in parts:
                yield from signed(part, sign)
        case ("not", part):
            yield from signed(part, not sign)
        case ("imply", premise, conclusion):
            yield from signed(premise, not sign)
            yield from signed(conclusion, sign)
        case ("exists" | "forall", _, _, part):
            yield from signed(part, sign)
        case _:
            yield formula[0], sign


def levels(axioms: Sequence[Axiom]) -> dict[str, int] | None:
    """In which order predicates can be derived; `None` where a fact may follow from its own absence."""
    found = dict.fromkeys(DERIVED, 0)
    for _ in range(len(found) + 1):
        before = dict(found)
        for axiom in axioms:
            needed = [found[name] + (not sign) for name, sign in signed(axiom.body) if name in found]
            found[axiom.head.predicate] = max([found[axiom.head.predicate], *needed])
        if found == before:
            return found
    return None


def derived(axioms: Sequence[Axiom], facts: Facts) -> Facts:
    """The facts, and those that follow from them."""
    order = levels(axioms)
    assert order is not None
    found = set(facts)
    for level in sorted({*order.values()}):
        size = -1
        while size != len(found):
            size = len(found)
            for head, kinds, body in axioms:
                for names in product(*map(fitting, kinds.values())):
                    binding = dict(zip(kinds, names, strict=True))
                    if order[head.predicate] == level and holds(body, binding, frozenset(found)):
                        found.add(Atom(head.predicate, names))
    return frozenset(found)


def written(formula: Formula) -> str:
    match formula:
        case ("exists" | "forall" as head, name, kind, part):
            return f"({head} ({name} - {kind}) {written(part)})"
    return f"({' '.join(part if isinstance(part, str) else written(part) for part in formula)})"


def random_formula(rng: random.Random, terms: Sequence[str], depth: int) -> Formula:
    kind = rng.choice(["and", "or", "not", "imply", "exists", "forall", "atom", "atom", "="] if depth else ["atom"])
    if kind in ("and", "or"):
        return (kind, *(random_formula(rng, terms, depth - 1) for _ in range(rng.randint(0, 3))))
    if kind in ("not", "imply"):
        return (kind, *(random_formula(rng, terms, depth - 1) for _ in range(1 + (kind == "imply"))))
    if kind in ("exists", "forall"):
        name = f"?{rng.choice('xyz')}"
        return kind, name, rng.choice(["cup", "lid", "object"]), random_formula(rng, [*terms, name], depth - 1)
    if kind == "=":
        return kind, rng.choice(terms), rng.choice(terms)
    name, arity = rng.choice([*BASIC.items(), *DERIVED.items(), ("r", 2), ("f", 2)])
    return (name, *(rng.choice(terms) for _ in range(arity)))


def random_axioms(rng: random.Random) -> list[Axiom]:
    found = []
    for _ in range(rng.randint(1, 5)):
        name, arity = rng.choice([*DERIVED.items()])
        kinds = {variable: rng.choice(["cup", "object"]) for variable in ("?u", "?v")[:arity]}
        found.append(Axiom(Atom(name, tuple(kinds)), kinds, random_formula(rng, [*kinds, "a"], rng.randint(1, 3))))
    return found


def random_facts(rng: random.Random) -> Facts:
    atoms = [Atom(name, terms) for name, arity in BASIC.items() for terms in product(OBJECTS, repeat=arity)]
    return frozenset(atom for atom in atoms if rng.random() < 0.4)


def random_actions(rng: random.Random) -> list[str]:
    """Actions that need and change basic facts, and need derived ones."""

    def literals(names: Sequence[tuple[str, int]], most: int) -> str:
        chosen = [(name, *rng.choices(["?x", "?y"], k=arity)) for name, arity in rng.choices(names, k=most)]
        atoms = [f"({' '.join(words)})" for words in chosen]
        return " ".join(atom if rng.random() < 0.6 else f"(not {atom})" for atom in dict.fromkeys(atoms))

    every, basic = [*BASIC.items(), *DERIVED.items()], [*BASIC.items()]
    return [
        f"(:action {name} :parameters (?x - cup ?y) :precondition (and {literals(every, rng.randint(0, 2))})"
        f" :effect (and {literals(basic, rng.randint(1, 3))}))"
        for name in ("one", "two", "three")
    ]


def domain_text(axioms: Sequence[Axiom], actions: Sequence[str] = ()) -> str:
    listed = []
    for head, kinds, body in axioms:
        words = [head.predicate, *(f"{name} - {kind}" for name, kind in kinds.items())]
        listed.append(f"(:derived ({' '.join(words)}) {written(body)})")
    return f"""(define (domain d) (:types cup lid) (:constants a - cup)
      (:predicates (p) (q ?x) (r ?x ?y) (d) (e ?x) (f ?x ?y)) {" ".join([*listed, *actions])})"""
