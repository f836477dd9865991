"""Feeds mutated PDDL to the readers: each file must be read or refused with one clean line, never crash.

Where a problem can be read in bulk, or by the compiled reader, the careful reader must read the same. What is read
must survive being written and read again. Run: `python benchmarks/fuzz_pddl.py --files 100000 --seed 0`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import resources
from random import Random
from typing import NamedTuple

from mutations import mutated

from bilevel.compiled import find
from bilevel.symbolic.adl import compile_adl
from bilevel.symbolic.domain import Atom, BadInput, Domain, Problem
from bilevel.symbolic.expressions import decoded
from bilevel.symbolic.packed import pack
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_domain, write_problem
from bilevel.symbolic.pddl_problem import problem_from_text, problem_in_bulk

PROGRESS_EVERY = 10_000
PROBLEMS_PER_DOMAIN = 3
EXPECTED = (
    *("domain read", "domain refused", "problem read in bulk", "problem read with care", "problem refused"),
    *("ADL compiled", "ADL refused"),
)
CLEAN_MESSAGE = re.compile(r"fuzz\.pddl:[1-9]\d*:[1-9]\d*: [^\n]+")
# All that can be read and the package's own domains do not use: costs, constants, equality, negation, nested choices.
RICH_DOMAIN = """
(define (domain delivery) ; a comment
  (:requirements :strips :typing :equality :negative-preconditions :action-costs)
  (:types truck drone - vehicle parcel vehicle - movable movable spot)
  (:constants depot - spot)
  (:predicates (at ?m - movable ?s - spot) (carries ?v - vehicle ?p - parcel) (broken ?v - vehicle) (seen ?x))
  (:functions (total-cost) - number (distance ?a ?b - spot) - number)
  (:action move
    :parameters (?v - vehicle ?from ?to - spot)
    :precondition (and (at ?v ?from) (not (= ?from ?to)) (not (broken ?v)))
    :effect (and (at ?v ?to) (not (at ?v ?from)) (increase (total-cost) (distance ?from ?to))
                 (oneof (and) (broken ?v) (exists (?p - parcel) (and (new ?p) (oneof (at ?p ?to) (carries ?v ?p)))))))
  (:action RETURN
    :parameters (?v - vehicle ?s - spot)
    :precondition (and (at ?v ?s) (= ?s depot))
    :effect (and (not (broken ?v)) (seen ?v) (oneof (seen ?s) ())))
  (:event breakdown
    :parameters (?v - vehicle)
    :precondition (not (broken ?v))
    :effect (broken ?v)))
"""
RICH_PROBLEM = """
(define (problem one) (:domain delivery)
  (:objects t1 T2 - truck d - drone p1 p2 - parcel a b - spot something)
  (:init (at t1 depot) (at t2 a)(at p1 b) ( seen something ) (= (total-cost) 0) (= (distance a b) 3.5) (at t1 depot))
  (:goal (and (at p1 depot) (and (seen d))))
  (:metric minimize (total-cost)))
"""

# What only `bilevel plan` reads: quantifiers, disjunctions, conditional effects, negative goals.
ADL_DOMAIN = """
(define (domain caretaker)
  (:requirements :adl :non-deterministic)
  (:types room thing - object box - thing)
  (:constants hall - room)
  (:predicates (in ?t - thing ?r - room) (lit ?r - room) (locked ?r - room) (joined ?a ?b - room) (here ?r - room)
               (clean ?t - thing) (all-done))
  (:functions (total-cost))
  (:action go
    :parameters (?a ?b - room)
    :precondition (and (here ?a) (or (joined ?a ?b) (joined ?b ?a)) (not (locked ?b)) (imply (locked ?a) (lit ?a)))
    :effect (and (here ?b) (not (here ?a)) (when (not (lit ?b)) (oneof (and) (locked ?b))) (increase (total-cost) 1)))
  (:action sweep
    :parameters (?r - room)
    :precondition (and (here ?r) (exists (?t - box) (in ?t ?r))
                       (forall (?t - thing) (or (not (in ?t ?r)) (not (clean ?t)))))
    :effect (forall (?t - thing)
              (when (and (in ?t ?r) (not (= ?r hall))) (oneof (clean ?t) (and (not (clean ?t)) (lit ?r))))))
  (:action end :parameters () :precondition (forall (?t - box) (clean ?t)) :effect (all-done)))
"""
ADL_PROBLEM = """
(define (problem evening) (:domain caretaker)
  (:objects a b - room x - box y - thing)
  (:init (here hall) (joined hall a) (joined a b) (in x a) (in y b) (lit a))
  (:goal (and (clean y) (not (locked a)) (forall (?t - box) (clean ?t)))))
