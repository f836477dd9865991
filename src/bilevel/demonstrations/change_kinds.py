"""Changes of labels, counted by what they are but for the objects in them; of each kind, the first is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from bilevel.rules.nearest_action import nearest_action
from bilevel.rules.traces import Change
from bilevel.symbolic.domain import Atom, Domain, Facts

MOST_LOOKED_AT = 20  # kinds of changes, for which the nearest action is sought


class Kind(msgspec.Struct):
    """Changes that are the same but for the objects in them; all but the first three fields are about the first."""

    change: str  # lifted: "+on(?cube, ?spot) -holding(?cube)"
    count: int
    reported: int  # by the environment, as events
    episode: int
    step: int
    came: tuple[str, ...]
    went: tuple[str, ...]
    actions: tuple[str, ...]  # that explain it; none, or several
    nearest: str | None = None  # where none does
    lacks: str | None = None


class Kinds:
    """Changes of some sort, such as those that no action explains, gathered one by one."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._first: dict[str, tuple[Change, Mapping[str, str]]] = {}

    def note(self, episode: int, change: Change, objects: Mapping[str, str], reported: bool = False) -> None:
        """Count a change, and keep the first of its kind."""
        came, went = change.after - change.before, change.before - change.after
        name = lifted(came, went, objects)
        kind = self._kinds.get(name)
        if kind is None:
            kind = Kind(name, 0, 0, episode, change.step, _texts(came), _texts(went), tuple(map(str, change.actions)))
            self._kinds[name] = kind
            self._first[name] = change, objects
        kind.count += 1
        kind.reported += reported

    def by_count(self) -> list[Kind]:
        """Return the kinds, the most frequent first."""
        return sorted(self._kinds.values(), key=lambda kind: (-kind.count, kind.change))

    def with_nearest(self, domain: Domain) -> list[Kind]:
        """Return the kinds, the most frequent first; these have the nearest action."""
        kinds = self.by_count()
        for kind in kinds[:MOST_LOOKED_AT]:
            change, objects = self._first[kind.change]
            nearest = nearest_action(domain, change.before, change.after, objects)
            if nearest is not None:
                kind.nearest, kind.lacks = str(nearest.action.action), str(nearest.lacks)
        return kinds


def lifted(came: Facts, went: Facts, objects: Mapping[str, str]) -> str:
    """Return what came and went, with variables named by types in the place of objects: `+on(?cube, ?spot)`."""
    variables: dict[str, str] = {}
    taken: Counter[str] = Counter()

    def variable(name: str) -> str:
        if name not in variables:
            kind = objects.get(name, "object")
            taken[kind] += 1
            variables[name] = f"?{kind}{taken[kind] if taken[kind] > 1 else ''}"
        return variables[name]

    signed = [(sign, fact) for sign, facts in (("+", came), ("-", went)) for fact in sorted(facts)]
    return " ".join(f"{sign}{Atom(fact.predicate, tuple(map(variable, fact.terms)))}" for sign, fact in signed)


def _texts(facts: Iterable[Atom]) -> tuple[str, ...]:
    return tuple(map(str, sorted(facts)))
