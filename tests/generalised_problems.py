"""Random problems of classical domains for generalised planning: small ones to learn from, large ones to solve.

The domains are written anew (`tests/generalised/*.pddl`) with the meaning that they have in the planning
competitions, less finding ways on a map; numbers of objects are those of a public collection for generalised planning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

from bilevel.symbolic.domain import Atom, Domain, Problem
from bilevel.symbolic.pddl import read_domain

FOLDER = Path(__file__).parent / "generalised"
Counts = Mapping[str, int]
Fact = tuple[str, ...]
Drawn = tuple[Mapping[str, Sequence[str]], Iterable[Fact], Iterable[Fact]]  # objects by type, facts, goals


def some(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(1, count + 1)]


def generalised_domain(name: str) -> Domain:
    return read_domain(FOLDER / f"{name}.pddl")


def one_of_each(rng: random.Random, choices: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs in which every one of both occurs, each of the longer one's once."""
    longer = max(len(choices), len(others))
    many, few = (choices, others) if len(choices) == longer else (others, choices)
    drawn = [*few, *rng.choices(few, k=longer - len(few))]
    rng.shuffle(drawn)
    for one, other in zip(many, drawn, strict=True):
        yield (one, other) if many is choices else (other, one)


def ferry(rng: random.Random, n: Counts) -> Drawn:
    cars, places = some("car", n["cars"]), some("place", n["places"])
    facts: list[Fact] = [("ferry-at", rng.choice(places)), ("ferry-empty",)]
    ways = [(car, *rng.sample(places, 2)) for car in cars]
    facts += [("at", car, start) for car, start, _ in ways]
    return {"car": cars, "place": places}, facts, [("at", car, end) for car, _, end in ways]


def gripper(rng: random.Random, n: Counts) -> Drawn:
    balls, rooms, grippers = some("ball", n["balls"]), ["room-a", "room-b"], ["left", "right"]
    facts: list[Fact] = [("robot-at", "room-a"), *(("at", ball, "room-a") for ball in balls)]
    facts += [("room", r) for r in rooms] + [("ball", b) for b in balls]
    facts += [fact for g in grippers for fact in (("gripper", g), ("free", g))]
    return {"object": [*rooms, *grippers, *balls]}, facts, [("at", ball, "room-b") for ball in balls]


def miconic(rng: random.Random, n: Counts) -> Drawn:
    passengers, floors = some("passenger", n["passengers"]), some("floor", n["floors"])
    facts: list[Fact] = [("above", low, high) for i, low in enumerate(floors) for high in floors[i + 1 :]]
    facts.append(("lift-at", rng.choice(floors)))
    for p in passengers:
        origin, destination = rng.sample(floors, 2)
        facts += [("origin", p, origin), ("destination", p, destination)]
    return {"passenger": passengers, "floor": floors}, facts, [("served", p) for p in passengers]


def logistics(rng: random.Random, n: Counts) -> Drawn:
    cities, aeroplanes, packages = (
        some("city", n["cities"]),
        some("plane", n["aeroplanes"]),
        some("package", n["packages"]),
    )
    trucks, places = (
        some("truck", n["cities"]),
        [f"place{c + 1}-{i + 1}" for c in range(len(cities)) for i in range(n["size"])],
    )
    home = dict(zip(places, (city for city in cities for _ in range(n["size"])), strict=True))
    airports = places[:: n["size"]]
    facts: list[Fact] = [("in-city", place, city) for place, city in home.items()]
    facts += [("has-airport", place) for place in airports]
    facts += [
        ("at", truck, rng.choice([p for p in places if home[p] == city]))
        for truck, city in zip(trucks, cities, strict=True)
    ]
    facts += [("at", plane, rng.choice(airports)) for plane in aeroplanes]
    ways = [(package, rng.choice(places), rng.choice(places)) for package in packages]
    facts += [("at", package, start) for package, start, _ in ways]
    objects = {"city": cities, "aeroplane": aeroplanes, "truck": trucks, "place": places, "package": packages}
    return objects, facts, [("at", package, end) for package, _, end in ways]


def transport(rng: random.Random, n: Counts) -> Drawn:
    vehicles, packages, places = (
        some("vehicle", n["vehicles"]),
        some("package", n["packages"]),
        some("place", n["places"]),
    )
    sizes = some("size", n["capacity"] + 1)
    facts: list[Fact] = [("one-less", a, b) for a, b in pairwise(sizes)]
    facts += [("room", v, rng.choice(sizes[1:])) for v in vehicles] + [("at", v, rng.choice(places)) for v in vehicles]
    ways = [(package, *rng.sample(places, 2)) for package in packages]
    facts += [("at", package, start) for package, start, _ in ways]
    objects = {"vehicle": vehicles, "package": packages, "place": places, "size": sizes}
    return objects, facts, [("at", package, end) for package, _, end in ways]


