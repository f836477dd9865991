"""Nature, who decides how a nondeterministic action turns out."""

from __future__ import annotations

import random
from collections.abc import Mapping

from bilevel.symbolic.domain import Domain, Parameter, Schema
from bilevel.symbolic.plans import NaturesMove


class Nature:
    """Draws outcomes, each with the same probability, and remembers the objects she has made."""

    def __init__(self, domain: Domain, objects: Mapping[str, str], rng: random.Random) -> None:
        self.domain = domain
        self.objects = dict(objects)
        self._rng = rng
        self._known: dict[str, list[str]] = {}
        self._made: dict[str, int] = {}

    def move(self, schema: Schema) -> NaturesMove:
        """An outcome of an action of this schema, with values for the outcome's open variables."""
        index = self._rng.randrange(len(schema.outcomes)) if len(schema.outcomes) > 1 else 0
        outcome = schema.outcomes[index]
        # What she makes in this move she cannot choose in it, so the numbers of objects are taken beforehand.
        known = [0 if v.name in outcome.new else len(self._objects_of(v.type)) for v in outcome.chosen]
        return NaturesMove(index, {v.name: self._value(v, n) for v, n in zip(outcome.chosen, known, strict=True)})

    def _value(self, variable: Parameter, known: int) -> str:
        """One of the first `known` objects of the variable's type, or a new one where that is none."""
        return self._objects_of(variable.type)[self._rng.randrange(known)] if known else self._new_object(variable.type)

    def _objects_of(self, kind: str) -> list[str]:
        if kind not in self._known:
            self._known[kind] = [o for o, own in self.objects.items() if self.domain.is_subtype(own, kind)]
        return self._known[kind]

    def _new_object(self, kind: str) -> str:
        """A name that no object has yet: block1, block2, …"""
        while True:
            self._made[kind] = self._made.get(kind, 0) + 1
            name = f"{kind}{self._made[kind]}"
            if name not in self.objects:
                break
        self.objects[name] = kind
        for ancestor, known in self._known.items():
            if self.domain.is_subtype(kind, ancestor):
                known.append(name)
        return name
