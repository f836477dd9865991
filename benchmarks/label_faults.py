"""Faults in what a domain is learned from: labels that are wrong now and then, and predicates that mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.episodes import Episode
from bilevel.symbolic.domain import Atom, Domain, Facts, Parameter, Predicate

NONE, FLIPPED, UNRELATED, PERTURBED = "none", "1% of labels flipped", "10 unrelated predicates", "perturbed controls"
FAULTS = (NONE, FLIPPED, UNRELATED, PERTURBED)  # the last is one of the demonstrations, not of their labels
FLIP_RATE = 0.01
STATIC, SLOW = 5, 5  # unrelated predicates that never change, and that change now and then
SLOW_RATE = 1 / 300  # per timestep and fact


@dataclass(frozen=True)
class Faulty:
    """Episodes with a fault, and the predicates that it adds."""

    episodes: Sequence[Episode]
    predicates: dict[str, Predicate] = field(default_factory=dict)

    def frame(self, frame: Domain) -> Domain:
        """Return a frame with the predicates that were added."""
        return replace(frame, predicates={**frame.predicates, **self.predicates})


def faulty(episodes: Sequence[Episode], fault: str, seed: int) -> Faulty:
    """Return the episodes with this fault in their labels; the same seed gives the same."""
    rngs = [np.random.default_rng([seed, number]) for number in range(len(episodes))]
    if fault == FLIPPED:
        return Faulty([_flipped(episode, rng) for episode, rng in zip(episodes, rngs, strict=True)])
    if fault == UNRELATED:
        kinds = sorted({kind for episode in episodes for kind in episode.objects.values()})
        predicates = _unrelated(kinds, np.random.default_rng([seed, len(episodes)]))
        spoilt = [_with(episode, predicates, rng) for episode, rng in zip(episodes, rngs, strict=True)]
        return Faulty(spoilt, predicates)
    return Faulty(episodes)


def _flipped(episode: Episode, rng: np.random.Generator) -> Episode:
    """Return the episode with each fact that is ever seen in it wrong in 1% of its timesteps."""
    facts = sorted(frozenset().union(*episode.states))
    wrong = rng.random((len(episode.states), len(facts))) < FLIP_RATE
    states = [
        state ^ frozenset(fact for fact, is_wrong in zip(facts, row, strict=True) if is_wrong)
        for state, row in zip(episode.states, wrong, strict=True)
    ]
    return replace(episode, states=states)


def _unrelated(kinds: Sequence[str], rng: np.random.Generator) -> dict[str, Predicate]:
    """Return predicates of one or two objects of random types; the first of them are static."""
    found = {}
    for number in range(STATIC + SLOW):
        drawn = rng.choice(kinds, size=1 + number % 2)
        parameters = tuple(Parameter(f"?x{place}", str(kind)) for place, kind in enumerate(drawn))
        name = f"static-{number}" if number < STATIC else f"slow-{number}"
        found[name] = Predicate(name, parameters)
    return found


def _with(episode: Episode, predicates: dict[str, Predicate], rng: np.random.Generator) -> Episode:
    """Return the episode with random facts of these predicates, about half of all that are possible."""
    states: list[Facts] = list(episode.states)
    for name, predicate in predicates.items():
        for terms in _terms(episode, predicate):
            holds = bool(rng.random() < 0.5)
            rate = 0.0 if name.startswith("static") else SLOW_RATE
            turns = rng.random(len(states)) < rate
            seen = _seen(episode, terms)
            for now, turned in enumerate(turns):
                holds ^= bool(turned)
                if holds and seen[now]:
                    states[now] |= {Atom(name, terms)}
    return replace(episode, states=states)


def _seen(episode: Episode, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return for each timestep whether all of these objects are visible."""
    if episode.motion is None:
        return np.ones(len(episode.states), np.bool_)
    rows = [list(episode.objects).index(name) for name in names]
    return np.array([row.all() for row in episode.motion.visible[:, rows]], np.bool_)


def _terms(episode: Episode, predicate: Predicate) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()]
    for parameter in predicate.parameters:
        names = [name for name, kind in episode.objects.items() if kind == parameter.type]
        found = [(*terms, name) for terms in found for name in names if name not in terms]
    return found
