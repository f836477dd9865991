"""Where no policy can help: states that a domain's actions lead into and not out of, and what is missing there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bilevel.rules.completion.policy_space import PolicySpace
from bilevel.rules.verification.policies import listed
from bilevel.symbolic.domain import Atom, Domain, Facts, Outcome, Schema


@dataclass(frozen=True)
class NoWayOut:
    """How many dead ends there are: states, with a goal, that an action leads to and from which no policy gets there.

    One of them is an example. `lasting` are facts that some action takes away and none gives back, as text.
    """

    dead_ends: int
    state: Facts
    goal: Facts
    lasting: tuple[str, ...]

    def __str__(self) -> str:
        share = f"actions lead to {self.dead_ends} states from which no policy surely reaches the goal"
        example = f"for example {listed(self.goal)} from {listed(self.state)}"
        missing = f"; the domain has no action that gives back {', '.join(self.lasting)}" if self.lasting else ""
        return f"no way out: {share}{missing}\n  {example}"


def no_way_out(spaces: Sequence[PolicySpace], domain: Domain) -> NoWayOut | None:
    """Return what is known of the dead ends, if there are any."""
    dead_ends = 0
    example: tuple[Facts, Facts] | None = None
    for space in spaces:
        for goal in space.goals:
            able = space.attainable(goal)
            after = {node for state in able for node in space.successors(state)}
            dead_ends += len(after - able)
            if example is None and after - able:
                example = space.space.facts(min(after - able)), goal
    return NoWayOut(dead_ends, *example, tuple(lasting_losses(domain))) if example else None


def lasting_losses(domain: Domain) -> Iterator[str]:
    """Yield each fact, as text, that an action needs, an action takes away, and no action gives back."""
    needed = {atom.predicate for schema in domain.schemas.values() for atom in schema.precondition}
    told = set()
    for schema in domain.schemas.values():
        for outcome in schema.outcomes:
            for atom in sorted(outcome.delete - outcome.add):
                if atom.predicate in needed and not any(
                    _gives_back(atom, schema, s, o, domain) for s, o in _all(domain)
                ):
                    types = _types(schema, outcome)
                    kinds = ", ".join(f"{term} - {types[term]}" if term in types else term for term in atom.terms)
                    text = f"{atom.predicate}({kinds}), which {schema.name} takes away"
                    if text not in told:
                        told.add(text)
                        yield text


def _all(domain: Domain) -> Iterator[tuple[Schema, Outcome]]:
    return ((schema, outcome) for schema in domain.schemas.values() for outcome in schema.outcomes)


def _types(schema: Schema, outcome: Outcome) -> dict[str, str]:
    return {parameter.name: parameter.type for parameter in (*schema.parameters, *outcome.chosen)}


def _gives_back(atom: Atom, taker: Schema, giver: Schema, outcome: Outcome, domain: Domain) -> bool:
    """Return whether the outcome may add the atom, by its predicate and the types of its terms."""
    lost = {p.name: p.type for p in taker.parameters} | dict(domain.constants)
    given = _types(giver, outcome) | dict(domain.constants)
    for added in outcome.add - outcome.delete:
        if added.predicate == atom.predicate and all(
            domain.is_subtype(lost[a], given[b]) or domain.is_subtype(given[b], lost[a])
            for a, b in zip(atom.terms, added.terms, strict=True)
        ):
            return True
    return False
