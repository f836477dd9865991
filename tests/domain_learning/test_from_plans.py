"""Operators learned from the states of random plans do what the written ones do, and no more."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.from_plans.effects import lift
from bilevel.domain_learning.learned import PLANS
from bilevel.domain_learning.operators import learn_operators
from bilevel.domain_learning.state_space import compare, random_walks
from bilevel.symbolic.domain import Atom, BadInput, Domain, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_domain
from bilevel.tabletop.problems import GENERATORS, shipped_domain, training_problems

RARELY = settings(deadline=None, max_examples=6, derandomize=True)
SHAPES = {"blocks": "tangled-blocks", "blocksworld": "towers", "pick-place": "pick-place", "swap": "swap"}

BEAM = parse_domain("""
(define (domain tightrope)
  (:requirements :strips :typing :negative-preconditions :non-deterministic)
  (:types spot)
  (:predicates (up) (at ?s - spot) (next ?a - spot ?b - spot) (ladder ?s - spot))
  (:action balance
    :parameters (?a - spot ?b - spot)
    :precondition (and (up) (at ?a) (next ?a ?b))
    :effect (oneof (and (at ?b) (not (at ?a))) (and (at ?b) (not (at ?a)) (not (up)))))
  (:action walk-back
    :parameters (?a - spot ?b - spot)
    :precondition (and (not (up)) (at ?a) (next ?b ?a))
    :effect (and (at ?b) (not (at ?a))))
  (:action climb
    :parameters (?s - spot)
    :precondition (and (at ?s) (ladder ?s) (not (up)))
    :effect (up)))
""")
ROPES = [
    parse_problem(
        f"""(define (problem rope) (:domain tightrope) (:objects a b c d - spot)
        (:init (at {start}) (ladder a) {more} (next a b) (next b c) (next c d)) (:goal (up)))""",
        BEAM,
    )
    for start, more in (("a", ""), ("c", "(ladder c)"), ("b", "(up)"))
]

POST = parse_domain("""
(define (domain post)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types van boat - vehicle  letter  place  land)
  (:constants office - place)
  (:predicates (at ?v - vehicle ?p - place) (on ?p - place ?l - land) (port ?p - place) (in ?x - letter ?v - vehicle)
               (lies ?x - letter ?p - place) (stamped ?x - letter) (closed))
  (:action drive
    :parameters (?v - van ?from ?to - place ?l - land)
    :precondition (and (at ?v ?from) (on ?from ?l) (on ?to ?l))
    :effect (and (at ?v ?to) (not (at ?v ?from))))
  (:action sail
    :parameters (?b - boat ?from ?to - place)
    :precondition (and (at ?b ?from) (port ?to))
    :effect (and (at ?b ?to) (not (at ?b ?from))))
  (:action load
    :parameters (?x - letter ?v - vehicle ?p - place)
    :precondition (and (at ?v ?p) (lies ?x ?p) (stamped ?x))
    :effect (and (in ?x ?v) (not (lies ?x ?p))))
  (:action unload
    :parameters (?x - letter ?v - vehicle ?p - place)
    :precondition (and (at ?v ?p) (in ?x ?v))
    :effect (and (lies ?x ?p) (not (in ?x ?v))))
  (:action stamp
    :parameters (?x - letter)
    :precondition (and (lies ?x office) (not (closed)) (not (stamped ?x)))
    :effect (stamped ?x))
  (:action close
    :parameters ()
    :precondition (not (closed))
    :effect (closed))
  (:action open
    :parameters ()
    :precondition (closed)
    :effect (not (closed))))
