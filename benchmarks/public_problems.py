"""Random problems of any size for three public domains, whose files are not part of this project.

Everything that can be carried may be on its way at first, so that the problems begin where few demonstrations do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from bilevel.symbolic.domain import Atom, Problem
from bilevel.tabletop.problems import names


def ferry_problem(size: int, rng: random.Random) -> Problem:
    """As many cars as locations, each somewhere; in every other problem one of them is on the ferry."""
    cars, locations = names("car", size), names("location", size)
    aboard = rng.choice(cars) if rng.random() < 0.5 else None
    state = [Atom("at", (car, rng.choice(locations))) for car in cars if car != aboard]
    state += [Atom("on", (aboard,)) if aboard else Atom("empty-ferry"), Atom("at-ferry", (rng.choice(locations),))]
    goal = [Atom("at", (car, rng.choice(locations))) for car in cars if rng.random() < 0.9]
    objects = {**dict.fromkeys(cars, "car"), **dict.fromkeys(locations, "location")}
    return Problem(f"ferry-{size}", "ferry", objects, frozenset(state), frozenset(goal))


def gripper_problem(size: int, rng: random.Random) -> Problem:
    """Balls in two rooms; each gripper may hold one at first."""
    balls, rooms, grippers = names("ball", size), ["room-a", "room-b"], ["left", "right"]
    held = {gripper: ball for gripper, ball in zip(grippers, rng.sample(balls, 2), strict=True) if rng.random() < 0.5}
    state = [Atom("room", (room,)) for room in rooms] + [Atom("ball", (ball,)) for ball in balls]
    state += [Atom("gripper", (gripper,)) for gripper in grippers] + [Atom("at-robby", (rng.choice(rooms),))]
    state += [Atom("carry", (held[g], g)) if g in held else Atom("free", (g,)) for g in grippers]
    state += [Atom("at", (ball, rng.choice(rooms))) for ball in balls if ball not in held.values()]
    goal = [Atom("at", (ball, rng.choice(rooms))) for ball in balls if rng.random() < 0.9]
    objects = dict.fromkeys([*balls, *rooms, *grippers], "object")
    return Problem(f"gripper-{size}", "gripper-strips", objects, frozenset(state), frozenset(goal))


def miconic_problem(size: int, rng: random.Random) -> Problem:
    """As many passengers as floors; every fifth has boarded the lift already."""
    passengers, floors = names("passenger", size), names("floor", size)
    state = [Atom("above", (low, high)) for number, low in enumerate(floors) for high in floors[number + 1 :]]
    state.append(Atom("lift-at", (rng.choice(floors),)))
    for passenger in passengers:
        origin, destination = rng.sample(floors, 2)
        aboard = rng.random() < 0.2
        state.append(Atom("boarded", (passenger,)) if aboard else Atom("origin", (passenger, origin)))
        state.append(Atom("destin", (passenger, destination)))
    goal = [Atom("served", (passenger,)) for passenger in passengers if rng.random() < 0.9]
    objects = {**dict.fromkeys(passengers, "passenger"), **dict.fromkeys(floors, "floor")}
    return Problem(f"miconic-{size}", "miconic", objects, frozenset(state), frozenset(goal))


# For each the numbers of objects up to which its rules can be proved, and the size of the larger problems.
PUBLIC: Mapping[str, tuple[Callable[[int, random.Random], Problem], dict[str, int], int]] = {
    "ferry": (ferry_problem, {"car": 3, "location": 3}, 30),
    "gripper": (gripper_problem, {}, 50),
    "miconic": (miconic_problem, {"passenger": 2, "floor": 3}, 30),
}
