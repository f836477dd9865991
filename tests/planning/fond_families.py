"""Families of nondeterministic problems that grow, written anew after those that planners are compared on.

Each family is a domain as text and a function from a size and a source of randomness to a problem. What makes them hard
differs: many ground actions (towers), many orders in which luck may run out (satellite, workshop, rescue), long ways
back (airline, supplies), dead ends (crossing, supplies, trail), and games against nature (questions, arbiter).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise, product
from typing import NamedTuple

from bilevel.symbolic.adl import compile_adl
from bilevel.symbolic.domain import Domain, Problem

Facts = Iterable[str]


class Instance(NamedTuple):
    """A problem before it is text: objects by type, the facts that hold, and the goal, a conjunction."""

    objects: Mapping[str, Iterable[str]]
    state: Facts
    goal: Facts


def problem_text(domain_name: str, instance: Instance) -> str:
    objects = " ".join(f"{' '.join(names)} - {kind}" for kind, names in instance.objects.items())
    state, goal = " ".join(instance.state), " ".join(instance.goal)
    return f"(define (problem p) (:domain {domain_name}) (:objects {objects}) (:init {state}) (:goal (and {goal})))"


TOWERS = """(define (domain towers) (:requirements :typing :equality :non-deterministic) (:types block)
(:predicates (held ?b - block) (free-hand) (grounded ?b - block) (above ?a ?b - block) (bare ?b - block))
(:action lift :parameters (?a ?b - block) :precondition (and (not (= ?a ?b)) (free-hand) (bare ?a) (above ?a ?b))
  :effect (oneof (and (held ?a) (bare ?b) (not (free-hand)) (not (bare ?a)) (not (above ?a ?b)))
                 (and (bare ?b) (grounded ?a) (not (above ?a ?b)))))
(:action lift-off-ground :parameters (?a - block) :precondition (and (free-hand) (bare ?a) (grounded ?a))
  :effect (oneof (and) (and (held ?a) (not (free-hand)) (not (grounded ?a)))))
(:action stack :parameters (?a ?b - block) :precondition (and (held ?a) (bare ?b))
  :effect (oneof (and (above ?a ?b) (free-hand) (bare ?a) (not (held ?a)) (not (bare ?b)))
                 (and (grounded ?a) (free-hand) (bare ?a) (not (held ?a)))))
(:action lower :parameters (?a - block) :precondition (held ?a)
  :effect (and (grounded ?a) (free-hand) (bare ?a) (not (held ?a))))
(:action lift-pile :parameters (?a ?b ?c - block) :precondition (and (free-hand) (above ?a ?b) (above ?b ?c))
  :effect (oneof (and) (and (held ?b) (bare ?c) (not (free-hand)) (not (above ?b ?c)))))
(:action stack-pile :parameters (?a ?b ?c - block) :precondition (and (held ?b) (above ?a ?b) (bare ?c))
  :effect (oneof (and (above ?b ?c) (free-hand) (not (held ?b)) (not (bare ?c)))
                 (and (grounded ?b) (free-hand) (not (held ?b)))))
(:action lower-pile :parameters (?a ?b - block) :precondition (and (held ?b) (above ?a ?b))
  :effect (and (grounded ?b) (free-hand) (not (held ?b)))))"""


def towers(size: int, rng: random.Random) -> Instance:
    """So many blocks in random piles, to be put in others."""

    def piles() -> list[list[str]]:
        blocks = rng.sample(names, size)
        cuts = sorted({0, size, *(rng.randrange(1, max(2, size)) for _ in range(max(1, size // 4)))})
        return [blocks[a:b] for a, b in pairwise(cuts)]

    names = [f"b{i}" for i in range(size)]
    first = piles()
    state = ["(free-hand)", *(f"(grounded {pile[0]})" for pile in first), *(f"(bare {pile[-1]})" for pile in first)]
    state += [f"(above {a} {b})" for pile in first for b, a in pairwise(pile)]
    goal = [f"(above {a} {b})" for pile in piles() for b, a in pairwise(pile)]
    return Instance({"block": names}, state, goal or [f"(grounded {names[0]})"])


SATELLITE = """(define (domain satellite) (:requirements :typing :negative-preconditions :non-deterministic)
(:types patch) (:predicates (ahead ?p ?q - patch) (beside ?p ?q - patch) (over ?p - patch) (wanted ?p - patch))
(:action drift :parameters (?p ?q - patch) :precondition (and (over ?p) (ahead ?p ?q))
  :effect (and (not (over ?p)) (over ?q)))
(:action turn :parameters (?p ?q - patch) :precondition (and (over ?p) (beside ?p ?q))
  :effect (and (not (over ?p)) (over ?q)))
(:action photograph :parameters (?p ?q - patch) :precondition (and (over ?p) (wanted ?p) (ahead ?p ?q))
  :effect (and (not (over ?p)) (over ?q) (oneof (and) (not (wanted ?p))))))"""


def satellite(size: int, rng: random.Random) -> Instance:
    """A strip of `size` by 2 `size` patches round the earth of which a fifth is wanted; clouds spoil pictures."""
    grid = {(x, y): f"p{x}-{y}" for x in range(2 * size) for y in range(size)}
    state = [f"(over {grid[0, 0]})"]
    for (x, y), name in grid.items():
        after = (x + 1) % (2 * size)
        state.append(f"(ahead {name} {grid[after, y]})")
        state += [f"(beside {name} {grid[after, z]})" for z in (y - 1, y + 1) if (after, z) in grid]
    wanted = rng.sample(sorted(grid.values()), max(1, len(grid) // 5))
    state += [f"(wanted {name})" for name in wanted]
    return Instance({"patch": grid.values()}, state, [f"(not (wanted {name}))" for name in wanted])


WORKSHOP = """(define (domain workshop) (:requirements :typing :negative-preconditions :non-deterministic)
(:types job slot) (:predicates (open ?j - job) (done ?j - job) (broken ?s - slot) (whole ?s - slot)
  (spoilt ?j - job ?s - slot) (latest ?s - slot) (after ?s ?t - slot) (first ?s - slot) (last ?s - slot) (shipped))
(:action work-first :parameters (?j - job ?s - slot) :precondition (and (open ?j) (first ?s) (whole ?s))
  :effect (and (done ?j) (not (open ?j))
    (oneof (and) (and (broken ?s) (not (whole ?s)) (spoilt ?j ?s) (latest ?s)))))
(:action work :parameters (?j - job ?s ?t - slot)
  :precondition (and (open ?j) (after ?s ?t) (broken ?s) (whole ?t) (latest ?s))
  :effect (and (done ?j) (not (open ?j))
    (oneof (and) (and (broken ?t) (not (whole ?t)) (spoilt ?j ?t) (latest ?t) (not (latest ?s))))))
(:action mend-first :parameters (?j - job ?s - slot) :precondition (and (spoilt ?j ?s) (latest ?s) (first ?s))
  :effect (and (open ?j) (not (done ?j)) (whole ?s) (not (broken ?s)) (not (latest ?s)) (not (spoilt ?j ?s))))
(:action mend :parameters (?j - job ?s ?t - slot) :precondition (and (spoilt ?j ?t) (latest ?t) (after ?s ?t))
  :effect (and (open ?j) (not (done ?j)) (whole ?t) (not (broken ?t)) (latest ?s) (not (latest ?t))
    (not (spoilt ?j ?t))))
(:action ship :parameters (?s - slot)
  :precondition (and (last ?s) (not (latest ?s)) (forall (?j - job) (done ?j))) :effect (shipped)))"""


def workshop(size: int, rng: random.Random) -> Instance:
    """So many jobs, each of which may break the next of as many machines; the last must be whole in the end."""
    del rng
    jobs, slots = [f"j{i}" for i in range(size)], [f"s{i}" for i in range(size)]
    state = [f"(open {job})" for job in jobs] + [f"(whole {slot})" for slot in slots]
    state += [f"(first {slots[0]})", f"(last {slots[-1]})", *(f"(after {a} {b})" for a, b in pairwise(slots))]
    return Instance({"job": jobs, "slot": slots}, state, ["(shipped)"])


RESCUE = """(define (domain rescue) (:requirements :typing :negative-preconditions :non-deterministic)
(:types place engine ambulance patient)
(:predicates (near ?p ?q - place) (burning ?p - place) (calm ?p - place) (hydrant ?p - place) (clinic ?p - place)
  (engine-at ?e - engine ?p - place) (ambulance-at ?a - ambulance ?p - place) (water ?e - engine)
  (lies ?v - patient ?p - place) (aboard ?v - patient ?a - ambulance)
  (well ?v - patient) (hurt ?v - patient) (dying ?v - patient))
(:action drive-engine :parameters (?e - engine ?p ?q - place) :precondition (and (engine-at ?e ?p) (calm ?q))
  :effect (and (engine-at ?e ?q) (not (engine-at ?e ?p))))
(:action drive-ambulance :parameters (?a - ambulance ?p ?q - place) :precondition (and (ambulance-at ?a ?p) (calm ?q))
  :effect (and (ambulance-at ?a ?q) (not (ambulance-at ?a ?p))))
(:action fill :parameters (?e - engine ?p - place) :precondition (and (engine-at ?e ?p) (hydrant ?p))
  :effect (water ?e))
(:action spray :parameters (?e - engine ?p ?q - place)
  :precondition (and (engine-at ?e ?p) (near ?p ?q) (water ?e) (burning ?q))
  :effect (and (not (water ?e)) (oneof (and) (and (calm ?q) (not (burning ?q))))))
(:action load :parameters (?a - ambulance ?v - patient ?p - place)
  :precondition (and (ambulance-at ?a ?p) (lies ?v ?p)) :effect (and (aboard ?v ?a) (not (lies ?v ?p))))
(:action unload :parameters (?a - ambulance ?v - patient ?p - place)
  :precondition (and (ambulance-at ?a ?p) (aboard ?v ?a)) :effect (and (lies ?v ?p) (not (aboard ?v ?a))))
(:action heal-by-engine :parameters (?e - engine ?v - patient ?p - place)
  :precondition (and (engine-at ?e ?p) (lies ?v ?p) (hurt ?v))
  :effect (oneof (and) (and (well ?v) (not (hurt ?v)))))
(:action heal-by-ambulance :parameters (?a - ambulance ?v - patient ?p - place)
  :precondition (and (ambulance-at ?a ?p) (lies ?v ?p) (hurt ?v))
  :effect (oneof (and) (and (well ?v) (not (hurt ?v)))))
(:action heal-in-clinic :parameters (?v - patient ?p - place) :precondition (and (lies ?v ?p) (clinic ?p))
  :effect (and (well ?v) (not (hurt ?v)) (not (dying ?v)))))"""


def rescue(size: int, rng: random.Random) -> Instance:
    """So many places, half of them on fire, and as many patients; a third as many engines and ambulances."""
    places, patients = [f"p{i}" for i in range(size)], [f"v{i}" for i in range(size)]
    units = max(1, size // 3)
    engines, ambulances = [f"e{i}" for i in range(units)], [f"a{i}" for i in range(units)]
    near = {(i, (i + 1) % size) for i in range(size)} | {(rng.randrange(size), rng.randrange(size)) for _ in places}
    calm = set(rng.sample(range(size), size - size // 2))
    state = [f"(near p{a} p{b}) (near p{b} p{a})" for a, b in sorted(near)]
    state += [f"({'calm' if i in calm else 'burning'} p{i})" for i in range(size)]
    safe = sorted(calm)
    state += [f"(hydrant p{i})" for i in rng.sample(safe, max(1, len(safe) // 3))]
    state += [f"(clinic p{i})" for i in rng.sample(safe, max(1, len(safe) // 3))]
    state += [f"(engine-at {e} p{rng.choice(safe)})" for e in engines]
    state += [f"(ambulance-at {a} p{rng.choice(safe)})" for a in ambulances]
    state += [f"(lies {v} p{rng.randrange(size)}) ({rng.choice(['hurt', 'dying'])} {v})" for v in patients]
    goal = [f"(calm p{i})" for i in range(size) if i not in calm] + [f"(well {v})" for v in patients]
    return Instance({"place": places, "engine": engines, "ambulance": ambulances, "patient": patients}, state, goal)


TRAIL = """(define (domain trail) (:requirements :typing :non-deterministic) (:types row disc)
(:predicates (x ?r - row) (y ?r - row) (next ?r ?s - row) (passed ?x ?y - row) (may ?x ?y - row)
  (opens ?x ?y ?u ?v - row) (fresh ?x ?y - row) (set-up ?x ?y - row)
  (on ?a ?b - disc) (lying ?a - disc) (top ?a - disc) (hand ?a - disc) (idle) (three ?a ?b ?c - disc))
(:action east-or-north :parameters (?x ?y ?u ?v - row)
  :precondition (and (x ?x) (y ?y) (passed ?x ?y) (next ?x ?u) (next ?y ?v))
  :effect (oneof (and (x ?u) (not (x ?x))) (and (y ?v) (not (y ?y))) (and)))
(:action east-or-south :parameters (?x ?y ?u ?v - row)
  :precondition (and (x ?x) (y ?y) (passed ?x ?y) (next ?x ?u) (next ?v ?y))
  :effect (oneof (and (x ?u) (not (x ?x))) (and (y ?v) (not (y ?y))) (and)))
(:action west-or-north :parameters (?x ?y ?u ?v - row)
  :precondition (and (x ?x) (y ?y) (passed ?x ?y) (next ?u ?x) (next ?y ?v))
  :effect (oneof (and (x ?u) (not (x ?x))) (and (y ?v) (not (y ?y))) (and)))
(:action west-or-south :parameters (?x ?y ?u ?v - row)
  :precondition (and (x ?x) (y ?y) (passed ?x ?y) (next ?u ?x) (next ?v ?y))
  :effect (oneof (and (x ?u) (not (x ?x))) (and (y ?v) (not (y ?y))) (and)))
(:action allow :parameters (?x ?y ?u ?v - row) :precondition (and (passed ?x ?y) (opens ?x ?y ?u ?v))
  :effect (may ?u ?v))
(:action begin :parameters (?x ?y - row ?a ?b ?c - disc)
  :precondition (and (x ?x) (y ?y) (may ?x ?y) (fresh ?x ?y) (three ?a ?b ?c))
  :effect (and (set-up ?x ?y) (not (fresh ?x ?y)) (on ?c ?a) (lying ?a) (lying ?b) (top ?b) (top ?c) (idle)))
(:action put :parameters (?a ?b - disc) :precondition (and (hand ?a) (top ?b))
  :effect (and (on ?a ?b) (top ?a) (idle) (not (hand ?a)) (not (top ?b))))
(:action drop :parameters (?a - disc) :precondition (hand ?a)
  :effect (and (lying ?a) (top ?a) (idle) (not (hand ?a))))
(:action take-off :parameters (?a ?b - disc) :precondition (and (idle) (top ?a) (on ?a ?b))
  :effect (and (hand ?a) (top ?b) (not (on ?a ?b)) (not (top ?a)) (not (idle))))
(:action take :parameters (?a - disc) :precondition (and (idle) (top ?a) (lying ?a))
  :effect (and (hand ?a) (not (lying ?a)) (not (top ?a)) (not (idle))))
(:action pass :parameters (?x ?y - row ?a ?b ?c - disc)
  :precondition (and (x ?x) (y ?y) (set-up ?x ?y) (three ?a ?b ?c) (on ?a ?b) (on ?b ?c))
  :effect (and (passed ?x ?y) (not (on ?a ?b)) (not (on ?b ?c)) (not (top ?a)) (not (idle)) (not (lying ?c)))))"""


def trail(size: int, rng: random.Random) -> Instance:
    """A square of stations with puzzles: a station may be begun when one before it, or a neighbour, was passed."""
    rows = [f"r{i}" for i in range(size)]
    cells = list(product(range(size), repeat=2))
    state = ["(x r0)", "(y r0)", "(may r0 r0)", "(three a b c)", *(f"(next {a} {b})" for a, b in pairwise(rows))]
    state += [f"(fresh r{x} r{y})" for x, y in cells]
    for x, y in cells[1:]:
        around = [cell for cell in ((x - 1, y), (x, y - 1), (x + 1, y), (x, y + 1)) if cell in cells]
        openers = [(u, v) for u, v in around if u + v < x + y] if rng.random() < 0.9 else [rng.choice(around)]
        state += [f"(opens r{u} r{v} r{x} r{y})" for u, v in openers]
    return Instance({"row": rows, "disc": ["a", "b", "c"]}, state, [f"(passed {rows[-1]} {rows[-1]})"])


CROSSING = """(define (domain crossing) (:requirements :typing :negative-preconditions :non-deterministic) (:types n)
(:predicates (x ?n - n) (y ?n - n) (next ?n ?m - n) (icy ?x ?y - n) (drowned))
(:action up :parameters (?x ?y ?v - n) :precondition (and (x ?x) (y ?y) (next ?y ?v) (not (icy ?x ?y)) (not (drowned)))
  :effect (oneof (and) (and (y ?v) (not (y ?y)))))
(:action right :parameters (?x ?y ?u - n)
  :precondition (and (x ?x) (y ?y) (next ?x ?u) (not (icy ?x ?y)) (not (drowned)))
  :effect (oneof (and) (and (x ?u) (not (x ?x)))))
(:action up-on-ice :parameters (?x ?y ?v - n) :precondition (and (x ?x) (y ?y) (next ?y ?v) (icy ?x ?y) (not (drowned)))
  :effect (and (drowned) (oneof (and) (and (y ?v) (not (y ?y))))))
(:action right-on-ice :parameters (?x ?y ?u - n)
  :precondition (and (x ?x) (y ?y) (next ?x ?u) (icy ?x ?y) (not (drowned)))
  :effect (and (drowned) (oneof (and) (and (x ?u) (not (x ?x))))))
(:action leap :parameters (?x ?y ?u ?v - n)
  :precondition (and (x ?x) (y ?y) (next ?x ?u) (next ?y ?v) (not (icy ?x ?y)) (not (drowned)))
  :effect (oneof (and (x ?u) (not (x ?x)) (y ?v) (not (y ?y))) (drowned)))
(:action haunt :parameters (?x ?y ?u ?v - n) :precondition (and (x ?x) (y ?y) (drowned))
  :effect (and (x ?u) (not (x ?x)) (y ?v) (not (y ?y)))))"""


def crossing(size: int, rng: random.Random) -> Instance:
    """A square to cross by safe rows and columns; leaps are quick and deadly, and the drowned haunt all places."""
    n = [f"n{i}" for i in range(size)]
    safe_row, safe_column = rng.randrange(1, size), rng.randrange(size - 1)
    state = ["(x n0)", "(y n0)", *(f"(next {a} {b})" for a, b in pairwise(n))]
    for x, y in product(range(size), repeat=2):
        on_way = (x == 0 and y <= safe_row) or y == safe_row or x == size - 1 or x == safe_column
        if not on_way and rng.random() < 0.7:
            state.append(f"(icy n{x} n{y})")
    return Instance({"n": n}, state, [f"(x {n[-1]})", f"(y {n[-1]})", "(not (drowned))"])


SUPPLIES = """(define (domain supplies) (:requirements :typing :negative-preconditions :non-deterministic)
(:types place tyre) (:predicates (car ?p - place) (van ?p - place) (lies ?t - tyre ?p - place) (road ?p ?q - place)
  (rough ?p ?q - place) (lane ?p ?q - place) (rolling) (packed ?t - tyre) (clear ?p - place) (home ?p - place))
(:action drive :parameters (?p ?q - place) :precondition (and (car ?p) (clear ?q) (road ?p ?q) (rolling))
  :effect (and (car ?q) (clear ?p) (not (clear ?q)) (not (car ?p))))
(:action drive-rough :parameters (?p ?q - place) :precondition (and (car ?p) (clear ?q) (rough ?p ?q) (rolling))
  :effect (and (car ?q) (clear ?p) (not (clear ?q)) (not (car ?p)) (oneof (and) (not (rolling)))))
(:action haul :parameters (?p ?q - place) :precondition (and (van ?p) (clear ?q) (lane ?p ?q))
  :effect (and (van ?q) (clear ?p) (not (clear ?q)) (not (van ?p))))
(:action haul-home :parameters (?p ?q - place) :precondition (and (van ?p) (home ?q) (lane ?p ?q))
  :effect (and (van ?q) (clear ?p) (not (van ?p))))
(:action pack :parameters (?p - place ?t - tyre) :precondition (and (van ?p) (lies ?t ?p))
  :effect (and (packed ?t) (not (lies ?t ?p))))
(:action unpack :parameters (?p - place ?t - tyre) :precondition (and (van ?p) (packed ?t))
  :effect (and (lies ?t ?p) (not (packed ?t))))
(:action fix :parameters (?p - place ?t - tyre) :precondition (and (car ?p) (lies ?t ?p) (not (rolling)))
  :effect (and (rolling) (not (lies ?t ?p)))))"""


def supplies(size: int, rng: random.Random) -> Instance:
    """A rough road of so many places; a van has to lay out tyres along it before the car sets out."""
    road = [f"p{i}" for i in range(size + 1)]
    tyres = [f"t{i}" for i in range(size)]
    state = ["(car p0)", "(van depot)", "(rolling)", "(home depot)", f"(rough p0 {road[1]})"]
    state += [f"(clear {p})" for p in [*road[1:], "depot"]]
    state += [f"({rng.choice(['rough', 'rough', 'road'])} {a} {b})" for a, b in pairwise(road[1:])]
    state += [f"(lane {p} depot) (lane depot {p})" for p in road[1:]]
    state += [f"(lies {t} depot)" for t in tyres]
    return Instance({"place": [*road, "depot"], "tyre": tyres}, state, [f"(car {road[-1]})", "(rolling)"])


AIRLINE = """(define (domain airline) (:requirements :typing :universal-preconditions :non-deterministic)
(:types plane person city level) (:predicates (waits ?p - person ?c - city) (stands ?a - plane ?c - city)
  (boards ?p - person ?a - plane) (still ?p - person) (in ?p - person ?a - plane) (leaves ?p - person ?a - plane)
  (tank ?a - plane ?l - level) (more ?l ?m - level) (flies ?a - plane ?c - city) (races ?a - plane ?c - city)
  (fuelling ?a - plane) (ready ?a - plane))
(:action board :parameters (?p - person ?a - plane ?c - city) :precondition (and (waits ?p ?c) (stands ?a ?c))
  :effect (and (boards ?p ?a) (not (waits ?p ?c)) (not (still ?p))))
(:action sit :parameters (?p - person ?a - plane ?c - city) :precondition (and (boards ?p ?a) (stands ?a ?c))
  :effect (oneof (and) (and (in ?p ?a) (still ?p) (not (boards ?p ?a)))))
(:action rise :parameters (?p - person ?a - plane ?c - city) :precondition (and (in ?p ?a) (stands ?a ?c))
  :effect (and (leaves ?p ?a) (not (in ?p ?a)) (not (still ?p))))
(:action leave :parameters (?p - person ?a - plane ?c - city) :precondition (and (leaves ?p ?a) (stands ?a ?c))
  :effect (oneof (and) (and (waits ?p ?c) (still ?p) (not (leaves ?p ?a)))))
(:action start :parameters (?a - plane ?c ?d - city ?l ?m - level)
  :precondition (and (stands ?a ?c) (tank ?a ?m) (more ?l ?m) (ready ?a) (forall (?p - person) (still ?p)))
  :effect (and (flies ?a ?d) (not (stands ?a ?c))))
(:action land :parameters (?a - plane ?d - city ?l ?m - level)
  :precondition (and (flies ?a ?d) (tank ?a ?m) (more ?l ?m))
  :effect (oneof (and) (and (stands ?a ?d) (tank ?a ?l) (not (flies ?a ?d)) (not (tank ?a ?m)))))
(:action start-race :parameters (?a - plane ?c ?d - city ?k ?l ?m - level)
  :precondition (and (stands ?a ?c) (tank ?a ?m) (more ?l ?m) (more ?k ?l) (ready ?a) (forall (?p - person) (still ?p)))
  :effect (and (races ?a ?d) (not (stands ?a ?c))))
(:action end-race :parameters (?a - plane ?d - city ?k ?l ?m - level)
  :precondition (and (races ?a ?d) (tank ?a ?m) (more ?l ?m) (more ?k ?l))
  :effect (oneof (and) (and (stands ?a ?d) (tank ?a ?k) (not (races ?a ?d)) (not (tank ?a ?m)))))
(:action fuel :parameters (?a - plane ?c - city ?l ?m - level)
  :precondition (and (stands ?a ?c) (ready ?a) (tank ?a ?l) (more ?l ?m)) :effect (and (fuelling ?a) (not (ready ?a))))
(:action fuelled :parameters (?a - plane ?l ?m - level) :precondition (and (fuelling ?a) (tank ?a ?l) (more ?l ?m))
  :effect (oneof (and) (and (ready ?a) (tank ?a ?m) (not (fuelling ?a)) (not (tank ?a ?l))))))"""


def airline(size: int, rng: random.Random) -> Instance:
    """So many persons to be flown between as many cities by a third as many planes."""
    planes = [f"a{i}" for i in range(max(1, size // 3))]
    persons, cities = [f"p{i}" for i in range(size)], [f"c{i}" for i in range(max(3, size))]
    levels = [f"l{i}" for i in range(5)]
    state = [f"(more {a} {b})" for a, b in pairwise(levels)]
    state += [f"(stands {a} {rng.choice(cities)}) (tank {a} {rng.choice(levels)}) (ready {a})" for a in planes]
    state += [f"(waits {p} {rng.choice(cities)}) (still {p})" for p in persons]
    goal = [f"(waits {p} {rng.choice(cities)})" for p in persons]
    return Instance({"plane": planes, "person": persons, "city": cities, "level": levels}, state, goal)


QUESTIONS = """(define (domain questions) (:requirements :typing :negative-preconditions :non-deterministic)
(:types slot kind) (:predicates (known ?s - slot) (picked ?s - slot) (seeking) (asking) (guess ?k - kind)
  (hints ?s - slot ?k - kind) (over))
(:action answer :parameters (?s - slot ?k - kind)
  :precondition (and (asking) (picked ?s) (hints ?s ?k) (not (known ?s)) (not (seeking)))
  :effect (and (known ?s) (guess ?k) (not (picked ?s)) (not (asking))))
(:action again :parameters (?s - slot) :precondition (and (picked ?s) (known ?s))
  :effect (and (seeking) (not (picked ?s))))
(:action tell :parameters (?k - kind) :precondition (and (guess ?k) (not (asking)))
  :effect (oneof (and (seeking) (not (guess ?k))) (over)))
(:action seek :parameters () :precondition (and (seeking) (forall (?k - kind) (not (guess ?k))))
  :effect (and (asking) (not (seeking)) (exists (?s - slot) (picked ?s))))
(:action give-up :parameters ()
  :precondition (and (forall (?s - slot) (and (known ?s) (not (picked ?s)))) (forall (?k - kind) (not (guess ?k))))
  :effect (over)))"""


def questions(size: int, rng: random.Random) -> Instance:
    """A dialogue in which nature picks one of so many slots to ask about until a guess is right or all is known."""
    slots, kinds = [f"s{i}" for i in range(size)], [f"k{i}" for i in range(3)]
    state = ["(seeking)", *(f"(hints {slot} {rng.choice(kinds)})" for slot in slots)]
    return Instance({"slot": slots, "kind": kinds}, state, ["(over)"])


ARBITER = """(define (domain arbiter) (:requirements :typing :negative-preconditions :non-deterministic)
(:types client level) (:predicates (asks ?c - client) (quiet ?c - client) (asked ?c - client) (mine)
  (judged ?c - client)
  (next ?c ?d - client) (head ?c - client) (tail ?c - client) (put-off ?c - client ?l - level) (more ?l ?m - level)
  (none ?l - level) (settled) (won))
(:action listen :parameters (?c ?d - client) :precondition (and (asked ?c) (next ?c ?d))
  :effect (and (asked ?d) (not (asked ?c)) (oneof (and) (and (asks ?c) (not (quiet ?c))))))
(:action listen-last :parameters (?c - client) :precondition (and (asked ?c) (tail ?c))
  :effect (and (mine) (not (asked ?c)) (oneof (and) (and (asks ?c) (not (quiet ?c))))))
(:action grant :parameters (?c ?h - client ?l ?z - level)
  :precondition (and (mine) (head ?h) (put-off ?c ?l) (none ?z))
  :effect (and (judged ?h) (not (mine)) (not (asks ?c)) (quiet ?c) (not (put-off ?c ?l)) (put-off ?c ?z)))
(:action pass :parameters (?c ?d - client) :precondition (and (judged ?c) (quiet ?c) (next ?c ?d))
  :effect (and (judged ?d) (not (judged ?c))))
(:action blame :parameters (?c ?d - client ?l ?m - level)
  :precondition (and (judged ?c) (asks ?c) (next ?c ?d) (put-off ?c ?l) (more ?l ?m))
  :effect (and (judged ?d) (not (judged ?c)) (put-off ?c ?m) (not (put-off ?c ?l))))
(:action pass-last :parameters (?c - client) :precondition (and (judged ?c) (quiet ?c) (tail ?c))
  :effect (and (settled) (not (judged ?c))))
(:action blame-last :parameters (?c - client ?l ?m - level)
  :precondition (and (judged ?c) (asks ?c) (tail ?c) (put-off ?c ?l) (more ?l ?m))
  :effect (and (settled) (not (judged ?c)) (put-off ?c ?m) (not (put-off ?c ?l))))
(:action go-on :parameters (?h - client) :precondition (and (settled) (head ?h))
  :effect (and (not (settled)) (oneof (won) (asked ?h)))))"""


def arbiter(size: int, rng: random.Random) -> Instance:
    """A game: each round any of so many clients may ask, one is granted, and none may be put off too often.

    Put off `size` - 1 times in a row is not too often, unless `size` is divisible by 3, when it is once less: then
    nature wins.
    """
    del rng
    clients = [f"c{i}" for i in range(size)]
    levels = [f"l{i}" for i in range(size if size % 3 else size - 1)]
    state = [f"(asked {clients[0]})", f"(head {clients[0]})", f"(tail {clients[-1]})", f"(none {levels[0]})"]
    state += [f"(quiet {client}) (put-off {client} {levels[0]})" for client in clients]
    state += [f"(next {a} {b})" for a, b in pairwise(clients)] + [f"(more {a} {b})" for a, b in pairwise(levels)]
    return Instance({"client": clients, "level": levels}, state, ["(won)"])


class Family(NamedTuple):
    """How to make problems, and the sizes at which planners are compared."""

    domain: str
    make: Callable[[int, random.Random], Instance]
    sizes: tuple[int, ...]


FAMILIES = {
    "towers": Family(TOWERS, towers, (10, 20, 30, 40)),
    "satellite": Family(SATELLITE, satellite, (4, 6, 8, 15)),
    "workshop": Family(WORKSHOP, workshop, (10, 20, 40, 80)),
    "rescue": Family(RESCUE, rescue, (6, 9, 12, 18)),
    "trail": Family(TRAIL, trail, (4, 6, 8)),
    "crossing": Family(CROSSING, crossing, (10, 20, 30, 40)),
    "supplies": Family(SUPPLIES, supplies, (4, 5, 6, 7)),
    "airline": Family(AIRLINE, airline, (5, 9, 12, 18)),
    "questions": Family(QUESTIONS, questions, (5, 7, 9, 11)),
    "arbiter": Family(ARBITER, arbiter, (2, 3, 4, 5)),
}


def texts(family: str, size: int, seed: int = 0) -> tuple[str, str]:
    """Domain and problem as PDDL."""
    chosen = FAMILIES[family]
    return chosen.domain, problem_text(family, chosen.make(size, random.Random(seed)))


def made(family: str, size: int, seed: int = 0) -> tuple[Domain, Problem]:
    """Domain and problem, compiled for a planner."""
    return compile_adl(*texts(family, size, seed))
