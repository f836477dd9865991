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
        return NaturesMove(index, {v.name: self._value(v, v.name in outcome.new) for v in outcome.chosen})

    def _value(self, variable: Parameter, new: bool) -> str:
        known = self._objects_of(variable.type)
        return self._new_object(variable.type) if new or not known else self._rng.choice(known)

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
