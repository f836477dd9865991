"""An episode has an entry where something is new; what can be read off it, and why it failed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bilevel.policies.episode import (
    COLLISION,
    DROP,
    EXOGENOUS,
    FLICKER,
    NO_ACTION,
    OWN,
    REASONS,
    SETTLED,
    STOPPED,
    UNSTABLE,
    AttributedChange,
    Episode,
    Incident,
    read_problems,
    reason_of_failure,
)
from bilevel.policies.narration import (
    MAX_PRINTED,
    EpisodePrinter,
    TraceWriter,
    episode_json,
    lines_of,
    unexpected_lines,
    why_failed,
)
from bilevel.policies.policy import Policy, expert_policy
from bilevel.policies.recovery import NO_RECOVERY
from bilevel.policies.rollout import Callback, Transition, rollout
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Problem
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, TERMINATED, SceneEnv
from bilevel.tasks.task import Task
from tiny_policies import PICK as PICK_RULE
from tiny_policies import PUT as PUT_RULE
from tiny_policies import moving_as_the_expert, still_policy
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


# In words

STUCK = "it is stuck: nothing that it does has an effect any more"


def run(
    make: Callable[[SceneEnv], Policy] = expert_policy,
    task: Task = TINY,
    objects: int = 1,
    callback: Callback | None = None,
) -> Episode:
    env = SceneEnv(task, objects)
    return rollout(env, make(env), 1, callback=callback, explain=True)


def lines(episode: Episode) -> list[str]:
    return [line for entry in episode.entries for line in lines_of(entry)]


def by_rules(env: SceneEnv) -> Policy:
    with moving_as_the_expert():
        return still_policy().bind(env.labels)


def test_each_decision_comes_with_its_rule_binding_and_sentence() -> None:
    episode = run(by_rules)
    binding = "with ?p = parcel1, ?s = spot1"
    sentences = [entry.sentence for entry in episode.decisions()]
    assert lines(episode) == [
        f"pick(parcel1)\nrule {PICK_RULE}\n{binding}\n{sentences[0]}",
        f"put(parcel1, spot1)\nrule {PUT_RULE}\n{binding}\n{sentences[1]}",
    ]
    assert all(sentence and sentence.startswith("Because ") for sentence in sentences)
    assert episode_json(episode, explain=True)["decisions"][0] == {
        "step": 0,
        "action": "pick(parcel1)",
        "rule": PICK_RULE,
        "binding": {"?p": "parcel1", "?s": "spot1"},
        "sentence": sentences[0],
    }
    assert "decisions" not in episode_json(episode)


def test_a_failure_is_told_with_its_reason_and_what_it_did_last() -> None:
    assert why_failed(run()) is None
    stuck = why_failed(run(lambda env: still_policy().bind(env.labels)))
    assert stuck == f"{STUCK}; at last it did pick(parcel1), for 400 steps"
    only_put = still_policy(rules=f"variables: ?p - parcel, ?s - spot\n{PUT_RULE}")
    lacking = why_failed(run(lambda env: only_put.bind(env.labels, recovery=NO_RECOVERY)))
    assert str(lacking).endswith("rule 1 put(parcel1, spot1): carrying(parcel1) does not hold")
    quoted = Episode(0, outcome="no action", failure=("no plan", "no plan within 2 s"))
    assert why_failed(quoted) == "its planner found no plan: no plan within 2 s"


# Printing


def test_what_is_printed_is_what_happens_and_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    for explain in (False, True):
        printer = EpisodePrinter(explain=explain)
        episode = run(by_rules, callback=printer)
        printer.end(episode)
        output, errors = capsys.readouterr()
        put = episode.decisions()[1].step
        assert [line for line in output.splitlines() if not line.startswith(" " * 8)] == [
            f"{0:>6}  pick(parcel1)",
            f"{put:>6}  put(parcel1, spot1)",
        ]
        assert ("Because " in output) is explain
        assert errors == f"success after {episode.steps} steps\n"


def test_a_flicker_is_told_by_the_fact_that_changed() -> None:
    shown = run(by_rules)
    pick, put = shown.decisions()
    again = Episode(0, domain=TINY.domain, outcome="stopped")
    again.scene = shown.scene
    for step, entry, state in (
        (0, pick, pick.state),
        (30, put, put.state),
        (60, put, put.state - {Atom("carrying", ("parcel1",))}),
        (62, put, put.state),
        (90, put, put.state),
    ):
        again.steps = step
        again.note(state, entry.goal, entry.action, (), ())
    assert unexpected_lines(again) == [
        "unexpected at step 60: a flicker during put(parcel1, spot1): carrying(parcel1) changed"
    ]


def test_what_repeats_is_printed_a_few_times(capsys: pytest.CaptureFixture[str]) -> None:
    picking = run(by_rules).entries[0]
    episode = Episode(0, outcome="stopped", entries=[picking])
    episode.scene = run().scene
    printer = EpisodePrinter(explain=True)
    for step in range(50):
        episode.steps = step
        episode.entries = [replace(picking, step=step)]
        printer(Transition(episode.scene, (), None, None, episode))
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == f"{1:>6}  pick(parcel1)"
    assert len(lines) == 3 + MAX_PRINTED


# The table of all steps


def test_a_trace_has_a_row_for_each_step_and_one_for_the_end(tmp_path: Path) -> None:
    env, path = SceneEnv(TINY, 2), tmp_path / "trace.csv"
    policy = by_rules(env)
    trace = TraceWriter(path, policy)
    episode = rollout(env, policy, 1, callback=trace, explain=True)
    trace.end(episode)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(episode.steps + 1))
    first, last = rows[0], rows[-1]
    assert (first["action"], first["rule"]) == ("pick(parcel1)", PICK_RULE)
    assert first["state"].split("; ") == list(map(str, sorted(episode.entries[0].state)))
    assert first["control.0"] == first["executed.0"]
    assert (last["action"], last["control.0"], last["outcome"]) == ("", "", "success")
    assert float(last["parcel1.x"]) == float(episode.scene["parcel1"].x)
    events = [row["events"] for row in rows if row["events"]]
    assert events == ["arrival parcel2"]
    (arrival,) = (number for number, row in enumerate(rows) if row["events"])
    assert rows[arrival - 1]["parcel2.x"] == "" != rows[arrival]["parcel2.x"]
    assert not any(name.startswith("believed.") for name in first)


# Incidents that are kept, and read again as problems

KEPT = msgspec.to_builtins(MET)


def results(path: Path, *episodes: list[dict[str, Any]] | None) -> Path:
    path.write_text("".join(json.dumps({"task": "tiny", "steps": 9, "incidents": met}) + "\n" for met in episodes))
    return path


def test_each_situation_becomes_one_problem(tmp_path: Path) -> None:
    assert msgspec.json.decode(json.dumps(KEPT), type=Incident) == MET
    other = {**KEPT, "state": [["free", []]], "action": None}
    path = results(tmp_path / "a.jsonl", [KEPT, other], [], [KEPT])
    objects = {"p1": "parcel", "s1": "spot"}
    assert read_problems([path, path], DOMAIN) == [
        Problem("met-1", "delivery", objects, STATE, GOAL),
        Problem("met-2", "delivery", objects, frozenset({Atom("free")}), GOAL),
    ]
    assert read_problems([], DOMAIN) == []


def changed(**parts: Any) -> Callable[[Path], object]:
    return lambda path: results(path, [], [{**KEPT, **parts}])


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
