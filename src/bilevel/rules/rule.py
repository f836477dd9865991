"""A condition-action rule, and one form for all rules that are equal up to the names of their variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from bilevel.symbolic.domain import EQUALITY, NO_FACTS, ROOT_TYPE, Action, Atom, Domain, Facts, Parameter
from bilevel.symbolic.semantics import substitute_all


def inequality(one: str, other: str) -> Atom:
    """Return the atom that, among negative conditions, says that two terms differ; the same whichever comes first."""
    return Atom(EQUALITY, (min(one, other), max(one, other)))


@dataclass(frozen=True, slots=True)
class GoalOrder:
    """A goal `later` waits as long as a goal `earlier` is unachieved, where the static facts of `condition` hold."""

    variables: tuple[Parameter, ...]
    later: Atom
    earlier: Atom
    condition: Facts = NO_FACTS

    def __str__(self) -> str:
        condition = f" if {' & '.join(map(str, sorted(self.condition)))}" if self.condition else ""
        return f"{self.later} after {self.earlier}{condition}"

    @staticmethod
    def from_rule(rule: Rule) -> GoalOrder:
        """Return the order whose later goal is the rule's head, and its earlier goal the rule's goal."""
        (earlier,) = rule.goal_condition
        return GoalOrder(rule.variables, Atom(*rule.action), earlier, rule.state_condition)

    def as_rule(self) -> Rule:
        """Return the rule of which it is the order; so both are named and checked alike."""
        return Rule(0, self.variables, self.condition, frozenset({self.earlier}), Action(*self.later))


@dataclass(frozen=True, slots=True)
class Rule:
    """In a state and a goal that meet the conditions, do `action`; the lowest priority goes first.

    `state_condition` must be present and `negative_condition` absent from the state; `goal_condition` must be among
    the goals not yet achieved. A negative `=` atom says that two terms differ. Two different terms of the action
    always stand for different objects; other variables may coincide. An inequality's terms are kept in order. `orders`
    say which goals wait for which, the same in all rules of a policy; `source` says where the rule was read, such as
    `blocks.rules:4`.
    """

    priority: int
    variables: tuple[Parameter, ...]
    state_condition: Facts
    goal_condition: Facts
    action: Action
    negative_condition: Facts = NO_FACTS
    orders: tuple[GoalOrder, ...] = field(default=(), repr=False)
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        stated = (inequality(*a.terms) if a.predicate == EQUALITY else a for a in self.negative_condition)
        object.__setattr__(self, "negative_condition", frozenset(stated))

    def __str__(self) -> str:
        return f"{self.priority}: {' & '.join(self.conditions())} -> {self.action}"

    def literals(self) -> Iterator[tuple[str, Atom]]:
        """Yield the conditions for reading: facts (""), absent facts ("not"), inequalities ("!="), goals ("goal")."""
        yield from (("", atom) for atom in self.in_reading_order(self.state_condition))
        yield from (("not", atom) for atom in self.in_reading_order(self.absent))
        yield from (("!=", atom) for atom in sorted(self.negative_condition - self.absent))
        yield from (("goal", atom) for atom in self.in_reading_order(self.goal_condition))

    def conditions(self) -> Iterator[str]:
        """Yield the conditions as text, as in a rule file."""
        for kind, atom in self.literals():
            yield " != ".join(atom.terms) if kind == "!=" else f"{kind} {atom}".lstrip()

    def in_reading_order(self, atoms: Facts) -> list[Atom]:
        """Return the atoms sorted: what is said of the action's first argument first, what has no arguments last."""
        head = self.action.arguments

        def rank(atom: Atom) -> tuple[bool, list[tuple[int, str]], str]:
            terms = [(head.index(term) if term in head else len(head), term) for term in atom.terms]
            return not terms, terms, atom.predicate

        return sorted(atoms, key=rank)

    def renamed(self, names: Mapping[str, str]) -> Rule:
        """Return the rule with all its variables renamed, listed in the order of `names`."""
        types = self.types
        return replace(
            self,
            variables=tuple(Parameter(new, types[old]) for old, new in names.items()),
            state_condition=substitute_all(self.state_condition, names),
            goal_condition=substitute_all(self.goal_condition, names),
            negative_condition=substitute_all(self.negative_condition, names),
            action=Action(self.action.name, tuple(names.get(a, a) for a in self.action.arguments)),
        )

    @property
    def types(self) -> dict[str, str]:
        """The types of the variables by their names."""
        return {variable.name: variable.type for variable in self.variables}

    @property
    def atoms(self) -> Facts:
        """The atoms of all conditions."""
        return self.state_condition | self.goal_condition | self.negative_condition

    @property
    def inequalities(self) -> frozenset[tuple[str, str]]:
        """Pairs of terms that must differ, the action's own included, each pair sorted."""
        head = set(self.action.arguments)
        stated = ((a.terms[0], a.terms[1]) for a in self.negative_condition if a.predicate == EQUALITY)
        return frozenset(stated).union((a, b) for a in head for b in head if a < b)

    @property
    def absent(self) -> frozenset[Atom]:
        """The facts that must be absent (the negative condition without its inequalities)."""
        return frozenset(atom for atom in self.negative_condition if atom.predicate != EQUALITY)


