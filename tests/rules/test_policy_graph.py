"""Traps and attainability on random games against nature, checked by trying every way of deciding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from bilevel.rules.rule import Rule
from bilevel.rules.state_graph import StateGraph
from bilevel.rules.verify import Answer, Ending, verify
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Outcome, Predicate, Problem, Schema

PLACES = 5
GOAL = PLACES - 1
Game = Mapping[int, list[list[int]]]  # for each place the ways to leave it, each with the places nature may pick

ways = st.lists(st.lists(st.integers(0, GOAL), min_size=1, max_size=3, unique=True), max_size=2)
games = st.fixed_dictionaries(dict.fromkeys(range(GOAL), ways))


def at(place: int) -> Facts:
    return frozenset({Atom(f"at{place}")})


def as_domain(game: Game) -> Domain:
    schemas = {
        f"leave{place}-{way}": Schema(
            f"leave{place}-{way}",
            (),
            at(place),
            tuple(Outcome(at(after), at(place)) for after in afters),
        )
        for place, leaving in game.items()
        for way, afters in enumerate(leaving)
    }
    predicates = {f"at{place}": Predicate(f"at{place}") for place in range(PLACES)}
    return Domain("game", predicates, schemas)


def as_rules(game: Game) -> list[Rule]:
    """Every way to leave a place, all of them tied."""
    return [
        Rule(1, (), at(place), at(GOAL), Action(f"leave{place}-{way}"))
        for place, leaving in game.items()
        for way in range(len(leaving))
    ]


def decisions(game: Game) -> Iterable[Mapping[int, list[int]]]:
    """Every way to decide, for each place, how to leave it; places without a way lead nowhere."""
    for chosen in product(*(leaving or [[]] for leaving in game.values())):
        yield {**dict(zip(game, chosen, strict=True)), GOAL: []}


def reached(moves: Mapping[int, list[int]], start: int) -> list[int]:
    found = [start]
    for place in found:
        found += [after for after in moves[place] if after not in found]
    return found


def surely_wins(moves: Mapping[int, list[int]], start: int) -> bool:
    """Strong cyclic, as the definition reads: from every place that may come up the goal can still be reached."""
    return all(GOAL in reached(moves, place) for place in reached(moves, start))


@given(games)
def test_the_policy_itself_decides_ties_by_the_first_rule(game: Game) -> None:
    first = {place: leaving[:1] for place, leaving in game.items()}
    problem = Problem("p", "game", {}, at(0), at(GOAL))
    verdict = verify(as_rules(game), as_domain(game), problem)
    assert (verdict.answer is Answer.SOLVED) == all(surely_wins(moves, 0) for moves in decisions(first))


@given(games)
def test_a_counterexample_is_a_run_of_the_policy_that_ends_where_the_goal_is_out_of_reach(game: Game) -> None:
    problem = Problem("p", "game", {}, at(0), at(GOAL))
    found = verify(as_rules(game), as_domain(game), problem).counterexample
    if found is None:
        return
    moves = {**{place: leaving[0] if leaving else [] for place, leaving in game.items()}, GOAL: []}
    places = [0] + [next(p for p in range(PLACES) if step.state == at(p)) for step in found.steps]
    assert all(after in moves[before] for before, after in pairwise(places))
    assert GOAL not in reached(moves, places[-1])
    if found.ending is Ending.LOOP:
        assert found.loop[-1].state == found.state
    else:
        assert moves[places[-1]] == []
        dead_ends = [place for place in reached(moves, 0) if not moves[place] and place != GOAL]
        assert len(found.steps) == min(distance(moves, place) for place in dead_ends)


def distance(moves: Mapping[int, list[int]], target: int) -> int:
    """The least number of steps from place 0."""
    level, steps = {0}, 0
    while target not in level:
        level, steps = level | {after for place in level for after in moves[place]}, steps + 1
    return steps


@given(games)
def test_attainable_means_that_some_policy_surely_wins(game: Game) -> None:
    graph = StateGraph(as_domain(game), Problem("p", "game", {}, at(0), at(GOAL)))
    assert graph.explore(100)
    expected = any(surely_wins(moves, 0) for moves in decisions(game))
    assert (0 in graph.attainable(at(GOAL))) == expected