""")


def post_problem(rng: random.Random) -> Problem:
    """Two lands with a port each, a van on either, and a boat."""
    places = {"office": "east", "bay": "east", "cape": "west", "hill": rng.choice(["east", "west"])}
    ports = [rng.choice(["office", "bay"]), "cape"]
    state = [Atom("on", pair) for pair in places.items()] + [Atom("port", (port,)) for port in ports]
    state += [Atom("at", (van, rng.choice(list(places)))) for van in ("van1", "van2")]
    state += [Atom("at", ("boat", rng.choice(ports))), Atom("lies", ("card", rng.choice(list(places))))]
    state += [Atom("lies", ("bill", "office"))] + ([Atom("closed")] if rng.random() < 0.5 else [])
    kinds = {"van1": "van", "van2": "van", "boat": "boat", "card": "letter", "bill": "letter"}
    kinds |= dict.fromkeys(["bay", "cape", "hill"], "place") | {"east": "land", "west": "land"}
    return Problem("post", "post", kinds, frozenset(state), frozenset())


def walks(domain: Domain, problems: Sequence[Problem], count: int, steps: int = 30, new: int = 0) -> list[Episode]:
    """Return random walks, from each problem in turn."""
    rng = random.Random(count)
    sources = [random_walks(domain, problem, steps, rng, new) for problem in problems]
    return [next(sources[i % len(sources)]) for i in range(count)]


def learned_from(domain: Domain, episodes: Sequence[Episode]) -> Domain:
    return learn_operators(episodes, replace(domain, schemas={}), PLANS).domain


def actions(domain: Domain) -> str:
    """Return the text of the actions alone."""
    text = write_domain(domain)
    return dedent(text[text.index("  (:action") : text.rindex(")")])


@RARELY
@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 10**6))
def test_what_is_learned_is_equivalent_in_problems_not_seen(name: str, seed: int) -> None:
    domain, rng = shipped_domain(name), random.Random(seed)
    problems = [GENERATORS[SHAPES[name]](size, rng) for size in (2, 3, 3, 2, 3)]
    learned = learned_from(domain, walks(domain, problems[:3], 25))
    for problem in problems[3:]:
        found = compare(domain, learned, problem, 300)
        assert found.is_equivalent, found.first


def test_a_split_and_two_outcomes_are_found() -> None:
    learned = learned_from(BEAM, walks(BEAM, ROPES, 30))
    assert all(compare(BEAM, learned, rope, 100).is_equivalent for rope in ROPES)
    assert actions(learned) == dedent("""\
        (:action action-1
          :parameters (?spot1 - spot ?spot2 - spot)
          :precondition (and (at ?spot1) (next ?spot1 ?spot2) (up))
          :effect (oneof
            (and (at ?spot2) (not (at ?spot1)) (not (up)))
            (and (at ?spot2) (not (at ?spot1)))))

        (:action action-2
          :parameters (?spot1 - spot ?spot2 - spot)
          :precondition (and (at ?spot1) (next ?spot2 ?spot1) (not (up)))
          :effect (and (at ?spot2) (not (at ?spot1))))

        (:action action-3
          :parameters (?spot - spot)
          :precondition (and (at ?spot) (ladder ?spot))
          :effect (and (up)))""")


def test_types_constants_and_objects_of_conditions_alone_are_found() -> None:
    rng = random.Random(1)
    problems = [post_problem(rng) for _ in range(12)]
    learned = learned_from(POST, walks(POST, problems[:8], 60))
    for problem in problems[8:]:
        assert compare(POST, learned, problem, 400).is_equivalent
    assert len(learned.schemas) == len(POST.schemas)
    by_effect = {schema.outcomes[0].add: schema for schema in learned.schemas.values()}
    stamp = by_effect[frozenset({Atom("stamped", ("?letter",))})]
    assert stamp.precondition == {Atom("lies", ("?letter", "office"))}
    assert stamp.negative_precondition == {Atom("closed")}


def test_objects_that_nature_makes_are_new() -> None:
    domain, problems = shipped_domain("gacha"), training_problems("gacha")
    learned = learned_from(domain, walks(domain, problems, 60, new=2))
    assert compare(domain, learned, problems[-1], 200, new_objects=2).is_equivalent
    outcomes = [outcome for schema in learned.schemas.values() for outcome in schema.outcomes]
    (made,) = [outcome for outcome in outcomes if outcome.new]
    assert [variable.type for variable in made.chosen] == ["block", "colour"]


def test_what_is_true_already_or_false_already_belongs_to_the_effect() -> None:
    domain = parse_domain("""
        (define (domain lens) (:types star) (:predicates (towards ?s - star) (sharp ?s - star))
          (:action turn :parameters (?a ?b - star) :precondition (and (towards ?a) (not (= ?a ?b)))
            :effect (and (towards ?b) (not (towards ?a)) (not (sharp ?a))))
          (:action focus :parameters (?a - star) :precondition (towards ?a) :effect (sharp ?a)))""")
    problem = parse_problem(
        "(define (problem p) (:domain lens) (:objects a b c - star) (:init (towards a)) (:goal (sharp b)))", domain
    )
    learned = learned_from(domain, walks(domain, [problem], 10))
    assert compare(domain, learned, problem, 100).is_equivalent
    assert len(learned.schemas) == 2


def test_too_few_plans_do_not_suffice() -> None:
    learned = learned_from(BEAM, walks(BEAM, ROPES[:1], 1, steps=2))
    found = compare(BEAM, learned, ROPES[0], 100)
    assert not found.is_equivalent
    assert found.missing > 0


@pytest.mark.parametrize("number", range(4))
def test_a_missing_operator_is_noticed(number: int) -> None:
    domain = shipped_domain("blocksworld")
    name = list(domain.schemas)[number]
    broken = replace(domain, schemas={each: schema for each, schema in domain.schemas.items() if each != name})
    found = compare(domain, broken, training_problems("blocksworld")[-1], 500)
    assert (found.missing > 0, found.extra) == (True, 0)
    assert found.first is not None
    assert (found.first.step.action.name, found.first.is_missing) == (name, True)


def test_a_missing_condition_is_noticed() -> None:
    domain = shipped_domain("blocksworld")
    pick = domain.schemas["pick-up"]
    weak = replace(pick, precondition=pick.precondition - {Atom("hand-empty")})
    broken = replace(domain, schemas={**domain.schemas, "pick-up": weak})
    found = compare(domain, broken, training_problems("blocksworld")[-1], 500)
    assert (found.missing, found.extra > 0) == (0, True)


def test_a_domain_is_equivalent_to_itself_and_all_its_states_are_looked_at() -> None:
    found = compare(BEAM, BEAM, ROPES[0], 100)
    assert found.is_equivalent
    assert (found.states, found.complete) == (8, True)
    assert not compare(BEAM, BEAM, ROPES[0], 3).complete


def test_plans_without_any_change_are_refused() -> None:
    state = frozenset({Atom("up")})
    with pytest.raises(BadInput, match="no fact changes"):
        learned_from(BEAM, [Episode([state, state], {})])


def test_facts_that_nobody_declared_are_refused() -> None:
    states = [frozenset({Atom("up")}), frozenset({Atom("down")})]
    with pytest.raises(BadInput, match="names 'down', which is no predicate"):
        learned_from(BEAM, [Episode(states, {})])


@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 5))
def test_the_form_of_a_change_does_not_depend_on_names(names: list[str], number: int) -> None:
    changes = [(("p", "q"), ("q", "r")), (("p", "q"), ("q", "p")), (("p", "p"), ("q", "r")), (("p", "q"), ("r", "s"))]
    facts = [*changes, (("p", "q"), ("p", "r")), (("p", "q"), ("r", "q"))][number]
    renamed = dict(zip("pqrs", names, strict=True))
    add = frozenset(Atom("on", pair) for pair in facts)
    other = frozenset(Atom("on", tuple(renamed[name] for name in pair)) for pair in facts)
    assert lift(add, frozenset())[0] == lift(other, frozenset())[0]


def test_walks_follow_the_domain_and_stay_where_nothing_can_be_done() -> None:
    (episode,) = islice(random_walks(BEAM, ROPES[0], 30, random.Random(0)), 1)
    assert len(episode.states) == 31
    assert all(sum(fact.predicate == "at" for fact in state) == 1 for state in episode.states)
    stuck = replace(ROPES[0], state=frozenset({Atom("at", ("b",)), Atom("next", ("c", "d"))}))
    (episode,) = islice(random_walks(BEAM, stuck, 5, random.Random(0)), 1)
    assert set(episode.states) == {stuck.state}


def test_no_order_of_sets_decides() -> None:
    program = """
        import random
        from dataclasses import replace
        from itertools import islice
        from bilevel.domain_learning.learned import PLANS
        from bilevel.domain_learning.operators import learn_operators
        from bilevel.domain_learning.state_space import random_walks
        from bilevel.symbolic.pddl import write_domain
        from bilevel.tabletop.problems import shipped_domain, training_problems
        domain = shipped_domain("colour")
        plans = list(islice(random_walks(domain, training_problems("colour")[1], 20, random.Random(0)), 6))
        print(write_domain(learn_operators(plans, replace(domain, schemas={}), PLANS).domain))
    """
    texts = {
        subprocess.run(
            [sys.executable, "-c", dedent(program)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert "(:action" in texts.pop()
