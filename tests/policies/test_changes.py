"""What brought about a change: in made-up sequences of states, and in episodes of experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bilevel.policies.changes import (
    COLLISION,
    DROP,
    EXOGENOUS,
    FLICKER,
    OWN,
    ChangeCounts,
    Period,
    attribute_changes,
    count_changes,
)
from bilevel.policies.episode import Episode
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import rollout
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.adl import parse_adl_domain
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop.problems import shipped_domain
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_task import TINY, TINY_ACTING, choose, control

Span = tuple[str, int] | tuple[str, int, str]  # a state's name, its steps, an event at its beginning


def atom(text: str) -> Atom:
    name, *terms = text.split()
    return Atom(name, tuple(terms))


def facts(text: str) -> Facts:
    return frozenset(atom(fact) for fact in text.split(", "))


PICK, PLACE = Action("pick", ("a",)), Action("place", ("a", "p"))
BLOCKS = {
    "before": facts("clear a, clear p, at b q, gripper-free"),
    "held": facts("holding a, clear p, at b q"),
    "other-held": facts("clear a, clear p, clear q, holding b"),
    "pushed": facts("clear a, clear p, clear q, clear b, gripper-free"),
    "held-and-pushed": facts("holding a, clear p, clear q, clear b"),
    "nothing": facts("clear a, clear p, at b q"),
    "placed": facts("at a p, at b q, gripper-free"),
    "misplaced": facts("at a r, clear p, at b q, gripper-free"),
    "arrived": facts("holding a, clear p, at b q, clear c, clear s"),
}
GACHA = {
    "closed": facts("clear box, closed box, gripper-free, colour-of block1 red"),
    "rolled": facts("in block2 box, colour-of block2 red, closed box, gripper-free, colour-of block1 red"),
    "lost": facts("in block2 box, colour-of block2 red, closed box, gripper-free"),
    "returned": facts("in block1 box, closed box, gripper-free, colour-of block1 red"),
    "two": facts(
        "in block2 box, colour-of block2 red, in block3 box, colour-of block3 red, closed box, gripper-free, "
        "colour-of block1 red"
    ),
}


def kinds(
    action: Action | None,
    *episode: Span,
    domain: str = "blocks",
    states: Mapping[str, Facts] = BLOCKS,
    objects: Mapping[str, str] | None = None,
) -> Any:
    """The kinds of the changes in an episode in which the same action is done all the time."""
    periods: list[Period] = []
    timestep = 0
    for name, length, *events in episode:
        periods.append(Period(states[name], action, timestep, length, [timestep for _ in events]))
        timestep += length
    return [change.kind for change in attribute_changes(shipped_domain(domain), periods, objects or {})]


def test_the_effects_of_the_action_are_its_own() -> None:
    assert kinds(PICK, ("before", 40), ("held", 40)) == [OWN]
    assert kinds(PLACE, ("held", 40), ("placed", 0)) == [OWN]
    assert kinds(PICK, ("before", 40), ("held", 1)) == [OWN]
    assert kinds(PICK, ("before", 40)) == []


def test_labels_may_settle() -> None:
    assert kinds(PICK, ("before", 40), ("nothing", 5), ("held", 40)) == [OWN]
    assert kinds(PICK, ("before", 40), ("nothing", 3), ("pushed", 4), ("held", 40)) == [OWN]
    assert kinds(PICK, ("before", 40), ("nothing", 6), ("held", 40)) == [DROP, OWN]


def test_what_is_undone_at_once_is_a_flicker() -> None:
    assert kinds(PICK, ("before", 40), ("held", 3), ("before", 40)) == [FLICKER]
    assert kinds(PICK, ("before", 40), ("held", 3), ("before", 2), ("held", 40)) == [FLICKER, OWN]
    assert kinds(PICK, ("before", 40), ("nothing", 4), ("pushed", 4), ("before", 40)) == [FLICKER]
    assert kinds(PICK, ("before", 40), ("held", 6), ("before", 40)) == [OWN, DROP]


def test_what_takes_something_that_the_action_needs_is_a_drop() -> None:
    assert kinds(PLACE, ("held", 40), ("before", 40)) == [DROP]
    assert kinds(PLACE, ("held", 40), ("misplaced", 40)) == [DROP]
    assert kinds(PICK, ("before", 40), ("other-held", 40)) == [DROP]


def test_what_is_about_other_things_is_a_collision() -> None:
    assert kinds(PICK, ("before", 40), ("pushed", 40)) == [COLLISION]
    assert kinds(PICK, ("before", 40), ("held-and-pushed", 40)) == [COLLISION]


def test_an_event_makes_a_change_exogenous_and_the_action_may_have_its_effects_too() -> None:
    assert kinds(PICK, ("before", 40), ("pushed", 40, "teleport b")) == [EXOGENOUS]
    assert kinds(PICK, ("before", 40), ("held-and-pushed", 40, "teleport b")) == [OWN, EXOGENOUS]
    assert kinds(PICK, ("before", 40), ("arrived", 40, "arrival c")) == [OWN, EXOGENOUS]
    assert kinds(PICK, ("before", 40), ("held", 40, "return b")) == [OWN]
    assert kinds(PICK, ("before", 40), ("nothing", 3, "teleport b"), ("held-and-pushed", 40)) == [OWN, EXOGENOUS]


def test_nature_may_choose() -> None:
    def rolled(*episode: Span) -> Any:
        return kinds(Action("roll", ("box", "button")), *episode, domain="gacha", states=GACHA)

    assert rolled(("closed", 30), ("rolled", 30)) == [OWN]
    assert rolled(("closed", 30), ("two", 30)) == [COLLISION]
    assert rolled(("closed", 30), ("returned", 30)) == [DROP]
    assert rolled(("closed", 30), ("returned", 30, "teleport block1")) == [EXOGENOUS]
    assert rolled(("closed", 30), ("lost", 30, "lost block1")) == [OWN, EXOGENOUS]


def test_without_an_action_the_effects_of_any_are_its_own() -> None:
    assert kinds(None, ("before", 40), ("held", 40), ("placed", 3), ("nothing", 0)) == [OWN, OWN, COLLISION]
    assert kinds(None, ("before", 40), ("pushed", 40)) == [COLLISION]
    assert kinds(None, ("before", 40), ("pushed", 40, "teleport a")) == [EXOGENOUS]
    assert kinds(None, ("closed", 30), ("rolled", 30), domain="gacha", states=GACHA) == [COLLISION]  # with no button
    button = {"button": "button"}
    assert kinds(None, ("closed", 30), ("rolled", 30), domain="gacha", states=GACHA, objects=button) == [OWN]


def test_changes_add_up() -> None:
    runs = [Period(BLOCKS["before"], PICK, 0, 40), Period(BLOCKS["held"], PLACE, 40, 40)]
    runs.append(Period(BLOCKS["misplaced"], PICK, 80, 9))
    found = count_changes(attribute_changes(shipped_domain("blocks"), runs, {}))
    assert found == ChangeCounts(own=1, drop=1)
    assert found + ChangeCounts(own=2, flicker=1, exogenous=5) == ChangeCounts(own=3, drop=1, flicker=1, exogenous=5)
    assert (found.unexpected, found.refinement) == (1, 0.5)
    assert ChangeCounts(exogenous=3).refinement is None


# Episodes


def run(task: Task, objects: int, episode: int = 0, **arguments: Any) -> Episode:
    env = SceneEnv(task, objects, **arguments)
    return rollout(env, expert_policy(env), evaluation_seed(0, objects, episode))


def test_where_nothing_happens_by_itself_all_that_an_expert_brings_about_is_meant() -> None:
    assert run(TINY, 1).counts == ChangeCounts(own=2)
    assert run(TINY_ACTING, 1).counts == ChangeCounts(own=2)  # although it does not say what it is doing


def test_arrivals_are_exogenous_and_do_not_hide_the_action_that_was_completed() -> None:
    assert all(run(TINY, 3, episode).counts == ChangeCounts(own=6, exogenous=2) for episode in range(5))


def test_what_slips_away_by_itself_is_exogenous() -> None:
    """Unless that is at once: then it is nothing but a flicker."""
    runs = [run(TINY, 1, episode, slip_rate=0.05) for episode in range(10)]
    total = sum((found.counts for found in runs), ChangeCounts())
    assert total.exogenous > 0
    assert total == ChangeCounts(own=total.own, exogenous=total.exogenous, flicker=total.flicker)


def test_what_is_dropped_is_a_drop() -> None:
    """By an expert that lets go once, on the way to the spot, and looks at what it has done for a while."""
    calls: list[str] = []

    def butterfingers(scene: Scene, action: Action) -> Control:
        calls.append(action.name)
        begun = calls.index("put") if "put" in calls else len(calls)
        is_clumsy = begun + 8 <= len(calls) < begun + 18
        return np.zeros(3, np.float32) if is_clumsy else control(scene, action)

    assert run(replace(TINY, expert=Expert(choose, butterfingers)), 1).counts == ChangeCounts(own=3, drop=1)


LAMPS = parse_adl_domain("""(define (domain lamps) (:requirements :adl) (:types lamp)
  (:predicates (lit ?l - lamp) (dark ?l - lamp) (wired ?l ?m - lamp))
  (:action flip :parameters (?l - lamp)
    :effect (forall (?m - lamp) (when (wired ?l ?m)
      (and (when (lit ?m) (and (dark ?m) (not (lit ?m))))
           (when (not (lit ?m)) (and (lit ?m) (not (dark ?m)))))))))""")


def test_what_an_action_of_adl_does_in_the_case_at_hand_is_its_own() -> None:
    wires = facts("wired a a, wired a b, wired c c")
    states = [wires | facts(f"{a} a, {b} b, dark c") for a, b in (("dark", "lit"), ("lit", "dark"), ("lit", "lit"))]
    runs = [Period(state, Action("flip", ("a",)), 10 * number, 10) for number, state in enumerate(states)]
    found = attribute_changes(LAMPS, runs, dict.fromkeys("abc", "lamp"))
    assert [change.kind for change in found] == [OWN, COLLISION]
