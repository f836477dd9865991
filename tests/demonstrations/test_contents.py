"""What is in a data set: who showed what, which goals were reached, and which changes are no action's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bilevel.demonstrations.change_kinds import lifted
from bilevel.demonstrations.contents import Contents
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.traces import labelled
from bilevel.symbolic.domain import Atom
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task
from tiny_demonstrations import shown
from tiny_task import TINY, label


def contents(*demonstrations: Demonstration, task: Task | None = None) -> Contents:
    found = Contents(TINY.domain)
    for number, demonstration in enumerate(demonstrations):
        found.add(labelled(number, demonstration, TINY.domain, task))
    return found


def always_empty(scene: Scene) -> Iterator[Atom]:
    """Labels that forget that a spot is taken."""
    yield from (fact for fact in label(scene) if fact.predicate != "empty")
    yield from (Atom("empty", (spot,)) for spot in scene.roster.of_type("spot"))


def test_demonstrations_of_an_expert_hold_nothing_odd() -> None:
    found = contents(*shown())
    assert [(group.demonstrator, group.outcome, group.episodes) for group in found.groups] == [("", "success", 3)]
    assert found.groups[0].steps == sum(demonstration.steps for demonstration in shown())
    assert found.objects == {"parcel": (2, 2), "spot": (2, 2)}
    assert found.goals == found.reached == {"at": 6}
    assert {(kind.change, kind.reported == kind.count) for kind in found.unexplained} == {
        ("+empty(?spot) +lying(?parcel)", True)
    }
    assert (found.unreached, found.reached_at_once, found.ambiguous, found.flickers) == ([], [], [], [])


def test_demonstrators_and_outcomes_are_told_apart() -> None:
    first, second, third = shown()
    found = contents(replace(first, demonstrator="Ann"), replace(second, demonstrator="Bo", outcome="lost"), third)
    assert [(group.demonstrator, group.outcome) for group in found.groups] == [
        ("", "success"),
        ("Ann", "success"),
        ("Bo", "lost"),
    ]


def test_the_number_of_objects_is_told_as_a_span() -> None:
    assert contents(shown()[0], shown(objects=1)[0]).objects == {"parcel": (1, 2), "spot": (1, 2)}


def test_labels_that_forget_an_effect_are_found_with_the_action_they_spoil() -> None:
    found = contents(*shown(), task=replace(TINY, label=always_empty))
    kinds = [kind for kind in found.unexplained if kind.change.startswith("+at")]
    assert sum(kind.count for kind in kinds) == 6
    kind = kinds[0]
    assert kind.change == "+at(?parcel, ?spot) +free() -carrying(?parcel)"
    assert kind.nearest in {"put(parcel1, spot1)", "put(parcel2, spot2)"}
    assert kind.lacks == f"empty({kind.came[0].split(', ')[1].rstrip(')')}) did not become false"
    state = dict(shown()[kind.episode].states)[kind.step]
    assert set(kind.came) <= set(map(str, state))


def test_goals_that_do_not_hold_at_the_end_are_named() -> None:
    first, second, _ = shown()
    wanted = frozenset({Atom("at", ("parcel1", "spot2"))})
    found = contents(replace(first, goals=((0, wanted),)), replace(second, goals=((0, frozenset()),)))
    assert [(each.episode, each.facts) for each in found.unreached] == [(0, ("at(parcel1, spot2)",))]
    assert (found.goals["at"], found.reached["at"]) == (1, 0)
    assert found.reached_at_once == [1]


def test_flickers_are_counted() -> None:
    first = shown(objects=1)[0]
    (_, state), *others = first.states
    states = ((0, state), (1, state - {Atom("free")}), (2, state), *others)
    (kind,) = contents(replace(first, states=states)).flickers
    assert (kind.change, kind.count, kind.step) == ("-free()", 1, 1)


def test_changes_are_the_same_but_for_their_objects() -> None:
    objects = {"a": "cube", "b": "cube", "c": "spot"}
    on = {Atom("on", ("a", "c"))}, {Atom("on", ("b", "c"))}
    one, other = (lifted(frozenset(came), frozenset(went), objects) for came, went in (on, on[::-1]))
    assert one == other == "+on(?cube, ?spot) -on(?cube2, ?spot)"
