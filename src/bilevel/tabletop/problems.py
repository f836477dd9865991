"""The domains that ship with the package, small problems to learn their rules from, and generators of larger ones.

`GENERATORS` maps a shape of problems to a function from a size and a random generator to a problem of that shape;
the problem's `domain_name` names its domain. The names of a shape's objects carry leading zeros, so that their
alphabetical order, which decides ties between rules, is the order of their numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources

from bilevel.symbolic.domain import Atom, BadInput, Domain, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem

COLOURS = 10  # of the blocks and trays of the shapes trays and colour
SPARE_COLOURS = 2  # that Gacha can roll and no goal wants

_PACKAGE = resources.files("bilevel.tabletop")
_PROBLEMS = _PACKAGE / "domains" / "problems"
# Those of the worlds, and those of symbols alone.
_FILES = {
    file.name.removesuffix(".pddl"): file
    for folder in ("worlds", "domains")
    for file in (_PACKAGE / folder).iterdir()
    if file.name.endswith(".pddl")
}
DOMAINS = sorted(_FILES)


def domain_text(name: str) -> str:
    """The PDDL text of a domain that ships with the package."""
    if name not in DOMAINS:
        raise BadInput(f"unknown domain '{name}'; domains that come with bilevel: {', '.join(DOMAINS)}")
    return _FILES[name].read_text(encoding="utf-8")


def shipped_domain(name: str) -> Domain:
    """Return the domain of this name that comes with the package."""
    return parse_domain(domain_text(name), f"{name}.pddl")


def training_problems(name: str) -> list[Problem]:
    """The few small problems from which a shipped domain's rules can be learned, in the order of their numbers."""
    domain = shipped_domain(name)
    files = [file for file in _PROBLEMS.iterdir() if file.name.rpartition("-")[0] == name]
    files.sort(key=lambda file: file.name)
    return [parse_problem(file.read_text(encoding="utf-8"), domain, file.name) for file in files]


Generator = Callable[[int, random.Random], Problem]


def names(prefix: str, count: int) -> list[str]:
    """block1, block2, … with leading zeros where needed for the alphabetical order."""
    width = len(str(count))
    return [f"{prefix}{number:0{width}d}" for number in range(1, count + 1)]


def shuffled(items: Iterable[str], rng: random.Random) -> list[str]:
    """Return the items in a random order."""
    result = list(items)
    rng.shuffle(result)
    return result


def _assemble(
    domain_name: str, shape: str, size: int, objects: Mapping[str, Sequence[str]], state: list[Atom], goal: list[Atom]
) -> Problem:
    types = {name: kind for kind, members in objects.items() for name in members}
    return Problem(f"{shape}-{size}", domain_name, types, frozenset(state), frozenset(goal))


def blocks_problem(size: int, rng: random.Random) -> Problem:
    """Every block belongs on a place of its own; all places are clear."""
    blocks, places = names("block", size), names("place", size)
    state = [Atom("clear", (item,)) for item in blocks + places]
    state.append(Atom("gripper-free"))
    goal = [Atom("at", pair) for pair in zip(blocks, shuffled(places, rng), strict=True)]
    objects = {"block": blocks, "place": places, "table": ["table"]}
    return _assemble("blocks", "blocks", size, objects, state, goal)


def pick_place_problem(size: int, rng: random.Random) -> Problem:
    """As many items as locations, each somewhere at random and wanted somewhere else at random (Example 1)."""
    items, locations = names("item", size), names("location", max(size, 2))
    trips = list(zip(items, [rng.sample(locations, 2) for _ in range(size)], strict=True))
    state = [Atom("at", (item, start)) for item, (start, _) in trips]
    goal = [Atom("at", (item, end)) for item, (_, end) in trips]
    state += [Atom("robot-at", (rng.choice(locations),)), Atom("free")]
    return _assemble("pick-place", "pick-place", size, {"item": items, "location": locations}, state, goal)


def trays_problem(size: int, rng: random.Random) -> Problem:
    """Blocks in ten colours on the table and as many trays: each block fits a tenth of the trays."""
    blocks, trays, colours = names("block", size), names("tray", size), names("colour", COLOURS)
    palette = [rng.choice(colours) for _ in blocks]
    state = [Atom("colour-of", pair) for pair in zip(blocks, palette, strict=True)]
    state += [Atom("tray-colour", pair) for pair in zip(trays, shuffled(palette, rng), strict=True)]
    state += [Atom("on-table", (block,)) for block in blocks]
    state += [Atom("empty", (tray,)) for tray in trays]
    state.append(Atom("gripper-free"))
    goal = [Atom("sorted", (block,)) for block in blocks]
    return _assemble("trays", "trays", size, {"block": blocks, "tray": trays, "colour": colours}, state, goal)


