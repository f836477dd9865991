"""Episodes of a made-up robot on a plane, which goes to things and changes symbols there; labels may lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.changes import ShownEpisode
from bilevel.symbolic.domain import Atom, Facts

Place = NDArray[Any]
STEPS = 12  # from one thing to the next


def atom(text: str) -> Atom:
    """The fact that a text such as `on a b` means."""
    name, *terms = text.split()
    return Atom(name, tuple(terms))


def facts(*texts: str) -> Facts:
    return frozenset(map(atom, texts))


def still_episode(states: Sequence[Facts], objects: Mapping[str, str]) -> ShownEpisode:
    """An episode in which nothing moves; an object is there once a fact mentions it, or if none ever does."""
    seen = [
        {term for fact in frozenset().union(*states[: step + 1]) for term in fact.terms} for step in range(len(states))
    ]
    visible = [[name in now or name not in seen[-1] for name in objects] for now in seen]
    places = np.full((len(states), len(objects), 0), np.nan, np.float32)
    agent = np.zeros((len(states), 0), np.float32)
    return ShownEpisode(states, objects, [], agent, places, np.array(visible, bool), np.zeros((0, 0), np.float32))


@dataclass
class Acting:
    """A robot, things at places, and what is recorded of them."""

    objects: dict[str, str]
    state: Facts
    rng: np.random.Generator
    hidden: set[str] = field(default_factory=set)  # not there yet
    placeless: frozenset[str] = frozenset()  # there, but at no place, as colours are
    carried: str | None = None
    goal: Facts = frozenset()

    def __post_init__(self) -> None:
        self.places = {name: self.rng.uniform(-1, 1, 2) for name in self.objects}
        self.agent = self.rng.uniform(-1, 1, 2)
        self.states: list[Facts] = []
        self.agents: list[Place] = []
        self.seen: list[dict[str, Place]] = []
        self._record()

    def _record(self) -> None:
        self.states.append(self.state)
        self.agents.append(self.agent.copy())
        self.seen.append({name: place.copy() for name, place in self.places.items() if name not in self.hidden})

    def wait(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._record()

    def go_to(self, target: Place) -> None:
        """Move in a straight line, with what is carried."""
        for place in np.linspace(self.agent, target, STEPS + 1)[1:]:
            self.agent = place
            if self.carried:
                self.places[self.carried] = place + 0.01
            self._record()

    def visit(self, name: str) -> None:
        self.go_to(self.places[name] + self.rng.normal(0, 0.003, 2))

    def wander(self) -> None:
        self.go_to(self.rng.uniform(-1, 1, 2))

    def change(self, add: tuple[str, ...] = (), delete: tuple[str, ...] = (), wait: int = 8) -> None:
        self.state = (self.state - facts(*delete)) | facts(*add)
        self.wait(wait)

    def appear(self, name: str) -> None:
        self.hidden.discard(name)

    def episode(self, flips: float = 0.0) -> ShownEpisode:
        """What was recorded; each fact of each timestep is wrong with the probability `flips`."""
        names = list(self.objects)
        places = np.full((len(self.states), len(names), 2), np.nan, np.float32)
        for step, seen in enumerate(self.seen):
            for name, place in seen.items():
                places[step, names.index(name)] = place
        agent = np.array(self.agents, np.float32)
        visible = np.array([[name in seen for name in names] for seen in self.seen])
        places[:, [names.index(name) for name in sorted(self.placeless)]] = np.nan
        known = sorted(frozenset().union(*self.states))
        states = [
            state ^ frozenset(fact for fact in known if self.rng.random() < flips) if flips else state
            for state in self.states
        ]
        goals = [self.goal] * len(states)
        return ShownEpisode(states, self.objects, goals, agent, places, visible, np.diff(agent, axis=0))


def blocks_episode(seed: int, flips: float = 0.0, teleports: bool = False, lag: int = 0) -> ShownEpisode:
    """Two blocks are brought to places; where it is wanted, one is later thrown off its place, and labels lag."""
    rng = np.random.default_rng(seed)
    objects = {"b1": "block", "b2": "block", "p1": "place", "p2": "place"}
    acting = Acting(objects, facts("lying b1", "lying b2", "clear p1", "clear p2", "free"), rng)
    acting.goal = facts("at b1 p1", "at b2 p2")
    for number in rng.permutation([1, 2]).tolist():
        bring(acting, f"b{number}", f"p{number}", lag)
    if teleports:
        acting.wander()
        acting.places["b1"] = rng.uniform(-1, 1, 2)
        acting.change(add=("lying b1", "clear p1"), delete=("at b1 p1",))
        acting.wander()
        bring(acting, "b1", "p1", lag)
    return acting.episode(flips)


def bring(acting: Acting, block: str, place: str, lag: int = 0) -> None:
    acting.visit(block)
    acting.change(add=(f"holding {block}",), delete=(f"lying {block}", "free"))
    acting.carried = block
    acting.visit(place)
    acting.carried = None
    if lag:
        acting.change(add=("free",), delete=(f"holding {block}",), wait=lag)
        acting.change(add=(f"at {block} {place}",), delete=(f"clear {place}",))
    else:
        acting.change(add=(f"at {block} {place}", "free"), delete=(f"holding {block}", f"clear {place}"))


COLOURS = frozenset({"red", "blue"})


def machine_episode(seed: int) -> ShownEpisode:
    """A button makes a block of a random colour appear in a box, from where it is taken."""
    rng = np.random.default_rng(seed)
    names = [f"b{number}" for number in range(1, 5)]
    objects = {**dict.fromkeys(names, "block"), "box": "box", "button": "button", "red": "colour", "blue": "colour"}
    acting = Acting(objects, facts("empty box", "free"), rng, hidden={*names}, placeless=COLOURS)
    acting.goal = facts("done b1", "done b2")
    for block in names[:2]:
        acting.visit("button")
        acting.appear(block)
        acting.places[block] = acting.places["box"] + 0.01
        colour = ("red", "blue")[int(rng.integers(2))]
        acting.change(add=(f"in {block} box", f"coloured {block} {colour}"), delete=("empty box",))
        acting.visit(block)
        acting.change(add=(f"done {block}", "empty box"), delete=(f"in {block} box",))
        acting.wander()
    return acting.episode()