def satellite(rng: random.Random, n: Counts) -> Drawn:
    satellites, instruments = some("satellite", n["satellites"]), some("instrument", n["instruments"])
    modes, directions = some("mode", n["modes"]), some("direction", n["directions"])
    facts: list[Fact] = [("pointing", s, rng.choice(directions)) for s in satellites]
    facts += [("power-left", s) for s in satellites]
    facts += [("calibration-target", i, rng.choice(directions)) for i in instruments]
    facts += [("on-board", i, s) for i, s in one_of_each(rng, instruments, satellites)]
    supported = {*one_of_each(rng, instruments, modes)}
    supported |= {pair for pair in product(instruments, modes) if rng.random() < 0.5}
    facts += [("supports", *pair) for pair in sorted(supported)]
    goals: list[Fact] = [("pointing", s, rng.choice(directions)) for s in satellites if rng.random() < 0.5]
    images = [*product(directions, modes)]
    goals += [("image-of", *image) for image in rng.sample(images, rng.randint(1, len(images)))]
    objects = {"satellite": satellites, "instrument": instruments, "mode": modes, "direction": directions}
    return objects, facts, goals


def rovers(rng: random.Random, n: Counts) -> Drawn:
    rovers_, waypoints, cameras = (
        some("rover", n["rovers"]),
        some("waypoint", n["waypoints"]),
        some("camera", n["cameras"]),
    )
    objectives, modes = some("objective", n["objectives"]), ["colour", "high-res", "low-res"]
    stores = [f"store-{r}" for r in rovers_]
    facts: list[Fact] = [("lander-at", "lander", rng.choice(waypoints))]
    facts += [("at", r, rng.choice(waypoints)) for r in rovers_]
    facts += [fact for r, s in zip(rovers_, stores, strict=True) for fact in (("store-of", s, r), ("empty", s))]
    equipped = {name: rng.sample(rovers_, rng.randint(1, len(rovers_))) for name in ("soil", "rock", "images")}
    facts += [(f"takes-{name}", r) for name, able in equipped.items() for r in able]
    line = rng.sample(waypoints, len(waypoints))
    links = {pair for i, w in enumerate(line[1:], 1) for v in [rng.choice(line[:i])] for pair in ((v, w), (w, v))}
    links |= {
        pair for a, b in product(waypoints, waypoints) if a < b and rng.random() < 0.2 for pair in ((a, b), (b, a))
    }
    facts += [("visible", *pair) for pair in sorted(links)]
    for c in cameras:
        facts += [("calibration-target", c, rng.choice(objectives)), ("on-board", c, rng.choice(equipped["images"]))]
    supported = {*one_of_each(rng, cameras, modes)} | {p for p in product(cameras, modes) if rng.random() < 0.5}
    facts += [("supports", *pair) for pair in sorted(supported)]
    for o in objectives:
        facts += [("visible-from", o, w) for w in rng.sample(waypoints, rng.randint(1, len(waypoints)))]
    goals: list[Fact] = []
    for kind in ("soil", "rock"):
        there = [w for w in waypoints if rng.random() < 0.5]
        facts += [(f"{kind}-at", w) for w in there]
        goals += [(f"{kind}-reported", w) for w in rng.sample(there, rng.randint(0, len(there)))]
    images = [*product(objectives, modes)]
    goals += [("image-reported", *image) for image in rng.sample(images, rng.randint(1, len(images)))]
    objects = {"rover": rovers_, "waypoint": waypoints, "camera": cameras, "objective": objectives, "mode": modes}
    return {**objects, "store": stores, "lander": ["lander"]}, facts, goals