def colour_problem(size: int, rng: random.Random) -> Problem:
    """Blocks of unknown colour on a table, one platform that colours them, one tray per colour."""
    blocks, colours, trays = names("block", size), names("colour", COLOURS), names("tray", COLOURS)
    state = [Atom("tray-colour", pair) for pair in zip(trays, shuffled(colours, rng), strict=True)]
    state += [Atom(predicate, terms) for b in blocks for predicate, terms in (("on", (b, "table")), ("unknown", (b,)))]
    state += [Atom("free", ("platform",)), Atom("gripper-free")]
    goal = [Atom("achieved-goal", (block,)) for block in blocks]
    objects = {"block": blocks, "colour": colours, "tray": trays}
    fixed = {"table": ["table"], "platform": ["platform"], "button": ["button"]}
    return _assemble("colour", "colour", size, {**objects, **fixed}, state, goal)


def gacha_problem(size: int, rng: random.Random) -> Problem:
    """A closed, empty box; so many colours are wanted, and two more can come up; one tray per colour."""
    colours, trays = names("colour", size + SPARE_COLOURS), names("tray", size + SPARE_COLOURS)
    state = [Atom("tray-colour", pair) for pair in zip(trays, shuffled(colours, rng), strict=True)]
    state += [Atom("clear", ("box",)), Atom("closed", ("box",)), Atom("gripper-free")]
    goal = [Atom("achieved-goal", (colour,)) for colour in rng.sample(colours, size)]
    objects = {"colour": colours, "tray": trays, "box": ["box"], "button": ["button"]}
    return _assemble("gacha", "gacha", size, objects, state, goal)


def swap_problem(size: int, rng: random.Random) -> Problem:
    """Every block stands on a place or on the table, and every block is wanted on a place, maybe another's."""
    blocks, places = names("block", size), names("place", size)
    taken = dict(zip(blocks, shuffled(places, rng), strict=True))
    at = {block: place if rng.random() < 0.8 else "table" for block, place in taken.items()}
    state = [Atom("at", pair) for pair in at.items()]
    state += [Atom("free", (place,)) for place in places if place not in at.values()]
    state += [Atom("free", ("table",)), Atom("gripper-free")]
    goal = [Atom("at", pair) for pair in zip(blocks, shuffled(places, rng), strict=True)]
    return _assemble("swap", "swap", size, {"block": blocks, "place": places, "table": ["table"]}, state, goal)


def stack_problem(size: int, rng: random.Random) -> Problem:
    """One stack of boxes; of some of them, any, it is said where they belong, and places are to spare for the rest."""
    boxes, places = names("box", size), names("place", size)
    order = shuffled(boxes, rng)
    state = [Atom("on", pair) for pair in zip(order, ["base", *order], strict=False)]
    state += [Atom("clear", (item,)) for item in [order[-1], *places]]
    state.append(Atom("gripper-free"))
    wanted = rng.sample(boxes, rng.randint(1, size))
    goal = [Atom("at", pair) for pair in zip(wanted, shuffled(places, rng), strict=False)]
    return _assemble("stack", "stack", size, {"box": ["base", *boxes], "place": places}, state, goal)


def towers_problem(size: int, rng: random.Random) -> Problem:
    """Blocks in random towers, wanted in other ones."""
    blocks = names("block", size)
    before, after = _random_towers(blocks, rng), _random_towers(blocks, rng)
    state = _tower_facts(before) + [Atom("clear", (tower[-1],)) for tower in before] + [Atom("hand-empty")]
    return _assemble("blocksworld", "towers", size, {"block": blocks}, state, _tower_facts(after))


def _random_towers(blocks: Sequence[str], rng: random.Random) -> list[list[str]]:
    """Each block goes on the table or on one of the towers so far, which are listed from below."""
    towers: list[list[str]] = []
    for block in shuffled(blocks, rng):
        tower = rng.randrange(len(towers) + 1)
        if tower == len(towers):
            towers.append([])
        towers[tower].append(block)
    return towers


def _tower_facts(towers: Sequence[Sequence[str]]) -> list[Atom]:
    below = [Atom("on-table", (tower[0],)) for tower in towers]
    return below + [Atom("on", pair) for tower in towers for pair in zip(tower[1:], tower, strict=False)]


GENERATORS: Mapping[str, Generator] = {
    "blocks": blocks_problem,
    "pick-place": pick_place_problem,
    "trays": trays_problem,
    "colour": colour_problem,
    "gacha": gacha_problem,
    # In problems of these, things are in each other's way, and rules have to be completed first.
    "swap": swap_problem,
    "stack": stack_problem,
    "towers": towers_problem,
}


def generate_problem(shape: str, size: int, rng: random.Random) -> Problem:
    """A problem of a shape and size that a user names."""
    if shape not in GENERATORS:
        raise BadInput(f"unknown kind of problem '{shape}'; known kinds: {', '.join(GENERATORS)}")
    if size < 1:
        raise BadInput(f"a problem needs at least 1 object, not {size}")
    return GENERATORS[shape](size, rng)
