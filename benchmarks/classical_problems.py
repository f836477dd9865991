"""Small random problems of classical planning domains, written anew in their spirit (`benchmarks/classical/*.pddl`).

They are as small as can be, so that all their states can be looked at, and as varied as can be, so that what is never
needed can be told from what is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path

from bilevel.symbolic.domain import Atom, Domain, Problem
from bilevel.symbolic.pddl import read_domain

FOLDER = Path(__file__).parent / "classical"

Fact = tuple[str, ...]
Drawn = tuple[Mapping[str, Sequence[str]], Iterable[Fact]]  # objects by their type, and facts


def classical_domain(name: str) -> Domain:
    return read_domain(FOLDER / f"{name}.pddl")


def classical_problem(name: str, rng: random.Random) -> Problem:
    """Return a random small problem of a domain; it has no goal."""
    objects, facts = CLASSICAL[name](rng)
    types = {each: kind for kind, members in objects.items() for each in members}
    state = frozenset(Atom(fact[0], fact[1:]) for fact in facts)
    return Problem(f"{name}-{rng.randrange(10**6)}", name, types, state, frozenset())


def some(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(1, count + 1)]


def graph(rng: random.Random, nodes: Sequence[str], predicate: str, more: float = 0.2) -> Iterator[Fact]:
    """Yield links that lead from every node to every other, both ways on a random line, and some one way only."""
    line = rng.sample(nodes, len(nodes))
    for one, other in pairwise(line):
        yield (predicate, one, other)
        yield (predicate, other, one)
    for one, other in product(nodes, nodes):
        if one != other and abs(line.index(one) - line.index(other)) > 1 and rng.random() < more:
            yield (predicate, one, other)


def logistics(rng: random.Random) -> Drawn:
    airports, places, cities = some("airport", 2), some("place", rng.randint(1, 2)), some("city", 2)
    trucks, planes, packages = some("truck", rng.randint(1, 2)), some("plane", 1), some("package", rng.randint(1, 2))
    facts: list[Fact] = [("in-city", a, c) for a, c in zip(airports, cities, strict=True)]
    facts += [("in-city", p, rng.choice(cities)) for p in places]
    facts += [("at", t, rng.choice(airports + places)) for t in trucks + packages]
    facts += [("at", p, rng.choice(airports)) for p in planes]
    kinds = {"airport": airports, "place": places, "city": cities, "truck": trucks, "plane": planes}
    return {**kinds, "package": packages}, facts


def satellite(rng: random.Random) -> Drawn:
    satellites, instruments = some("satellite", rng.randint(1, 2)), some("instrument", rng.randint(1, 2))
    modes, targets = some("mode", 2), some("target", rng.randint(2, 3))
    facts: list[Fact] = [("pointing", s, rng.choice(targets)) for s in satellites]
    facts += [("power-available", s) for s in satellites]
    for i in instruments:
        facts += [("on-board", i, rng.choice(satellites)), ("calibration-target", i, rng.choice(targets))]
        facts += [("supports", i, m) for m in rng.sample(modes, rng.randint(1, 2))]
    return {"satellite": satellites, "instrument": instruments, "mode": modes, "target": targets}, facts


def rovers(rng: random.Random) -> Drawn:
    rovers_, waypoints = some("rover", rng.randint(1, 2)), some("waypoint", rng.randint(3, 4))
    stores = [f"store-{r}" for r in rovers_]
    facts: list[Fact] = [("lander-at", "lander", rng.choice(waypoints)), *graph(rng, waypoints, "visible")]
    for r, s in zip(rovers_, stores, strict=True):
        facts += [("at", r, rng.choice(waypoints)), ("store-of", s, r), ("empty", s)]
        facts += [("can-traverse", r, a, b) for a, b in product(waypoints, waypoints) if a != b and rng.random() < 0.7]
    facts += [("soil-at", w) for w in waypoints if rng.random() < 0.6]
    return {"rover": rovers_, "waypoint": waypoints, "store": stores, "lander": ["lander"]}, facts


def transport(rng: random.Random) -> Drawn:
    places, trucks, packages = some("place", 3), some("truck", rng.randint(1, 2)), some("package", 2)
    sizes = some("size", 3)
    facts: list[Fact] = [*graph(rng, places, "road"), *(("next", a, b) for a, b in pairwise(sizes))]
    facts += [("truck-at", t, rng.choice(places)) for t in trucks] + [("at", x, rng.choice(places)) for x in packages]
    facts += [("room", t, rng.choice(sizes[1:])) for t in trucks]
    return {"place": places, "truck": trucks, "package": packages, "size": sizes}, facts


def barman(rng: random.Random) -> Drawn:
    glasses, ingredients = some("glass", rng.randint(1, 2)), some("ingredient", 2)
    containers = [*glasses, "shaker"]
    facts: list[Fact] = [("dispenses", f"tap-{i}", i) for i in ingredients if rng.random() < 0.8]
    facts += [("on-table", c) for c in containers] + [("hand-empty", h) for h in ("left", "right")]
    facts += [("empty", c) for c in containers] + [("clean", c) for c in containers if rng.random() < 0.9]
    objects = {"hand": ["left", "right"], "glass": glasses, "shaker": ["shaker"], "ingredient": ingredients}
    return {**objects, "dispenser": [f"tap-{i}" for i in ingredients]}, facts


def zenotravel(rng: random.Random) -> Drawn:
    planes, people, cities, levels = some("plane", 1), some("person", rng.randint(1, 2)), some("city", 3), some("l", 4)
    facts: list[Fact] = [("plane-at", a, rng.choice(cities)) for a in planes]
    facts += [("fuel", a, rng.choice(levels)) for a in planes] + [("at", p, rng.choice(cities)) for p in people]
    facts += [("next", a, b) for a, b in pairwise(levels)]
    return {"plane": planes, "person": people, "city": cities, "level": levels}, facts


def hanoi(rng: random.Random) -> Drawn:
    discs, pegs = some("disc", rng.randint(2, 4)), some("peg", 3)
    facts: list[Fact] = [("smaller", d, p) for d, p in product(discs, pegs)]
    facts += [("smaller", a, b) for i, b in enumerate(discs) for a in discs[:i]]
    tops = dict(zip(pegs, pegs, strict=True))
    for disc in reversed(discs):
        peg = rng.choice(pegs)
        facts.append(("on", disc, tops[peg]))
        tops[peg] = disc
    return {"object": discs + pegs}, [*facts, *(("clear", top) for top in tops.values())]


def grid(width: int, height: int) -> list[tuple[int, int]]:
    return list(product(range(width), range(height)))


def sokoban(rng: random.Random) -> Drawn:
    cells = {place: f"c{place[0]}{place[1]}" for place in grid(rng.randint(3, 4), 3) if rng.random() < 0.9}
    moves = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}
    facts: list[Fact] = []
    for (x, y), (name, (dx, dy)) in product(cells, moves.items()):
        if (x + dx, y + dy) in cells:
            facts.append(("beside", cells[x, y], cells[x + dx, y + dy], name))
    player, *boxes = rng.sample(list(cells.values()), rng.randint(2, 3))
    facts += [("player-at", player), *(("at", f"box{i}", c) for i, c in enumerate(boxes, 1))]
    facts += [("free", c) for c in cells.values() if c not in (player, *boxes)]
    return {"cell": list(cells.values()), "box": some("box", len(boxes)), "direction": list(moves)}, facts


def driverlog(rng: random.Random) -> Drawn:
    places, drivers, trucks, items = some("p", 3), some("driver", rng.randint(1, 2)), some("truck", 1), some("item", 1)
    facts: list[Fact] = [*graph(rng, places, "road"), *graph(rng, places, "path")]
    facts += [("at", t, rng.choice(places)) for t in drivers + trucks + items] + [("empty", t) for t in trucks]
    return {"place": places, "driver": drivers, "truck": trucks, "item": items}, facts


def keys(rng: random.Random) -> Drawn:
    places, keys_, shapes = some("place", rng.randint(3, 4)), some("key", 2), some("shape", 2)
    here, *others = rng.sample(places, len(places))
    facts: list[Fact] = [*graph(rng, places, "linked"), ("robot-at", here), ("hand-empty",)]
    for k in keys_:
        facts += [("at", k, rng.choice(places)), ("key-shape", k, rng.choice(shapes))]
    for p in others:
        facts += [("lock-shape", p, rng.choice(shapes)), *([("locked", p)] if rng.random() < 0.4 else [])]
    return {"place": places, "key": keys_, "shape": shapes}, facts


def spanner(rng: random.Random) -> Drawn:
    places, men, nuts, spanners = some("place", 4), some("man", rng.randint(1, 2)), some("nut", 2), some("spanner", 3)
    facts: list[Fact] = [("link", a, b) for a, b in pairwise(places)]
    facts += [("man-at", m, rng.choice(places[:2])) for m in men] + [
        ("nut-at", n, rng.choice(places[2:])) for n in nuts
    ]
    facts += [("loose", n) for n in nuts] + [("usable", s) for s in spanners if rng.random() < 0.8]
    facts += [("spanner-at", s, rng.choice(places[:3])) for s in spanners]
    return {"place": places, "man": men, "nut": nuts, "spanner": spanners}, facts


def slippery_blocks(rng: random.Random) -> Drawn:
    blocks = some("block", rng.randint(2, 3))
    facts: list[Fact] = [("free",)] + [("cracked", b) for b in blocks if rng.random() < 0.2]
    tops: list[str] = []
    for block in rng.sample(blocks, len(blocks)):
        below = rng.choice([*tops, "table"])
        facts.append(("on", block, below))
        tops = [*(top for top in tops if top != below), block]
    return {"block": blocks}, [*facts, *(("clear", top) for top in tops)]


def vacuum(rng: random.Random) -> Drawn:
    rooms = some("room", rng.randint(2, 4))
    facts: list[Fact] = [*graph(rng, rooms, "door"), ("in", rng.choice(rooms))]
    facts += [("dirty", r) for r in rooms if rng.random() < 0.7]
    facts += [("dock", r) for r in rng.sample(rooms, rng.randint(1, 2))]
    return {"room": rooms}, facts


def painting(rng: random.Random) -> Drawn:
    cells = {(x, y): f"t{x}{y}" for x, y in grid(2, rng.randint(2, 3))}
    robots, colours = some("robot", 1), some("colour", 2)
    facts: list[Fact] = [("up", t, cells[x, y + 1]) for (x, y), t in cells.items() if (x, y + 1) in cells]
    facts += [("right", t, cells[x + 1, y]) for (x, y), t in cells.items() if (x + 1, y) in cells]
    taken = rng.sample(list(cells.values()), len(robots))
    facts += [("robot-at", r, t) for r, t in zip(robots, taken, strict=True)]
    facts += [("clear", t) for t in cells.values() if t not in taken] + [
        ("has", r, rng.choice(colours)) for r in robots
    ]
    return {"robot": robots, "tile": list(cells.values()), "colour": colours}, facts


def depots(rng: random.Random) -> Drawn:
    places, crates = some("place", 2), some("crate", rng.randint(1, 2))
    pallets, hoists, trucks = some("pallet", rng.randint(2, 3)), some("hoist", 2), some("truck", 1)
    facts: list[Fact] = [("at", t, rng.choice(places)) for t in trucks] + [("available", h) for h in hoists]
    facts += [("at", h, p) for h, p in zip(hoists, places, strict=True)]
    where = dict(zip(pallets, [*places, rng.choice(places)], strict=False))
    facts += [("at", s, p) for s, p in where.items()]
    tops = list(pallets)
    for crate in crates:
        below = rng.choice(tops)
        tops[tops.index(below)] = crate
        where[crate] = where[below]
        facts += [("on", crate, below), ("at", crate, where[crate])]
    facts += [("clear", top) for top in tops]
    return {"place": places, "crate": crates, "pallet": pallets, "hoist": hoists, "truck": trucks}, facts


def monkey(rng: random.Random) -> Drawn:
    places = some("place", rng.randint(2, 4))
    facts: list[Fact] = [("at", rng.choice(places)), ("level", "low"), ("box-at", rng.choice(places))]
    return {"place": places}, [*facts, ("bananas-at", rng.choice(places))]


def sliding_tiles(rng: random.Random) -> Drawn:
    cells = {place: f"c{place[0]}{place[1]}" for place in grid(rng.randint(2, 3), 2)}
    facts: list[Fact] = []
    for (x, y), (dx, dy) in product(cells, [(0, 1), (0, -1), (1, 0), (-1, 0)]):
        if (x + dx, y + dy) in cells:
            facts.append(("beside", cells[x, y], cells[x + dx, y + dy]))
    blank, *others = rng.sample(list(cells.values()), len(cells))
    tiles = some("tile", len(others))
    facts += [("blank", blank), *(("at", t, c) for t, c in zip(tiles, others, strict=True))]
    return {"tile": tiles, "cell": list(cells.values())}, facts


def snack(rng: random.Random) -> Drawn:
    children, places = some("child", rng.randint(1, 2)), ["table1"]
    breads, fillings, sandwiches = some("bread", 2), some("filling", 2), some("sandwich", rng.randint(1, 2))
    facts: list[Fact] = [("tray-at", "tray1", "kitchen")]
    facts += [("waiting", c, rng.choice(places)) for c in children]
    facts += [("allergic", c) for c in children if rng.random() < 0.5] + [("unmade", s) for s in sandwiches]
    for names, kind in ((breads, "bread"), (fillings, "filling")):
        facts += [(f"{kind}-there", b) for b in names] + [(f"no-gluten-{kind}", b) for b in names if rng.random() < 0.5]
    objects = {"child": children, "bread": breads, "filling": fillings, "sandwich": sandwiches}
    return {**objects, "tray": ["tray1"], "place": places}, facts


def switches(rng: random.Random) -> Drawn:
    lamps = some("lamp", rng.randint(3, 5))
    facts: list[Fact] = [("before", a, b) for a, b in pairwise(lamps)] + [("first", lamps[0])]
    facts += [("broken", lamp) for lamp in lamps if rng.random() < 0.2]
    return {"lamp": lamps}, [*facts, *(("lit", lamp) for lamp in lamps if rng.random() < 0.3)]


CLASSICAL: Mapping[str, Callable[[random.Random], Drawn]] = {
    "barman": barman,
    "depots": depots,
    "driverlog": driverlog,
    "hanoi": hanoi,
    "keys": keys,
    "logistics": logistics,
    "monkey": monkey,
    "painting": painting,
    "rovers": rovers,
    "satellite": satellite,
    "sliding-tiles": sliding_tiles,
    "slippery-blocks": slippery_blocks,
    "snack": snack,
    "sokoban": sokoban,
    "spanner": spanner,
    "switches": switches,
    "transport": transport,
    "vacuum": vacuum,
    "zenotravel": zenotravel,
}
