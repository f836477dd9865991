"""Whose doing a change was: in made-up sequences of states, and in real episodes of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pytest

from bilevel.experiments.evaluation import Run, Trial, evaluate, run_episode
from bilevel.policies.changes import COLLISION, DROP, EXOGENOUS, FLICKER, OWN, Changes, count_changes, find_changes
from bilevel.policies.chronicle import Stretch
from bilevel.policies.policies import BilevelPolicy, Control
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.tasks import TASKS, Task

Episode = tuple[str, int] | tuple[str, int, str]  # a state's name, its steps, an event at its beginning


def atom(text: str) -> Atom:
    name, *terms = text.split()
    return Atom(name, tuple(terms))


def facts(text: str) -> Facts:
    return frozenset(atom(fact) for fact in text.split(", "))


PICK, PLACE = Action("pick", ("a",)), Action("place", ("a", "p"))
BLOCKS = {
    "before": facts("clear a, clear p, at b q, clear b, gripper-free"),
    "held": facts("holding a, clear p, at b q, clear b"),
    "other-held": facts("clear a, clear p, clear q, holding b"),
    "pushed": facts("clear a, clear p, clear q, clear b, gripper-free"),
    "held-and-pushed": facts("holding a, clear p, clear q, clear b"),
    "nothing": facts("clear a, clear p, at b q, clear b"),
    "placed": facts("at a p, clear a, at b q, clear b, gripper-free"),
    "misplaced": facts("at a r, clear a, clear p, at b q, clear b, gripper-free"),
    "arrived": facts("holding a, clear p, at b q, clear b, clear c, clear s"),
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
    *episode: Episode,
    domain: str = "blocks",
    states: Mapping[str, Facts] = BLOCKS,
    objects: Mapping[str, str] | None = None,
) -> Any:
    """The kinds of the changes in an episode in which the same action is done all the time."""
    runs: list[Stretch] = []
    moment = 0
    for name, length, *events in episode:
        runs.append(Stretch(states[name], action, moment, length, [(moment, str(event)) for event in events]))
        moment += length
    return [change.kind for change in find_changes(shipped_domain(domain), runs, objects or {})]


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


def test_an_event_explains_no_change_at_another_time() -> None:
    assert kinds(PICK, ("before", 40, "teleport b"), ("pushed", 40)) == [COLLISION]
    assert kinds(PICK, ("before", 40), ("pushed", 40), ("held", 40, "teleport b")) == [COLLISION, OWN, EXOGENOUS]


def test_nature_may_choose() -> None:
    def rolled(*episode: Episode) -> Any:
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


def test_the_time_of_an_action_goes_on_through_flickers() -> None:
    runs = [
        Stretch(BLOCKS[name], PICK, start, length)
        for name, start, length in (("before", 0, 40), ("held", 40, 2), ("before", 42, 10), ("held", 52, 9))
    ]
    found = find_changes(shipped_domain("blocks"), runs, {})
    assert [(change.kind, change.moment, change.steps) for change in found] == [(FLICKER, 40, 40), (OWN, 52, 52)]


def test_labels_that_never_settle_are_not_looked_past_for_ever() -> None:
    names = ("nothing", "pushed", "misplaced")
    endless = [(names[number % 3], 2) for number in range(300)]
    assert len(kinds(PICK, ("before", 40), *endless)) > 50


def test_changes_add_up() -> None:
    runs = [Stretch(BLOCKS["before"], PICK, 0, 40), Stretch(BLOCKS["held"], PLACE, 40, 40)]
    runs.append(Stretch(BLOCKS["misplaced"], PICK, 80, 9))
    found = count_changes(find_changes(shipped_domain("blocks"), runs, {}))
    assert found == Changes(own=1, drop=1)
    assert found + Changes(own=2, flicker=1, exogenous=5) == Changes(own=3, drop=1, flicker=1, exogenous=5)
    assert (found.unexpected, found.refinement) == (1, 0.5)
    assert Changes(exogenous=3).refinement is None


# Experts


def expert(task: Task, environment: Any) -> BilevelPolicy:
    return task.expert(environment.slots)


def total(runs: Sequence[Run]) -> Changes:
    return sum((run.changes for run in runs), Changes())


@pytest.mark.parametrize(("task", "actions"), [("blocks", 2), ("colour", 5), ("gacha", None)])
def test_in_a_still_world_all_that_an_expert_brings_about_is_meant(task: str, actions: int | None) -> None:
    (run,) = evaluate(Trial(task, 1, episodes=1), expert)
    assert asdict(run.changes) == {**asdict(Changes()), "own": actions or sum(map(len, run.durations.values()))}


def test_arrivals_are_exogenous_and_do_not_hide_the_action_that_was_completed() -> None:
    (run,) = evaluate(Trial("factory", 2, episodes=1), expert)
    assert run.changes == Changes(own=8, exogenous=2)


def test_teleports_are_exogenous() -> None:
    for task in ("blocks-noisy", "colour-noisy"):
        runs = list(evaluate(Trial(task, 2, episodes=2, arguments={"teleport_rate": 0.01}), expert))
        teleports = sum(run.events.get("teleport", 0) for run in runs)
        assert teleports > 0
        assert total(runs).unexpected == 0
        assert 0 < total(runs).exogenous <= teleports


class Butterfingers:
    """Lets go of the block once, on the way to its place."""

    def __init__(self, policy: BilevelPolicy) -> None:
        self._low, self._carried, self._dropped = policy.low, 0, False

    def control(self, observation: Observation, state: Facts, goal: Facts, action: Action) -> Control:
        control = self._low.control(observation, state, goal, action)
        if action.name == "place":
            self._carried += 1
        elif self._carried:
            self._dropped = True
        if self._carried > 8 and not self._dropped:
            control[3] = -1.0
        return control


def test_a_block_that_slips_out_of_the_hand_is_a_drop() -> None:
    environment = TASKS["blocks"].make(1)
    policy = TASKS["blocks"].expert(environment.slots)
    policy.low = Butterfingers(policy)
    run = run_episode(environment, policy, evaluation_seed(0, 0))
    assert run.changes == Changes(own=3, drop=1)
