"""From plans and labelled states to traces: settling, flicker, exogenous changes, new objects, growing goals."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise, product

import pytest
from notation import facts

from bilevel.rules import traces as traces_module
from bilevel.rules.traces import (
    MOST_LOOKED_PAST,
    Abstraction,
    Change,
    Explanation,
    Trace,
    explain_change,
    segments,
    traces_from_states,
)
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Domain, Facts, Outcome
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.semantics import (
    GroundAction,
    bind_outcome,
    ground,
    ground_action,
    natures_choices,
    progress,
)
from bilevel.tabletop.problems import shipped_domain

SETTLING = 5
LONG = SETTLING + 1


BLOCKS, GACHA = shipped_domain("blocks"), shipped_domain("gacha")
OBJECTS = {"a": "block", "b": "block", "l": "place", "m": "place", "t": "table"}
START = facts("gripper-free, clear a, clear b, clear l, clear m")
GOAL = facts("at a l, at b m")


def after(state: Facts, *actions: str, domain: Domain = BLOCKS) -> Facts:
    """The state after deterministic actions, such as `"place a l"`."""
    for action in map(str.split, actions):
        grounded = ground_action(domain, Action(action[0], tuple(action[1:])))
        assert grounded.condition.holds(state)
        state = progress(state, grounded.outcomes[0])
    return state


PICKED, PLACED = after(START, "pick a"), after(START, "pick a", "place a l")
BOTH_PICKED = after(PLACED, "pick b")
FALLING = PICKED - facts("holding a")  # released, but not at its place yet


def abstract(states: Sequence[Facts], objects: dict[str, str] = OBJECTS, domain: Domain = BLOCKS) -> Abstraction:
    return traces_from_states(domain, states, [GOAL] * len(states), objects, SETTLING)


def done(trace: Trace) -> list[str]:
    return [str(step.action.action) for step in trace.steps]


def named(actions: Sequence[Action | None]) -> list[str]:
    return [str(action) if action else "-" for action in actions]


def test_a_trace_is_cut_at_every_goal() -> None:
    states = [START, PICKED, PLACED, BOTH_PICKED, after(BOTH_PICKED, "place b m")]
    (trace,) = abstract(states).traces
    assert [(str(goal), [str(step.action.action) for step in steps]) for goal, steps in segments(trace)] == [
        ("at(a, l)", ["pick(a)", "place(a, l)"]),
        ("at(b, m)", ["pick(b)", "place(b, m)"]),
    ]


def test_goals_achieved_together_share_their_steps_and_steps_after_the_last_goal_have_none() -> None:
    domain = parse_domain(
        "(define (domain d) (:predicates (p) (q) (r))"
        "(:action one :parameters () :effect (r)) (:action two :parameters () :effect (and (p) (q) (not (r)))))"
    )
    states = [NO_FACTS, facts("r"), facts("p, q"), facts("p, q, r")]
    (trace,) = traces_from_states(domain, states, [facts("p, q")] * 4, {}).traces
    assert [(goal.predicate, len(steps)) for goal, steps in segments(trace)] == [("p", 2), ("q", 2)]


# From labelled states


def test_every_low_level_step_gets_the_action_it_helped_to_bring_about() -> None:
    found = abstract([START] * 3 + [PICKED] * 7 + [PLACED] * 2)
    assert [done(trace) for trace in found.traces] == [["pick(a)", "place(a, l)"]]
    assert named(found.actions) == ["pick(a)"] * 3 + ["place(a, l)"] * 7 + ["-"] * 2
    assert (found.exogenous, found.ambiguous) == (0, 0)


@pytest.mark.parametrize("states", [[], [START], [START] * 20])
def test_without_a_change_there_is_nothing_to_explain(states: list[Facts]) -> None:
    assert abstract(states) == Abstraction((), (None,) * len(states))


@pytest.mark.parametrize("length", range(1, SETTLING + 1))
def test_a_short_lived_state_in_between_is_looked_past(length: int) -> None:
    found = abstract([START] * 9 + [PICKED] * 9 + [FALLING] * length + [PLACED] * 9)
    assert [done(trace) for trace in found.traces] == [["pick(a)", "place(a, l)"]]
    assert named(found.actions) == ["pick(a)"] * 9 + ["place(a, l)"] * (9 + length) + ["-"] * 9
    assert found.exogenous == 0
    assert found.traces[0].steps[1].state == PICKED


def test_several_short_lived_states_in_a_row_are_looked_past() -> None:
    wobbling = [FALLING, FALLING - facts("clear m"), FALLING, FALLING - facts("clear b")]
    found = abstract([PICKED] * 3 + wobbling * 3 + [PLACED])
    assert [done(trace) for trace in found.traces] == [["place(a, l)"]]
    assert named(found.actions) == ["place(a, l)"] * 15 + ["-"]


def test_a_state_that_stays_is_not_looked_past() -> None:
    found = abstract([PICKED] * 9 + [FALLING] * LONG + [PLACED] * 9 + [BOTH_PICKED] * 9)
    assert found.exogenous == 2
    assert [done(trace) for trace in found.traces] == [["pick(b)"]]
    assert named(found.actions) == ["-"] * (9 + LONG) + ["pick(b)"] * 9 + ["-"] * 9


def test_a_flicker_is_no_change() -> None:
    flickering = [START] * 3 + [START - facts("clear m")] * 2 + [START] * 4 + [START - facts("clear l")] + [START]
    found = abstract(flickering + [PICKED] * 2)
    assert [done(trace) for trace in found.traces] == [["pick(a)"]]
    assert named(found.actions) == ["pick(a)"] * len(flickering) + ["-"] * 2
    assert found.exogenous == 0
    assert abstract(flickering).changes == ()
    assert [(each.step, each.before - each.after) for each in found.flickers] == [
        (3, facts("clear m")),
        (9, facts("clear l")),
    ]


TELEPORTED = (PLACED - facts("at a l")) | facts("clear a, clear l")


def test_an_exogenous_change_ends_the_trace_and_another_begins() -> None:
    again = after(TELEPORTED, "pick a")
    states = (
        [START] * 9 + [PICKED] * 9 + [PLACED] * 9 + [TELEPORTED] * 9 + [again] * 9 + [after(again, "place a l")] * 2
    )
    found = abstract(states)
    assert [done(trace) for trace in found.traces] == [["pick(a)", "place(a, l)"], ["pick(a)", "place(a, l)"]]
    assert [trace.steps[0].state for trace in found.traces] == [START, TELEPORTED]
    assert named(found.actions[18:27]) == ["-"] * 9
    assert named(found.actions[27:36]) == ["pick(a)"] * 9
    assert (found.exogenous, found.ambiguous) == (1, 0)
    assert found.changes[2] == Change(27, PLACED, TELEPORTED)


def test_an_exogenous_change_may_be_short_lived() -> None:
    short = abstract([PLACED] * 9 + [TELEPORTED] * 2)
    assert short == Abstraction((), (None,) * 11, (Change(9, PLACED, TELEPORTED),))
    again = after(TELEPORTED, "pick b")
    found = abstract([PLACED] * 9 + [TELEPORTED] * 2 + [again] * 9 + [after(again, "place b m")] * 9)
    assert found.exogenous == 1
    assert [done(trace) for trace in found.traces] == [["pick(b)", "place(b, m)"]]
    assert named(found.actions) == ["-"] * 9 + ["pick(b)"] * 2 + ["place(b, m)"] * 9 + ["-"] * 9


def test_what_the_demonstrator_was_doing_stands_for_steps_before_an_exogenous_change() -> None:
    doing = [Action("pick", ("b",))] * 20
    found = traces_from_states(BLOCKS, [PLACED] * 9 + [TELEPORTED] * 11, [GOAL] * 20, OBJECTS, recorded=doing)
    assert named(found.actions) == ["pick(b)"] * 9 + ["-"] * 11


def test_a_trace_holds_the_goal_at_the_time_of_each_change() -> None:
    grown = GOAL | facts("at a m")
    states = [START, START, PICKED, PICKED, PLACED]
    goals = [facts("at b m"), facts("at b m"), facts("at b m"), GOAL, grown]
    (trace,) = traces_from_states(BLOCKS, states, goals, OBJECTS).traces
    assert [step.goal for step in trace.steps] == [facts("at b m"), grown]
    assert [str(goal) for goal, _ in segments(trace)] == ["at(a, l)"]


def test_a_block_that_arrives_is_exogenous_and_can_be_used_from_then_on() -> None:
    """As in Factory, where blocks and their goals arrive while the robot works."""
    arrived = PLACED | facts("clear c, clear n")
    states = [PICKED] * 9 + [PLACED] * 9 + [arrived] * 9 + [after(arrived, "pick c")] * 9
    found = abstract(states, {**OBJECTS, "c": "block", "n": "place"})
    assert [done(trace) for trace in found.traces] == [["place(a, l)"], ["pick(c)"]]
    assert found.exogenous == 1


# Gacha: nature's choices, new objects, several explanations

GACHA_OBJECTS = {"box": "box", "button": "button", "red": "colour", "t": "tray"}
CLOSED = facts("gripper-free, clear box, closed box, tray-colour t red")
ROLLED = (CLOSED - facts("clear box")) | facts("in x box, colour-of x red")


def test_a_block_that_arrives_at_the_very_step_of_a_placing_does_not_hide_it() -> None:
    objects = {**OBJECTS, "c": "block", "n": "place"}
    arrived = PLACED | facts("clear c, clear n")
    result = abstract([START] * LONG + [PICKED] * LONG + [arrived] * LONG, objects)
    assert [str(step.action.action) for trace in result.traces for step in trace.steps] == ["pick(a)", "place(a, l)"]
    assert result.traces[-1].steps[-1].next_state == PLACED
    assert result.exogenous == 1
    assert result.actions == (Action("pick", ("a",)),) * LONG + (Action("place", ("a", "l")),) * LONG + (None,) * LONG


def test_natures_choice_is_read_off_the_new_state() -> None:
    found = abstract([CLOSED] * 2 + [ROLLED] * 2, GACHA_OBJECTS, GACHA)
    (step,) = found.traces[0].steps
    assert str(step.action.action) == "roll(box, button)"
    assert step.outcome == Outcome(facts("in x box, colour-of x red"), facts("clear box"))
    assert found.ambiguous == 0


def test_an_object_that_nobody_declared_is_what_its_facts_say() -> None:
    found = abstract([CLOSED] * 2 + [ROLLED] * 2, GACHA_OBJECTS, GACHA)
    assert found.traces[0].objects == {**GACHA_OBJECTS, "x": "block"}
    clear_first = [NO_FACTS, facts("clear c, gripper-free"), facts("holding c")]
    assert traces_from_states(BLOCKS, clear_first, [NO_FACTS] * 3, {}).traces[0].objects == {"c": "block"}


def test_a_block_that_has_been_seen_is_not_new() -> None:
    seen = CLOSED | facts("colour-of x red")
    back_in_the_box = abstract([seen] * 9 + [ROLLED] * 9, {**GACHA_OBJECTS, "x": "block"}, GACHA)
    assert back_in_the_box.exogenous == 1
    assert back_in_the_box.traces == ()


def test_of_several_explanations_the_first_is_taken_and_the_case_counted() -> None:
    objects = {**GACHA_OBJECTS, "button": "button", "a-button": "button"}
    for order in (list(objects), list(reversed(objects))):
        found = abstract([CLOSED, ROLLED], {name: objects[name] for name in order}, GACHA)
        assert named(found.actions) == ["roll(box, a-button)", "-"]
        assert found.ambiguous == 1
        (change,) = found.changes
        assert named(change.actions) == ["roll(box, a-button)", "roll(box, button)"]


def test_arguments_are_of_the_types_the_schema_asks_for() -> None:
    domain = parse_domain(
        "(define (domain d) (:types van plane - vehicle town) (:predicates (at ?v - vehicle ?t - town))"
        "(:action drive :parameters (?v - van ?a ?b - town) :precondition (at ?v ?a)"
        " :effect (and (at ?v ?b) (not (at ?v ?a))))"
        "(:action fly :parameters (?v - plane ?a ?b - town) :precondition (at ?v ?a)"
        " :effect (and (at ?v ?b) (not (at ?v ?a)))))"
    )
    objects = {"p": "plane", "v": "van", "x": "town", "y": "town"}
    found = [str(a.action) for a, _ in explain_change(domain, facts("at p x"), facts("at p y"), objects)]
    assert found == ["fly(p, x, y)"]


def test_preconditions_may_be_equal_unequal_or_negative() -> None:
    domain = parse_domain(
        "(define (domain d) (:predicates (p ?x) (q ?x ?y) (lost))"
        "(:action same :parameters (?x ?y) :precondition (and (= ?x ?y) (not (lost))) :effect (q ?x ?y))"
        "(:action other :parameters (?x ?y) :precondition (not (= ?x ?y)) :effect (q ?x ?y)))"
    )
    objects = {"a": "object", "b": "object"}

    def explained(before: str, after: str) -> list[str]:
        return [str(a.action) for a, _ in explain_change(domain, facts(before), facts(after), objects)]

    assert explained("", "q a a") == ["same(a, a)"]
    assert explained("", "q a b") == ["other(a, b)"]
    assert explained("lost", "lost, q a a") == []


# Random walks


def actions_in(domain: Domain, state: Facts, objects: dict[str, str]) -> list[GroundAction]:
    found = []
    for _, schema in sorted(domain.schemas.items()):
        kinds = [[o for o in objects if domain.is_subtype(objects[o], p.type)] for p in schema.parameters]
        grounded = [ground(schema, arguments) for arguments in product(*kinds)]
        found += [action for action in grounded if action and action.condition.holds(state)]
    return found


def walk(
    domain: Domain, state: Facts, objects: dict[str, str], rng: random.Random, steps: int
) -> tuple[list[Action], list[Facts]]:
    """Random actions that change something, with the states they lead to; `objects` gets what nature makes."""
    actions, states = [], [state]
    for _ in range(steps):
        moves = [
            (action, bind_outcome(outcome, choice), {v.name: v.type for v in outcome.chosen}, choice)
            for action in actions_in(domain, state, objects)
            for outcome in action.outcomes
            for choice in natures_choices(outcome, domain, objects)
        ]
        moves = [move for move in moves if progress(state, move[1]) != state]
        if not moves:
            break
        action, outcome, kinds, choice = rng.choice(moves)
        objects |= {choice[v]: kind for v, kind in kinds.items() if choice[v] not in objects}
        state = progress(state, outcome)
        actions.append(action.action)
        states.append(state)
    return actions, states


WALKS = {
    "blocks": (START, OBJECTS),
    "pick-place": (
        facts("robot-at k, free, at a k, at b l"),
        {"a": "item", "b": "item", "k": "location", "l": "location", "m": "location"},
    ),
    "gacha": (
        CLOSED | facts("tray-colour u blue"),
        {**GACHA_OBJECTS, "blue": "colour", "u": "tray"},
    ),
    "colour": (
        facts(
            "gripper-free, on a table, on b table, free p, unknown a, unknown b, tray-colour t red, tray-colour u blue"
        ),
        {"a": "block", "b": "block", "p": "platform", "table": "table", "button": "button"}
        | {"t": "tray", "u": "tray", "red": "colour", "blue": "colour"},
    ),
}


@pytest.mark.parametrize("settled", [True, False], ids=["at once", "settling"])
@pytest.mark.parametrize("name", WALKS)
def test_random_walks_are_recovered_exactly(name: str, settled: bool) -> None:
    domain = shipped_domain(name)
    for seed in range(25):
        rng = random.Random(f"{name} {seed}")
        state, known = WALKS[name]
        objects = dict(known)
        actions, states = walk(domain, state, objects, rng, rng.randint(0, 12))
        labels, expected = [], []
        for action, (here, there) in zip(actions, pairwise(states), strict=True):
            run = [here] * rng.randint(1, 8)
            run += [] if settled else [here & there] * rng.randint(0, SETTLING)  # what goes, goes first
            labels += run
            expected += [str(action)] * len(run)
        last = rng.randint(1, 8)
        labels += [states[-1]] * last
        found = abstract(labels, objects, domain)
        assert [done(trace) for trace in found.traces] == ([list(map(str, actions))] if actions else [])
        assert [step.state for trace in found.traces for step in trace.steps] == states[:-1]
        assert named(found.actions) == expected + ["-"] * last
        assert found.exogenous == 0


def test_labels_that_never_settle_are_looked_at_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def explain(domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str]) -> list[Explanation]:
        asked.append(after)
        return explain_change(domain, before, after, objects)

    monkeypatch.setattr(traces_module, "explain_change", explain)
    noise = [frozenset({Atom("clear", (f"thing{i}",)), Atom("clear", (f"other{i}",))}) for i in range(300)]
    assert abstract(noise).exogenous == 299
    assert len(asked) <= 300 * MOST_LOOKED_PAST


@pytest.mark.parametrize(("goals", "recorded"), [(1, 0), (2, 1), (3, 2)])
def test_each_state_needs_its_goal_and_its_recorded_action(goals: int, recorded: int) -> None:
    with pytest.raises(BadInput, match="2 states need as many goals and recorded actions"):
        traces_from_states(BLOCKS, [START, PICKED], [GOAL] * goals, OBJECTS, recorded=[None] * recorded)


LAMPS = parse_domain(
    """(define (domain lamps) (:requirements :adl) (:types lamp)
  (:predicates (lit ?l - lamp) (dark ?l - lamp) (wired ?l ?m - lamp))
  (:action flip :parameters (?l - lamp)
    :effect (forall (?m - lamp) (when (wired ?l ?m)
      (and (when (lit ?m) (and (dark ?m) (not (lit ?m))))
           (when (not (lit ?m)) (and (lit ?m) (not (dark ?m)))))))))""",
    adl=True,
)


def test_actions_of_adl_are_found_by_what_they_do_in_the_case_at_hand() -> None:
    wires = {Atom("wired", pair) for pair in (("a", "a"), ("a", "b"), ("b", "b"))}
    lights = ["dark lit", "lit dark", "lit lit", "lit lit"]
    states = [
        frozenset(wires | {Atom(light, (name,)) for light, name in zip(both.split(), "ab", strict=True)})
        for both in lights
    ]
    found = traces_from_states(LAMPS, states, [frozenset()] * 4, {"a": "lamp", "b": "lamp"})
    assert found.actions == (Action("flip", ("a",)), Action("flip", ("b",)), None, None)
    assert (found.traces, found.exogenous) == ((), 0)
