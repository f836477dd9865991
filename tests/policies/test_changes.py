"""What brought about a change: in made-up sequences of states, and in episodes of experts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bilevel.policies.episode import COLLISION, DROP, EXOGENOUS, FLICKER, OWN, Episode, LogEntry, attribute_changes
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import rollout
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Facts
from bilevel.symbolic.pddl import parse_domain
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


def kinds(
    action: Action | None,
    *episode: Span,
) -> Any:
    """The kinds of the changes in an episode in which the same action is done all the time."""
    entries: list[LogEntry] = []
    timestep = 0
    for name, length, *events in episode:
        entries.append(LogEntry(timestep, BLOCKS[name], NO_FACTS, action, tuple(map(str, events))))
        timestep += length
    return [change.kind for change in attribute_changes(shipped_domain("blocks"), entries, timestep, {})]


B = ("before", 40)


@pytest.mark.parametrize(
    ("action", "episode", "found"),
    [
        (PICK, [B], []),
        (PICK, [B, ("held", 40)], [OWN]),
        (PLACE, [("held", 40), ("placed", 0)], [OWN]),
        # Labels may settle.
        (PICK, [B, ("nothing", 5), ("held", 40)], [OWN]),
        (PICK, [B, ("nothing", 3), ("pushed", 4), ("held", 40)], [OWN]),
        (PICK, [B, ("nothing", 6), ("held", 40)], [DROP, OWN]),
        # What is undone at once is a flicker.
        (PICK, [B, ("held", 3), B], [FLICKER]),
        (PICK, [B, ("held", 3), ("before", 2), ("held", 40)], [FLICKER, OWN]),
        (PICK, [B, ("nothing", 4), ("pushed", 4), B], [FLICKER]),
        (PICK, [B, ("held", 6), B], [OWN, DROP]),
        # What takes something that the action needs is a drop; what is about other things is a collision.
        (PLACE, [("held", 40), B], [DROP]),
        (PLACE, [("held", 40), ("misplaced", 40)], [DROP]),
        (PICK, [B, ("other-held", 40)], [DROP]),
        (PICK, [B, ("pushed", 40)], [COLLISION]),
        (PICK, [B, ("held-and-pushed", 40)], [COLLISION]),
        # An event makes a change exogenous, at its time alone, and the action may have its effects, too.
        (PICK, [B, ("pushed", 40, "teleport b")], [EXOGENOUS]),
        (PICK, [B, ("held-and-pushed", 40, "teleport b")], [OWN, EXOGENOUS]),
        (PICK, [B, ("arrived", 40, "arrival c")], [OWN, EXOGENOUS]),
        (PICK, [B, ("held", 40, "return b")], [OWN]),
        (PICK, [B, ("nothing", 3, "teleport b"), ("held-and-pushed", 40)], [OWN, EXOGENOUS]),
        (PICK, [("before", 40, "teleport b"), ("pushed", 40)], [COLLISION]),
        # Without an action, the effects of any are its own.
        (None, [B, ("held", 40), ("placed", 3), ("nothing", 0)], [OWN, OWN, COLLISION]),
        (None, [B, ("pushed", 40)], [COLLISION]),
        (None, [B, ("pushed", 40, "teleport a")], [EXOGENOUS]),
    ],
)
def test_what_brought_a_change_about(action: Action | None, episode: list[Span], found: list[str]) -> None:
    assert kinds(action, *episode) == found


# Episodes


def run(task: Task, objects: int, episode: int = 0, **arguments: Any) -> Episode:
    env = SceneEnv(task, objects, **arguments)
    return rollout(env, expert_policy(env), evaluation_seed(0, objects, episode))


def kinds_in(episode: Episode) -> dict[str, int]:
    """How many changes there were of each kind, without those of which there was none."""
    return {kind: number for kind, number in episode.counts.items() if number}


def test_where_nothing_happens_by_itself_all_that_an_expert_brings_about_is_meant() -> None:
    assert kinds_in(run(TINY, 1)) == {OWN: 2}
    assert kinds_in(run(TINY_ACTING, 1)) == {OWN: 2}  # although it does not say what it is doing


def test_arrivals_are_exogenous_and_do_not_hide_the_action_that_was_completed() -> None:
    assert all(kinds_in(run(TINY, 3, episode)) == {OWN: 6, EXOGENOUS: 2} for episode in range(5))


def test_what_is_dropped_is_a_drop() -> None:
    """By an expert that lets go once, on the way to the spot, and looks at what it has done for a while."""
    calls: list[str] = []

    def butterfingers(scene: Scene, action: Action) -> Control:
        calls.append(action.name)
        begun = calls.index("put") if "put" in calls else len(calls)
        is_clumsy = begun + 8 <= len(calls) < begun + 18
        return np.zeros(3, np.float32) if is_clumsy else control(scene, action)

    assert kinds_in(run(replace(TINY, expert=Expert(choose, butterfingers)), 1)) == {OWN: 3, DROP: 1, "unexpected": 1}


LAMPS = parse_domain(
    """(define (domain lamps) (:requirements :adl) (:types lamp)
  (:predicates (lit ?l - lamp) (dark ?l - lamp) (wired ?l ?m - lamp))
  (:action flip :parameters (?l - lamp)
    :effect (forall (?m - lamp) (when (wired ?l ?m)
      (and (when (lit ?m) (and (dark ?m) (not (lit ?m))))
           (when (not (lit ?m)) (and (lit ?m) (not (dark ?m)))))))))""",
    adl=True,
)


def test_what_an_action_of_adl_does_in_the_case_at_hand_is_its_own() -> None:
    wires = facts("wired a a, wired a b, wired c c")
    states = [wires | facts(f"{a} a, {b} b, dark c") for a, b in (("dark", "lit"), ("lit", "dark"), ("lit", "lit"))]
    flip = Action("flip", ("a",))
    entries = [LogEntry(10 * number, state, NO_FACTS, flip) for number, state in enumerate(states)]
    found = attribute_changes(LAMPS, entries, 30, dict.fromkeys("abc", "lamp"))
    assert [change.kind for change in found] == [OWN, COLLISION]
