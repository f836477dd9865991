"""A learned domain, and an operator in the making."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bilevel.domain_learning.approach import Approach
from bilevel.domain_learning.lifting import Occurrence
from bilevel.symbolic.domain import NO_FACTS, Domain, Facts, Outcome, Parameter, Schema

BESIDE = "?beside"  # the variable of an object to which the agent comes, and which the effects do not mention


@dataclass(frozen=True)
class DomainSettings:
    """How a domain is learned.

    `settling`: what changes within so many timesteps of each other is one change. `blip`: what a label says for at most
    so many timesteps is taken for a mislabel. Both are 0 for plans, where each state is a step. `fewest`: what happens
    less often, or in fewer episodes, or in a smaller `share` of all changes, is no operator. `misses`: this share of
    the occurrences may lack a condition.
    """

    settling: int = 5
    blip: int = 2
    fewest: int = 3
    share: float = 0.005
    misses: float = 0.03


@dataclass(frozen=True)
class Dropped:
    """A change that was not taken for an operator: what it was, how often it was seen, and where first."""

    text: str
    count: int
    episode: int
    step: int


@dataclass(frozen=True)
class LearnedDomain:
    """A domain with its operators and events, and what was seen of each.

    `counts` says of each schema and event how often each of its outcomes was seen; `untold` names the parameters on
    which the controls do not depend.
    """

    domain: Domain
    counts: Mapping[str, tuple[int, ...]]
    untold: Mapping[str, tuple[str, ...]]
    dropped: tuple[Dropped, ...]


@dataclass
class Operator:
    """An operator in the making, over variables that have no names yet."""

    outcomes: list[tuple[Outcome, int]]
    types: dict[str, str]  # of the parameters
    occurrences: list[Occurrence]
    approach: Approach
    raw: Facts = NO_FACTS  # all that held always
    conditions: Facts = NO_FACTS
    linked: dict[str, Facts] = field(default_factory=dict)  # further variables, and what is said of them
    negative: Facts = NO_FACTS
    spared: Facts = NO_FACTS  # what is deleted, if it is there

    @property
    def deleted(self) -> Facts:
        """What is deleted must have been there, unless that was spared."""
        return frozenset(atom for outcome, _ in self.outcomes for atom in outcome.delete) - self.spared

    @property
    def count(self) -> int:
        """How often it was seen."""
        return sum(count for _, count in self.outcomes)

    @property
    def all_types(self) -> dict[str, str]:
        """The types of its parameters, and of what nature chooses."""
        return {**self.types, **{p.name: p.type for outcome, _ in self.outcomes for p in outcome.chosen}}

    def schema(self, name: str) -> Schema:
        """Return it as an action schema of this name."""
        parameters = tuple(Parameter(variable, kind) for variable, kind in self.types.items())
        return Schema(name, parameters, self.conditions, tuple(o for o, _ in self.outcomes), self.negative)