def orders_of(rules: Iterable[Rule]) -> tuple[GoalOrder, ...]:
    """Return the orders of goals that go with the rules."""
    return tuple(dict.fromkeys(order for rule in rules for order in rule.orders))


Colouring = dict[str, int]


def canonical(rule: Rule, domain: Domain) -> Rule:
    """Return the rule with its variables named after their types, the same for all renamings of the rule.

    Variables are told apart by what they take part in, refined until nothing changes; where some still look alike,
    each of them is tried as the first, unless a symmetry makes it as good as another, and the smallest result wins.
    """
    found = _canonical(rule, tuple(sorted({*domain.types, *domain.types.values()} - {ROOT_TYPE})))
    return found if found.source == rule.source else replace(found, source=rule.source)


@lru_cache(maxsize=10_000)  # plans for problems of one domain are much alike
def _canonical(rule: Rule, kinds: tuple[str, ...]) -> Rule:
    head = rule.action.arguments
    colours = _ranked({v: (head.index(v) if v in head else len(head), kind) for v, kind in rule.types.items()})
    order = min(_orders(rule, colours), key=lambda order: _serialise(rule, order))
    return rule.renamed(_names(rule, order, kinds))


def _atoms(rule: Rule) -> list[tuple[str, str, tuple[str, ...]]]:
    return (
        [("state", atom.predicate, atom.terms) for atom in rule.state_condition]
        + [("goal", atom.predicate, atom.terms) for atom in rule.goal_condition]
        + [("absent", atom.predicate, atom.terms) for atom in rule.negative_condition]
        + [("absent", EQUALITY, atom.terms[::-1]) for atom in rule.negative_condition if atom.predicate == EQUALITY]
    )


def _ranked(keys: Mapping[str, object]) -> Colouring:
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values()), key=repr))}
    return {v: ranks[key] for v, key in keys.items()}


def _refined(rule: Rule, colours: Colouring) -> Colouring:
    """Split colours by the atoms their variables occur in, until no colour splits any more."""
    atoms = _atoms(rule)
    while True:
        coloured = {variable: f"?{colour:04}" for variable, colour in colours.items()}
        keys = {}
        for variable, colour in colours.items():
            seen = sorted(
                (part, predicate, tuple(i for i, t in enumerate(terms) if t == variable), _renamed(terms, coloured))
                for part, predicate, terms in atoms
                if variable in terms
            )
            keys[variable] = repr((f"{colour:04}", seen))
        refined = _ranked(keys)
        if len(set(refined.values())) == len(set(colours.values())):
            return colours
        colours = refined


def _renamed(terms: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(term, term) for term in terms)


def _orders(rule: Rule, colours: Colouring) -> Iterator[list[str]]:
    """Yield orders of the variables that respect the colours; more than one where refinement leaves a tie.

    Where putting one variable first looks in the end like putting another first, a symmetry of the rule takes one to
    the other, so one of the two will do.
    """
    colours = _refined(rule, colours)
    shared = min((colour for colour, number in Counter(colours.values()).items() if number > 1), default=None)
    if shared is None:
        yield sorted(colours, key=colours.__getitem__)
        return
    tried = []
    for first in sorted(variable for variable, colour in colours.items() if colour == shared):
        # The first gets a colour of its own, before the others that had the same.
        split = {v: colour + (colour > shared or (colour == shared and v != first)) for v, colour in colours.items()}
        orders = _orders(rule, split)
        order = next(orders)
        likeness = _serialise(rule, order)
        if likeness not in tried:
            tried.append(likeness)
            yield order
            yield from orders


def _serialise(rule: Rule, order: Sequence[str]) -> list[tuple[str, str, tuple[str, ...]]]:
    place = {variable: f"?{i:04}" for i, variable in enumerate(order)}
    return sorted((part, predicate, _renamed(terms, place)) for part, predicate, terms in _atoms(rule))


def _names(rule: Rule, order: Sequence[str], kinds: Sequence[str]) -> dict[str, str]:
    """Return names for the variables after their types: ?b and ?b2 for blocks, ?bu for a button.

    A name is the shortest beginning of the type's name that no type before it has taken.
    """
    stems = {ROOT_TYPE: "x"}
    for kind in kinds:
        beginnings = (kind[:length] for length in range(1, len(kind) + 1))
        stems[kind] = next((b for b in beginnings if b not in stems.values() and not b[-1].isdigit()), kind)
    counts: Counter[str] = Counter()
    names = {}
    for variable in order:
        kind = rule.types[variable]
        counts[kind] += 1
        names[variable] = f"?{stems.get(kind, kind)}{counts[kind] if counts[kind] > 1 else ''}"
    return names
