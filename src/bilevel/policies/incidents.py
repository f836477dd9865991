"""The times that a policy was at a loss: noted, counted, kept with the results of episodes, and read again to learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bilevel.json_files import decode, read_bytes
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Problem

WAIT, PLAN, NUDGE, RETRY, OTHER, STOP = KINDS = "wait", "plan", "nudge", "retry", "other", "stop"
NO_RULE, UNSEEN, JAM, STALL = REASONS = "no rule", "unseen", "jam", "stall"


@dataclass(frozen=True)
class Incident:
    """That a policy was at a loss, why, and what it did about it; `action` is what it does now, if anything."""

    step: int
    kind: str
    reason: str
    state: Facts
    goal: Facts
    objects: dict[str, str]  # that were seen, with their types
    action: Action | None

    def as_json(self) -> dict[str, Any]:
        """As it is kept; the order of facts is always the same."""
        found: dict[str, Any] = msgspec.to_builtins(self, order="deterministic")
        return found


def count_incidents(incidents: Iterable[Incident]) -> dict[str, int]:
    """How many of each kind there were, without those of which there was none."""
    found = Counter(incident.kind for incident in incidents)
    return {kind: found[kind] for kind in KINDS if found[kind]}


class _Line(msgspec.Struct):
    """What is needed here of the result of an episode."""

    task: str
    incidents: list[Incident] | None = None


def read_problems(paths: Sequence[Path], domain: Domain) -> list[Problem]:
    """The situations in which policies were at a loss, each once, as problems: reach the goal from there.

    `BadInput`, which names the file and the line, for what is no result of an episode, holds no incidents, or is of
    another domain.
    """
    found: dict[tuple[Facts, Facts], Problem] = {}
    for path in paths:
        for number, line in enumerate(read_bytes(path).splitlines(), 1):
            where = f"{path}, line {number}"
            episode = decode(line, _Line, f"{where}: not the result of an episode")
            if episode.incidents is None:
                raise BadInput(f"{where}: incidents were not kept; run `bilevel evaluate` with --keep-incidents")
            for incident in episode.incidents:
                problem = _problem(incident, domain, f"met-{len(found) + 1}", where)
                found.setdefault((problem.state, problem.goal), problem)
    return list(found.values())


def _problem(incident: Incident, domain: Domain, name: str, where: str) -> Problem:
    for what in _unknown(incident, domain):
        raise BadInput(f"{where}: the domain '{domain.name}' does not know {what}: results of another task?")
    objects = {name: kind for name, kind in incident.objects.items() if name not in domain.constants}
    return Problem(name, domain.name, objects, incident.state, incident.goal)


def _unknown(incident: Incident, domain: Domain) -> Iterator[str]:
    """What an incident speaks of that the domain does not have."""
    for kind in incident.objects.values():
        if kind not in domain.types:
            yield f"the type '{kind}'"
    for fact in sorted(incident.state | incident.goal):
        predicate = domain.predicates.get(fact.predicate)
        if predicate is None or len(predicate.parameters) != len(fact.terms):
            yield f"the predicate of {fact}"
        for term in fact.terms:
            if term not in incident.objects and term not in domain.constants:
                yield f"the object '{term}' of {fact}"