"""


class Text(NamedTuple):
    """Something to mutate, what reads it, and what it is called when it is refused."""

    text: str
    attempt: Callable[[bytes], str]
    refused: str


def random_problem(domain: Domain, rng: Random) -> Problem:
    """A few objects of each type and facts that fit them."""
    kinds = [*domain.types] or ["object"]
    objects = {f"{kind}-{i}": kind for kind in kinds for i in range(rng.randint(1, 3))}
    facts = [fact for _ in range(8) if (fact := random_fact(domain, objects, rng))]
    return Problem("generated", domain.name, objects, frozenset(facts), frozenset(facts[:3]))


def random_fact(domain: Domain, objects: dict[str, str], rng: Random) -> Atom | None:
    predicate = rng.choice([*domain.predicates.values()])
    fitting = [[o for o, kind in objects.items() if domain.is_subtype(kind, p.type)] for p in predicate.parameters]
    return Atom(predicate.name, tuple(map(rng.choice, fitting))) if all(fitting) else None


def originals(rng: Random) -> tuple[list[str], list[tuple[Domain, str]]]:
    """Domain texts, and problem texts with their domains."""
    folder = resources.files("bilevel.tabletop") / "domains"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".pddl")), key=lambda file: file.name)
    texts = [*(file.read_text(encoding="utf-8") for file in files), RICH_DOMAIN]
    domains = [parse_domain(text) for text in texts]
    problems = [(domains[-1], RICH_PROBLEM)]
    for domain in domains:
        problems += ((domain, write_problem(random_problem(domain, rng), domain)) for _ in range(PROBLEMS_PER_DOMAIN))
    return [*texts, *map(write_domain, domains)], problems


def try_domain(data: bytes) -> str:
    domain = parse_domain(decoded(data, "fuzz.pddl"), "fuzz.pddl")
    assert parse_domain(write_domain(domain)) == domain, "writing and reading gave another domain"
    return "domain read"


def try_problem(data: bytes, domain: Domain) -> str:
    text = decoded(data, "fuzz.pddl")
    in_bulk = problem_in_bulk(text, domain)
    if in_bulk is not None:
        assert in_bulk == problem_from_text(text, domain), "the two readers differ"
    reader = find("bilevel.symbolic._reading")
    if reader and (packed := reader.packed_problem(data, domain)) is not None:
        assert packed == pack(problem_from_text(text, domain), domain), "the compiled reader differs"
    problem = parse_problem(text, domain, "fuzz.pddl")
    assert parse_problem(write_problem(problem, domain), domain) == problem, "writing and reading gave another problem"
    return "problem read with care" if in_bulk is None else "problem read in bulk"


def try_adl(domain: bytes, problem: bytes) -> str:
    compile_adl(decoded(domain, "fuzz.pddl"), decoded(problem, "fuzz.pddl"), "fuzz.pddl", "fuzz.pddl")
    return "ADL compiled"


def all_texts(rng: Random) -> list[Text]:
    domains, problems = originals(rng)
    return [
        *(Text(text, try_domain, "domain refused") for text in domains),
        *(Text(text, partial(try_problem, domain=domain), "problem refused") for domain, text in problems),
        Text(ADL_DOMAIN, partial(try_adl, problem=ADL_PROBLEM.encode()), "ADL refused"),
        Text(ADL_PROBLEM, partial(try_adl, ADL_DOMAIN.encode()), "ADL refused"),
    ]


def verdict(data: bytes, text: Text) -> str:
    """One of `EXPECTED`, or what went wrong."""
    try:
        return text.attempt(data)
    except BadInput as error:
        return text.refused if CLEAN_MESSAGE.fullmatch(str(error)) else f"message out of form: {error!s}"
    except Exception:
        return traceback.format_exc()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = all_texts(Random(options.seed))
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    for number in range(1, options.files + 1):
        rng = Random(f"{options.seed}/{number}")
        text = rng.choice(texts)
        data = mutated(text.text.encode(), rng, rng.choice(texts).text.encode())
        result = verdict(data, text)
        counts[result] += 1
        if result not in EXPECTED:
            print(f"seed {options.seed}, file {number}:\n{data!r}\n{result}")
            return 1
        if number % PROGRESS_EVERY == 0 or number == options.files:
            found = ", ".join(f"{what}: {counts[what]}" for what in EXPECTED)
            print(f"{number} files in {time.perf_counter() - start:.0f} s; {found}; anything else: 0", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
