"""Families of nondeterministic problems that grow, written anew after those that planners are compared on.

Each family is a domain as text and a function from a size and a source of randomness to a problem. What makes them hard
differs: many ground actions (towers), many orders in which luck may run out (workshop), dead ends (crossing), and games
against nature (questions, arbiter).
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
    "workshop": Family(WORKSHOP, workshop, (10, 20, 40, 80)),
    "crossing": Family(CROSSING, crossing, (10, 20, 30, 40)),
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