def barman(rng: random.Random, n: Counts) -> Drawn:
    cocktails, ingredients = some("cocktail", n["cocktails"]), some("ingredient", n["ingredients"])
    shots, taps, levels = some("shot", n["cocktails"] + 1), some("tap", n["ingredients"]), some("level", 3)
    containers = ["shaker", *shots]
    facts: list[Fact] = [("hand-empty", h) for h in ("left", "right")]
    facts += [(name, c) for name in ("on-table", "clean", "empty") for c in containers]
    facts += [("dispenses", t, i) for t, i in zip(taps, ingredients, strict=True)]
    facts += [("empty-level", "shaker", levels[0]), ("level", "shaker", levels[0])]
    facts += [("next", a, b) for a, b in pairwise(levels)]
    for c in cocktails:
        first, second = rng.sample(ingredients, 2)
        facts += [("first-part", c, first), ("second-part", c, second)]
    wanted = rng.sample(cocktails, len(cocktails))
    objects = {"shaker": ["shaker"], "hand": ["left", "right"], "shot": shots, "ingredient": ingredients}
    goals = [("contains", s, c) for s, c in zip(shots, wanted, strict=False)]
    return {**objects, "cocktail": cocktails, "dispenser": taps, "level": levels}, facts, goals


class Family(NamedTuple):
    """How problems of a domain are drawn, and for each level the numbers of objects of its first and its last one."""

    draw: Callable[[random.Random, Counts], Drawn]
    levels: Mapping[str, tuple[Counts, Counts]]


LEVELS = ("training", "easy", "medium", "hard")


def family(draw: Callable[[random.Random, Counts], Drawn], **ranges: Sequence[tuple[int, int]]) -> Family:
    """Return a family; for each kind of object there is a range for each level."""

    def counts(level: int, side: int) -> Counts:
        return {kind: ends[level][side] for kind, ends in ranges.items()}

    return Family(draw, {level: (counts(n, 0), counts(n, 1)) for n, level in enumerate(LEVELS)})


FAMILIES: Mapping[str, Family] = {
    "barman": family(
        barman,
        cocktails=[(2, 5), (4, 8), (20, 60), (103, 393)],
        ingredients=[(3, 3), (3, 3), (4, 6), (10, 30)],
    ),
    "ferry": family(
        ferry, cars=[(1, 3), (4, 10), (20, 100), (500, 974)], places=[(2, 4), (4, 10), (10, 50), (250, 487)]
    ),
    "gripper": family(gripper, balls=[(1, 3), (4, 10), (100, 1_000), (5_000, 50_000)]),
    "logistics": family(
        logistics,
        aeroplanes=[(3, 3), (1, 5), (9, 22), (30, 64)],
        cities=[(3, 3), (1, 5), (9, 22), (30, 64)],
        size=[(5, 5), (2, 2), (8, 8), (15, 15)],
        packages=[(5, 5), (5, 19), (20, 49), (50, 108)],
    ),
    "miconic": family(
        miconic, passengers=[(1, 2), (3, 10), (20, 80), (100, 400)], floors=[(2, 7), (7, 20), (20, 60), (50, 100)]
    ),
    "rovers": family(
        rovers,
        rovers=[(1, 4), (1, 4), (5, 10), (15, 30)],
        waypoints=[(4, 10), (4, 10), (15, 90), (100, 200)],
        cameras=[(1, 4), (1, 4), (5, 50), (60, 100)],
        objectives=[(1, 10), (1, 10), (15, 80), (100, 200)],
    ),
    "satellite": family(
        satellite,
        satellites=[(3, 8), (3, 10), (15, 40), (50, 100)],
        instruments=[(3, 14), (3, 20), (15, 80), (50, 200)],
        modes=[(1, 3), (1, 3), (3, 5), (5, 10)],
        directions=[(4, 9), (4, 10), (15, 30), (40, 100)],
    ),
    "transport": family(
        transport,
        vehicles=[(2, 4), (3, 6), (10, 20), (30, 50)],
        packages=[(1, 6), (1, 15), (5, 45), (20, 200)],
        places=[(3, 10), (5, 15), (20, 40), (50, 100)],
        capacity=[(2, 2), (2, 2), (4, 4), (10, 10)],
    ),
}


def generalised_problems(name: str, level: str, count: int) -> list[Problem]:
    """Return problems of a domain and a level, from its smallest to its largest."""
    draw, levels = FAMILIES[name]
    first, last = levels[level]
    problems = []
    for number in range(count):
        share = number / max(count - 1, 1)
        counts = {kind: first[kind] + round(share * (last[kind] - first[kind])) for kind in first}
        objects, facts, goals = draw(random.Random(f"{name} {level} {number}"), counts)
        types = {each: kind for kind, members in objects.items() for each in members}
        state, goal = (frozenset(Atom(fact[0], fact[1:]) for fact in given) for given in (facts, goals))
        problems.append(Problem(f"{name}-{level}-{number + 1:02}", name, types, state, goal))
    return problems
