"""An episode has an entry where something is new; what can be read off it, and why it failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bilevel.methods.methods import load_policy
from bilevel.policies.changes import COLLISION, DROP, EXOGENOUS, FLICKER, OWN, AttributedChange
from bilevel.policies.episode import (
    NO_ACTION,
    REASONS,
    SETTLED,
    STOPPED,
    UNSTABLE,
    Episode,
    Incident,
    count_incidents,
    read_problems,
    reason_of_failure,
)
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Problem
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, TERMINATED, SceneEnv
from tiny_policies import PICK as PICK_RULE
from tiny_policies import PUT as PUT_RULE
from tiny_policies import moving_as_the_expert, still_folder
from tiny_task import DOMAIN, TINY

PICK, PUT, OTHER = Action("pick", ("parcel1",)), Action("put", ("parcel1", "spot1")), Action("pick", ("parcel2",))
HERE, THERE = frozenset({Atom("here")}), frozenset({Atom("there")})
STATE = frozenset({Atom("free"), Atom("lying", ("p1",)), Atom("empty", ("s1",))})
GOAL = frozenset({Atom("at", ("p1", "s1"))})
MET = Incident(3, "plan", "no rule", STATE, GOAL, {"p1": "parcel", "s1": "spot"}, Action("pick", ("p1",)))


def noted(*steps: Sequence[Any]) -> Episode:
    """An episode of these states, actions and events; the last state is what was seen at the end."""
    episode = Episode(0)
    for number, (state, action, *events) in enumerate(steps):
        episode.steps = number
        episode.note(frozenset(list(state)), NO_FACTS, action, tuple(events), ())  # equal, but not the very same
    return episode


def test_an_entry_is_kept_where_something_is_new() -> None:
    episode = noted((HERE, PICK), (HERE, PICK), (HERE, PUT), (THERE, PUT), (THERE, PUT, "slip parcel1"), (HERE, None))
    assert [(entry.step, entry.state, entry.action, entry.events) for entry in episode.entries] == [
        (0, HERE, PICK, ()),
        (2, HERE, PUT, ()),
        (3, THERE, PUT, ()),
        (4, THERE, PUT, ("slip parcel1",)),
        (5, HERE, None, ()),
    ]
    assert episode.new_entry is episode.entries[-1]
    assert [entry.before for entry in episode.entries] == [None, *episode.entries[:-1]]


def test_what_somebody_does_who_watches_is_an_event_of_the_next_step() -> None:
    episode = noted((HERE, PICK), (HERE, PICK))
    episode.remark("you push")
    episode.steps = 2
    episode.note(HERE, NO_FACTS, PICK, ("slip",), ())
    episode.steps = 3
    episode.note(HERE, NO_FACTS, PICK, (), ())
    assert [(entry.step, entry.events) for entry in episode.entries] == [(0, ()), (2, ("slip", "you push"))]


def test_each_incident_is_in_the_entry_of_its_step() -> None:
    episode, incidents = Episode(0), [MET]
    for step in range(4):
        episode.steps = step
        if step == 2:
            incidents.append(replace(MET, kind="stop"))
        episode.note(HERE, NO_FACTS, PICK, (), incidents)
    assert [(entry.step, len(entry.incidents)) for entry in episode.entries] == [(0, 1), (2, 1)]
    assert episode.incidents == incidents
    assert count_incidents([*incidents, MET]) == {"plan": 2, "stop": 1}


def test_entries_say_which_rule_fired_if_that_is_asked_for_and_there_are_rules() -> None:
    with moving_as_the_expert():
        policy = load_policy(still_folder(), TINY)
    env = SceneEnv(TINY, 1)
    for explain in (True, False):
        episode = rollout(env, policy, 1, explain=explain)
        matches = [entry.match for entry in episode.decisions()]
        assert [str(match.rule) for match in matches if match] == ([PICK_RULE, PUT_RULE] if explain else [])
        assert episode.entries[-1].match is None
    assert episode.decisions()[0].sentence is None
    without = rollout(env, expert_policy(env), 1, explain=True)
    assert without.rules is None
    assert not any(entry.match for entry in without.entries)


# Why it failed

LIMIT = 4000


def every(steps: int, *kinds: str, begin: int = 0, end: int = LIMIT) -> list[AttributedChange]:
    """Changes of these kinds in turn, one every so many steps."""
    timesteps = range(begin + steps, end, steps)
    return [AttributedChange(timestep, kinds[number % len(kinds)], steps) for number, timestep in enumerate(timesteps)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (every(50, OWN), "time"),
        (every(50, OWN, EXOGENOUS), "time"),
        (every(50, OWN, OWN, OWN, DROP), "time"),
        (every(50, OWN, FLICKER), "time"),
        ([], "stall"),
        (every(50, OWN, end=3000), "stall"),
        (every(50, OWN, end=2000) + every(300, EXOGENOUS, begin=2000), "stall"),
        (every(50, OWN, end=2000) + every(300, DROP, begin=2000), "drop"),
        (every(90, OWN, end=3090), "stall"),  # 900 steps and more, which is ten times as long as the others
        (every(99, OWN, end=3100), "time"),
        (every(50, OWN, end=2000) + every(180, FLICKER, begin=2000), "label"),
        (every(50, OWN, end=2000) + every(300, FLICKER, begin=2000), "stall"),
        (every(50, OWN, FLICKER, FLICKER), "label"),
        (every(50, OWN, DROP), "drop"),
        (every(50, OWN, COLLISION), "collision"),
        (every(50, OWN, COLLISION, OWN, COLLISION, DROP), "collision"),
        (every(50, DROP, end=2000) + every(50, OWN, begin=2000), "time"),
    ],
)
def test_an_episode_that_came_to_the_step_limit(changes: list[AttributedChange], reason: str) -> None:
    assert reason_of_failure(STEP_LIMIT, LIMIT, changes) == reason
    assert reason in REASONS


def test_flickers_at_which_things_moved_are_not_the_labels_fault() -> None:
    changes = every(50, OWN, FLICKER, FLICKER)
    flickers = [change.timestep for change in changes if change.kind == FLICKER and change.timestep > LIMIT - 1000]
    half = len(flickers) // 2
    assert reason_of_failure(STEP_LIMIT, LIMIT, changes, flickers[: half + 1]) == "control"
    assert reason_of_failure(STEP_LIMIT, LIMIT, changes, flickers[:half]) == "label"
    assert reason_of_failure(STEP_LIMIT, LIMIT, every(50, OWN, FLICKER), flickers) == "time"


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (SUCCESS, None),
        (NO_ACTION, "no rule"),
        (UNSTABLE, "physics"),
        (SETTLED, "stall"),
        (STOPPED, "stopped"),
        (TERMINATED, "terminated"),
        ("on fire", "terminated"),
    ],
)
def test_other_ends_speak_for_themselves(outcome: str, reason: str | None) -> None:
    assert reason_of_failure(outcome, LIMIT, []) == reason


# Incidents that are kept, and read again as problems


def results(path: Path, *episodes: list[dict[str, Any]] | None) -> Path:
    path.write_text("".join(json.dumps({"task": "tiny", "steps": 9, "incidents": met}) + "\n" for met in episodes))
    return path


def test_each_situation_becomes_one_problem(tmp_path: Path) -> None:
    assert msgspec.json.decode(json.dumps(MET.as_json()), type=Incident) == MET
    other = {**MET.as_json(), "state": [["free", []]], "action": None}
    path = results(tmp_path / "a.jsonl", [MET.as_json(), other], [], [MET.as_json()])
    objects = {"p1": "parcel", "s1": "spot"}
    assert read_problems([path, path], DOMAIN) == [
        Problem("met-1", "delivery", objects, STATE, GOAL),
        Problem("met-2", "delivery", objects, frozenset({Atom("free")}), GOAL),
    ]
    assert read_problems([], DOMAIN) == []


def changed(**parts: Any) -> Callable[[Path], object]:
    return lambda path: results(path, [], [{**MET.as_json(), **parts}])


@pytest.mark.parametrize(
    "write",
    [
        lambda path: None,
        lambda path: path.write_text("hello\n"),
        lambda path: results(path, [], None),
        changed(state=["free"]),
        changed(objects={"p1": "box"}),
        changed(goal=[["on", ["p1"]]]),
        changed(goal=[["at", ["p1"]]]),
        changed(goal=[["at", ["p1", "s2"]]]),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(write: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write(path)
    with pytest.raises(BadInput) as refused:
        read_problems([path], DOMAIN)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
