"""Random problems of Logistics without ways on a map: small ones to learn many rules from, larger ones to solve."""

from __future__ import annotations

import random
from pathlib import Path

from bilevel.symbolic.domain import Atom, Domain, Problem
from bilevel.symbolic.pddl import read_domain


def logistics_domain() -> Domain:
    return read_domain(Path(__file__).with_name("logistics.pddl"))


def logistics_problem(seed: int, cities: int, size: int, packages: int) -> Problem:
    """Each city has a truck, an airport and a number of places, and there are as many aeroplanes as cities."""
    rng = random.Random(seed)
    types, facts = dict[str, str](), list[Atom]()
    for city in range(cities):
        types |= {f"city{city}": "city", f"truck{city}": "truck", f"plane{city}": "aeroplane"}
        places = [f"place{city}-{number}" for number in range(size)]
        types |= dict.fromkeys(places, "place")
        facts += [Atom("in-city", (place, f"city{city}")) for place in places]
        facts += [Atom("has-airport", (places[0],)), Atom("at", (f"truck{city}", rng.choice(places)))]
        facts.append(Atom("at", (f"plane{city}", f"place{rng.randrange(cities)}-0")))
    places, goals = [name for name, kind in types.items() if kind == "place"], []
    for package in range(packages):
        types[f"package{package}"] = "package"
        facts.append(Atom("at", (f"package{package}", rng.choice(places))))
        goals.append(Atom("at", (f"package{package}", rng.choice(places))))
    return Problem(f"logistics-{seed}", "logistics", types, frozenset(facts), frozenset(goals))
