"""What verification says: random games against nature, families against running every problem, and each ending."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notation import best_matches, golden_rules

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.small_problems import grow, sizes
from bilevel.rules.state_graph import Situation, StateGraph, groundings
from bilevel.rules.verify import (
    Answer,
    Counterexample,
    Starts,
    Verdict,
    dependence,
    verify,
    verify_family,
)
from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Facts, Outcome, Predicate, Problem, Schema
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.semantics import ground_action, progress, substitute_all
from bilevel.tabletop.problems import shipped_domain, training_problems


def refuted(verdict: Verdict) -> Counterexample:
    assert verdict.answer is Answer.REFUTED
    assert verdict.counterexample is not None
    return verdict.counterexample


# Random games against nature, checked by trying every way of deciding

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


@settings(deadline=None)  # on a busy machine
@given(games)
def test_the_policy_itself_decides_ties_by_the_first_rule(game: Game) -> None:
    first = {place: leaving[:1] for place, leaving in game.items()}
    problem = Problem("p", "game", {}, at(0), at(GOAL))
    verdict = verify(as_rules(game), as_domain(game), problem)
    assert (verdict.answer is Answer.SOLVED) == all(surely_wins(moves, 0) for moves in decisions(first))


@settings(deadline=None)  # on a busy machine
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
    if found.loop:
        assert found.loop[-1].state == found.state
    else:
        assert moves[places[-1]] == []


@settings(deadline=None)  # on a busy machine
@given(games)
def test_attainable_means_that_some_policy_surely_wins(game: Game) -> None:
    graph = StateGraph(as_domain(game), Problem("p", "game", {}, at(0), at(GOAL)))
    assert graph.explore(100)
    expected = any(surely_wins(moves, 0) for moves in decisions(game))
    assert (0 in graph.attainable(at(GOAL))) == expected


# Every ending

GAMES = parse_domain(
    """
    (define (domain games)
      (:requirements :strips :typing :non-deterministic)
      (:types spot coin)
      (:predicates (robot-at ?s - spot) (path ?a ?b - spot) (heads ?c - coin) (broken) (shelved ?c - coin))
      (:action move :parameters (?a ?b - spot) :precondition (and (robot-at ?a) (path ?a ?b))
        :effect (and (robot-at ?b) (not (robot-at ?a))))
      (:action flip :parameters (?c - coin) :precondition ()
        :effect (oneof (heads ?c) (and)))
      (:action hammer :parameters (?c - coin) :precondition ()
        :effect (oneof (heads ?c) (broken)))
      (:action mint :parameters () :precondition ()
        :effect (exists (?c - coin) (and (new ?c) (heads ?c))))
      (:action shelve :parameters (?c - coin) :precondition (heads ?c) :effect (shelved ?c)))
    """
)
GOAL_HEADS = frozenset({Atom("heads", ("c",))})


def rules(text: str) -> tuple[Rule, ...]:
    return parse_rules("variables: ?a - spot, ?b - spot, ?s - spot, ?c - coin, ?d - coin\n" + text)


def game(state: str, goal: str) -> Problem:
    text = (
        f"(define (problem p) (:domain games) (:objects s1 s2 s3 - spot c - coin) (:init {state}) (:goal (and {goal})))"
    )
    return parse_problem(text, GAMES)


def test_a_risk_that_may_end_in_a_state_without_a_rule_is_a_counterexample() -> None:
    policy = rules("1: not broken() & goal heads(?c) -> hammer(?c)")
    found = refuted(verify(policy, GAMES, game("", "(heads c)")))
    assert "no rule applies" in str(found)
    assert [(step.action, step.outcome.add) for step in found.steps] == [
        (Action("hammer", ("c",)), frozenset({Atom("broken")}))
    ]
    assert found.state == {Atom("broken")}
    assert found.problem.goal - found.state == GOAL_HEADS


def test_a_rule_whose_action_cannot_be_done_is_a_counterexample() -> None:
    found = refuted(verify(rules("1: goal shelved(?c) -> shelve(?c)"), GAMES, game("", "(shelved c)")))
    assert found.refused == Action("shelve", ("c",))
    assert found.steps == ()


def test_objects_that_still_matter_pile_up_until_the_bound_is_hit() -> None:
    policy = rules("1: goal shelved(?c) -> mint()")  # every coin could still be shelved
    verdict = verify(policy, GAMES, game("", "(shelved c)"), max_states=20)
    assert (verdict.answer, verdict.explored) == (Answer.BOUND_HIT, 20)
    assert "nothing found so far" in str(verdict)


# Objects made by nature

GACHA = shipped_domain("gacha")
BOX = {"red": "colour", "blue": "colour", "tray1": "tray", "tray2": "tray", "box": "box", "button": "button"}
TRAYS = frozenset({Atom("tray-colour", ("tray1", "red")), Atom("tray-colour", ("tray2", "blue"))})
EMPTY = TRAYS | {Atom("clear", ("box",)), Atom("closed", ("box",)), Atom("gripper-free")}


def situation(graph: StateGraph, *facts: Atom) -> Situation:
    """What is left of a situation with these facts, too."""
    blocks = sorted({term for fact in facts for term in fact.terms if term.startswith("block")})
    made = tuple((name, "block") for name in blocks)
    return graph.situations[graph.number(Situation(EMPTY | set(facts), made))]


def colour(block: str, name: str) -> Atom:
    return Atom("colour-of", (block, name))


def test_made_objects_are_dropped_when_they_cannot_matter_and_renamed() -> None:
    problem = Problem("p", "gacha", BOX, EMPTY, frozenset())
    memory = parse_rules(
        "variables: ?x - block, ?c - colour, ?d - box\n1: colour-of(?x, ?c) & goal achieved-goal(?c) -> open(?d)"
    )
    graph, remembering = StateGraph(GACHA, problem), StateGraph(GACHA, problem, memory)
    put_away, inside = colour("block1", "red"), [Atom("in", (f"block{n}", "box")) for n in (4, 7)]
    assert situation(graph, put_away) == Situation(EMPTY)
    assert situation(remembering, put_away).facts == EMPTY | {put_away}
    first = situation(graph, colour("block4", "red"), colour("block7", "blue"), *inside)
    assert first == situation(graph, colour("block4", "blue"), colour("block7", "red"), *inside)
    assert first.made == (("block1", "block"), ("block2", "block"))


# Families against a naive check in a Blocks without a way back: no symmetries, no graph, every run by itself

ONE_WAY = parse_domain(
    """(define (domain blocks) (:requirements :strips :typing) (:types block place - item)
    (:predicates (at ?x - block ?l - place) (holding ?x - block) (clear ?i - item) (gripper-free))
    (:action pick :parameters (?x - block) :precondition (and (clear ?x) (gripper-free))
      :effect (and (holding ?x) (not (clear ?x)) (not (gripper-free))))
    (:action place :parameters (?x - block ?l - place) :precondition (and (holding ?x) (clear ?l))
      :effect (and (at ?x ?l) (clear ?x) (gripper-free) (not (holding ?x)) (not (clear ?l)))))"""
)
ONE_WAY_SEED = parse_problem(
    """(define (problem seed) (:domain blocks) (:objects b1 - block l1 - place)
    (:init (clear b1) (clear l1) (gripper-free)) (:goal (at b1 l1)))""",
    ONE_WAY,
)
PLACE = "1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)"
PICK = "2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)"


def block_rules(*texts: str) -> tuple[Rule, ...]:
    return parse_rules("\n".join(["variables: ?x - block, ?y - block, ?l - place", *texts]))


CASES = {
    "learned": block_rules(PLACE, PICK),
    "printed": block_rules(PLACE, "2: clear(?x) & gripper-free() & goal at(?x, ?l) -> pick(?x)"),
    "never places": block_rules(PICK),
    "places anywhere": block_rules(PLACE, PICK, "3: holding(?x) & clear(?l) & goal at(?y, ?l) -> place(?x, ?l)"),
    "picks anything": block_rules(PLACE, "2: clear(?x) & gripper-free() & goal at(?y, ?l) -> pick(?x)"),
}


def every_state(problem: Problem) -> list[Facts]:
    actions = list(groundings(ONE_WAY.schemas.values(), ONE_WAY, problem.objects))
    states = [problem.state]
    for state in states:
        for action in actions:
            after = progress(state, action.outcomes[0])
            if action.condition.holds(state) and after not in states:
                states.append(after)
    return states


def run_ends(rules: tuple[Rule, ...], problem: Problem, state: Facts) -> set[Facts]:
    """The goal facts achieved where runs end. All do here, as each `place` uses up a place for good."""
    ends, seen, queue = set(), {state}, [state]
    for current in queue:
        matches = (
            [] if problem.goal <= current else best_matches(rules, ONE_WAY, current, problem.goal, problem.objects)
        )
        afters = []
        for match in matches:
            action = ground_action(ONE_WAY, match.action)
            if action.condition.holds(current):
                afters.append(progress(current, action.outcomes[0]))
        if len(afters) < max(1, len(matches)):
            ends.add(problem.goal & current)
        queue += [after for after in dict.fromkeys(afters) if after not in seen]
        seen.update(afters)
    return ends


def every_goal(problem: Problem) -> set[Facts]:
    """Every set of places of blocks that some state has."""
    placed = [sorted(fact for fact in state if fact.predicate == "at") for state in every_state(problem)]
    return {frozenset(goal) for facts in placed for size in (1, 2) for goal in combinations(facts, size)}


def fails(rules: tuple[Rule, ...], problem: Problem) -> bool:
    """Whether the goal can be reached and some run ends without it."""
    possible = any(problem.goal <= state for state in every_state(problem))
    return possible and any(end < problem.goal for end in run_ends(rules, problem, problem.state))


@pytest.mark.parametrize("name", CASES)
def test_families_are_all_problems_whose_goals_differ(name: str) -> None:
    names, rules = ("b1", "b2", "l1", "l2"), CASES[name]
    swaps = [dict(zip(names, (*b, *p), strict=True)) for b in permutations(names[:2]) for p in permutations(names[2:])]
    problems, failing = 0, False
    for size in sizes({"block": 2, "place": 2}):
        problem, seen = grow(ONE_WAY_SEED, ONE_WAY, size), set[Facts]()
        for goal in sorted(every_goal(problem), key=sorted):
            for state in every_state(problem) if goal not in seen else ():
                task = Problem("p", "blocks", problem.objects, state, goal)
                if Atom("gripper-free") in state and any(goal <= after for after in every_state(task)):
                    problems += 1
                    failing |= fails(rules, task)
            seen.update(substitute_all(goal, swap) for swap in swaps)
    verdict = verify_family(rules, ONE_WAY, [ONE_WAY_SEED], {"block": 2, "place": 2})
    assert (verdict.answer is Answer.REFUTED) == failing
    assert failing or verdict.text.startswith(f"solved always ({problems} problems")


def test_goals_are_those_in_which_objects_are_wanted_as_in_the_seeds() -> None:
    rules = block_rules(PLACE, PICK, "3: at(?x, ?l) & clear(?x) & gripper-free() & goal holding(?x) -> pick(?x)")
    both = replace(ONE_WAY_SEED, goal=frozenset({Atom("at", ("b1", "l1")), Atom("holding", ("b1",))}))
    single = replace(ONE_WAY_SEED, goal=frozenset({Atom("holding", ("b1",))}))
    verdict = verify_family(rules, ONE_WAY, [both], {"block": 2, "place": 2})
    assert verdict.answer is Answer.SOLVED
    assert "at(_, place); at(block, _) & holding(block)" in str(verdict)
    verdict = verify_family(rules, ONE_WAY, [both, single], {"block": 2, "place": 2})
    assert refuted(verdict).problem.goal == single.goal


# Whether goals are independent, against every way of achieving one more


def achievable(graph: StateGraph, state: int, fact: Atom, kept: Facts, able: frozenset[int]) -> int | None:
    """How many actions at least make the fact true and keep what holds; nature makes no choices."""
    found = {state: 0}
    for here in (queue := [state]):
        if fact in graph.facts(here):
            return found[here]
        for _, (after,) in graph.moves(here):
            if after not in found and after in able and kept <= graph.facts(after):
                found[after] = found[here] + 1
                queue.append(after)
    return None


@pytest.mark.parametrize("name", ["blocksworld", "swap", "blocks"])
def test_goals_are_independent_if_one_more_can_always_be_achieved(name: str) -> None:
    domain, seen = shipped_domain(name), set[bool]()
    for problem in training_problems(name)[:2]:
        graph = StateGraph(domain, problem)
        assert graph.explore(500)
        predicates = {atom.predicate for atom in problem.goal}
        possible = sorted({a for facts, _ in graph.situations for a in facts if a.predicate in predicates})
        for goal in filter(graph.attainable, map(frozenset, combinations(possible, 2))):
            able = graph.attainable(goal)
            bounds: dict[int, int] = {}
            obstacle = dependence(graph, goal, sorted(able), bounds)
            steps = [
                achievable(graph, state, fact, goal & graph.facts(state), able)
                for state in able
                for fact in goal - graph.facts(state)
            ]
            assert bool(obstacle) == (None in steps)
            if not obstacle:
                assert max(bounds.values()) == max(each for each in steps if each is not None)
            seen.add(None in steps)
    assert False in seen


# Families of the tasks

BLOCKS, COLOUR = shipped_domain("blocks"), shipped_domain("colour")
BLOCKS_SEED = parse_problem(
    """(define (problem seed) (:domain blocks) (:objects b1 - block l1 - place t1 - table)
    (:init (clear b1) (clear l1) (gripper-free)) (:goal (at b1 l1)))""",
    BLOCKS,
)
COLOUR_SEED = parse_problem(
    """(define (problem seed) (:domain colour)
    (:objects b1 - block c1 - colour t1 - tray button1 - button table1 - table p1 - platform)
    (:init (on b1 table1) (unknown b1) (free p1) (gripper-free) (tray-colour t1 c1)) (:goal (achieved-goal b1)))""",
    COLOUR,
)
GACHA_SEED = parse_problem(
    """(define (problem seed) (:domain gacha) (:objects c1 - colour t1 - tray box1 - box button1 - button)
    (:init (closed box1) (clear box1) (gripper-free) (tray-colour t1 c1)) (:goal (achieved-goal c1)))""",
    GACHA,
)


def verify_blocks(rules: tuple[Rule, ...], most: int, starts: Starts, max_states: int = 10_000) -> Verdict:
    counts = {"block": most, "place": most}
    return verify_family(rules, BLOCKS, [BLOCKS_SEED], counts, starts=starts, max_states=max_states)


def test_the_printed_rule_picks_a_block_whose_place_is_taken() -> None:
    away = parse_problem(
        """(define (problem p) (:domain blocks) (:objects b1 b2 - block l1 - place t1 - table)
        (:init (clear b1) (at b2 l1) (gripper-free)) (:goal (at b1 l1)))""",
        BLOCKS,
    )
    found = refuted(verify_family(CASES["printed"], BLOCKS, [away], {}, starts="initial"))
    assert [str(step.action) for step in found.steps] == ["pick(b1)"]
    assert found.problem.goal - found.state == {Atom("at", ("b1", "l1"))}


def test_the_colour_rules_are_right_up_to_three_blocks_and_colours() -> None:
    counts = {"block": 3, "colour+tray": 3}
    found = verify_family(golden_rules("colour"), COLOUR, [COLOUR_SEED], counts, starts="initial")
    assert found.answer is Answer.SOLVED


def test_the_gacha_rules_are_right_though_new_blocks_never_end() -> None:
    assert verify_family(golden_rules("gacha"), GACHA, [GACHA_SEED], {"colour+tray": 4}).answer is Answer.SOLVED


@pytest.mark.parametrize("missing", [4, 5, 6, 7, 8])
def test_gacha_needs_its_rules_for_rolling_and_for_wrong_rolls(missing: int) -> None:
    fewer = tuple(rule for rule in golden_rules("gacha") if rule.priority != missing)
    found = verify_family(fewer, GACHA, [GACHA_SEED], {"colour+tray": 2}, starts="initial")
    assert found.answer is Answer.REFUTED


def test_a_family_without_goals_that_can_be_reached_is_refused() -> None:
    placed = replace(BLOCKS_SEED, state=frozenset({Atom("holding", ("t1",))}))
    with pytest.raises(BadInput, match="the family is empty"):
        verify_family(CASES["learned"], BLOCKS, [placed], {})


def test_rules_of_another_domain_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown type 'place'"):
        verify_family(CASES["learned"], GACHA, [GACHA_SEED], {})


def test_sizes_beyond_the_bound_are_named_and_the_others_proved() -> None:
    verdict = verify_blocks(CASES["learned"], 17, "initial", max_states=8)
    assert verdict.answer is Answer.BOUND_HIT
    assert str(verdict).startswith("bound hit (7 problems")
    assert "too large: seed, block=2, place=2" in str(verdict)
    assert len(str(verdict).splitlines()) < 5


# Hash seeds

SCRIPT = """
from bilevel.rules.verify import verify, verify_family
from bilevel.rules.rule_file import parse_rules
from bilevel.tabletop.problems import shipped_domain, training_problems
rules = parse_rules('''variables: ?x - block, ?c - colour, ?d - box, ?b - button
1: colour-of(?x, ?c) & in(?x, ?d) & closed(?d) & gripper-free() & goal achieved-goal(?c) -> open(?d)
2: clear(?d) & closed(?d) & gripper-free() & goal achieved-goal(?c) -> roll(?d, ?b)''')
domain, problem = shipped_domain("gacha"), training_problems("gacha")[1]
print(verify(rules, domain, problem), verify_family(rules, domain, [problem], {"box": 2}))
"""


def test_the_answer_does_not_depend_on_the_hash_seed() -> None:
    def answer(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "counterexample in" in answer("0")
    assert answer("0") == answer("1")
