"""An episode in words and as a table: decisions with their reasons, unexpected changes, and why it failed."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bilevel.policies.episode import Episode
from bilevel.policies.narration import (
    FOLD_AFTER,
    EpisodePrinter,
    TraceWriter,
    episode_json,
    lines_of,
    why_failed,
)
from bilevel.policies.policy import Policy, expert_policy
from bilevel.policies.recovery import NO_RECOVERY
from bilevel.policies.rollout import Callback, Transition, rollout
from bilevel.symbolic.domain import Atom
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_policies import PICK, PUT, moving_as_the_expert, still_policy
from tiny_task import TINY, TINY_ACTING, choose, control

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
        f"pick(parcel1)\nrule {PICK}\n{binding}\n{sentences[0]}",
        f"put(parcel1, spot1)\nrule {PUT}\n{binding}\n{sentences[1]}",
    ]
    assert all(sentence and sentence.startswith("Because ") for sentence in sentences)
    assert episode_json(episode, explain=True)["decisions"][0] == {
        "step": 0,
        "action": "pick(parcel1)",
        "rule": PICK,
        "binding": {"?p": "parcel1", "?s": "spot1"},
        "sentence": sentences[0],
    }
    assert "decisions" not in episode_json(episode)


def test_where_a_policy_does_not_say_what_it_does_the_changes_are_printed() -> None:
    assert lines(run(task=TINY_ACTING)) == [
        "carrying(parcel1), no longer free(), no longer lying(parcel1)",
        "at(parcel1, spot1), free(), no longer carrying(parcel1), no longer empty(spot1)",
    ]


def test_a_failure_is_told_with_its_reason_and_what_it_did_last() -> None:
    assert why_failed(run()) is None
    stuck = why_failed(run(lambda env: still_policy().bind(env.labels)))
    assert stuck == f"{STUCK}; at last it did pick(parcel1), for 400 steps"
    still = replace(TINY, expert=Expert(act=lambda scene: np.zeros(3, np.float32)))
    assert why_failed(run(task=still)) == STUCK
    only_put = f"variables: ?p - parcel, ?s - spot\n{PUT}"
    assert why_failed(run(lambda env: still_policy(rules=only_put).bind(env.labels, recovery=NO_RECOVERY))) == (
        "it does not know what to do: no rule applies\n  rule 1 put(parcel1, spot1): carrying(parcel1) does not hold"
    )
    clueless = replace(TINY, expert=Expert(lambda state, goal: None, control))
    assert why_failed(run(task=clueless)) == "it does not know what to do"
    halfway = Expert(lambda state, goal: choose(state, goal) if Atom("free") in state else None, control)
    why = why_failed(run(task=replace(TINY, expert=halfway)))
    assert str(why).startswith("it does not know what to do; at last it did pick(parcel1), for ")
    quoted = replace(run(), outcome="no action", failure=("no plan", "no plan within 2 s"))
    quoted.scene = run().scene
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


def test_what_repeats_is_printed_a_few_times_without_reasons_and_then_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    picking = run(by_rules).entries[0]
    episode = Episode(0, outcome="stopped", entries=[picking])
    episode.scene = run().scene
    printer = EpisodePrinter(explain=True)
    for step in range(50):
        episode.steps = step
        episode.entries = [replace(picking, step=step)]
        printer(Transition(episode.scene, (), None, None, episode))
    printer.end(episode)
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == f"{1:>6}  pick(parcel1)"
    assert len(lines) == 4 + FOLD_AFTER + 1
    assert lines[-1].strip() == f"… {49 - FOLD_AFTER + 1} more of the same"


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
    assert (first["action"], first["rule"]) == ("pick(parcel1)", PICK)
    assert first["state"].split("; ") == list(map(str, sorted(episode.entries[0].state)))
    assert first["control.0"] == first["executed.0"]
    assert (last["action"], last["control.0"], last["outcome"]) == ("", "", "success")
    assert float(last["parcel1.x"]) == float(episode.scene["parcel1"].x)
    events = [row["events"] for row in rows if row["events"]]
    assert events == ["arrival parcel2"]
    (arrival,) = (number for number, row in enumerate(rows) if row["events"])
    assert rows[arrival - 1]["parcel2.x"] == "" != rows[arrival]["parcel2.x"]
    assert not any(name.startswith("believed.") for name in first)
