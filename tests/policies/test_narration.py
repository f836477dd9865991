"""What is said about an episode: decisions with their reasons, surprises, and why it failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bilevel.policies.changes import UNEXPECTED
from bilevel.policies.episode_log import Entry, EpisodeLog
from bilevel.policies.episode_run import EpisodeRun, measured_episode
from bilevel.policies.narration import (
    SURPRISES,
    as_json,
    caption,
    lines_of,
    reasons,
    surprise_lines,
    surprises,
    why_failed,
)
from bilevel.policies.policy import ObservedPolicy, expert_policy
from bilevel.policies.recovery import NO_RECOVERY
from bilevel.rules.matching import Match
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import NO_FACTS, Action, Atom
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_policies import PICK, PUT, moving_as_the_expert, still_policy
from tiny_task import TINY, TINY_ACTING, choose, control


def told(
    make: Callable[[SceneEnv], ObservedPolicy] = expert_policy, task: Task = TINY, objects: int = 1
) -> tuple[EpisodeRun, EpisodeLog, list[str], Scene]:
    """An episode, its log, all that is said while it goes on, and what was seen last."""
    env, lines = SceneEnv(task, objects), list[str]()
    policy = make(env)
    log = EpisodeLog(policy, explain=True, listener=lambda entry, before: lines.extend(lines_of(entry, before)))
    run, episode = measured_episode(env, policy, 1, log)
    return run, log, lines, episode.scene


def by_rules(env: SceneEnv) -> ObservedPolicy:
    with moving_as_the_expert():
        return still_policy().bind(env.labels)


def test_each_decision_is_told_with_its_rule_binding_and_sentence() -> None:
    _, log, lines, _ = told(by_rules)
    binding = "with ?p = parcel1, ?s = spot1"
    sentences = [entry.sentence for entry in log.decisions()]
    assert lines == [
        f"pick(parcel1)\nrule {PICK}\n{binding}\n{sentences[0]}",
        f"put(parcel1, spot1)\nrule {PUT}\n{binding}\n{sentences[1]}",
    ]
    assert all(sentence and sentence.startswith("Because ") for sentence in sentences)


def test_decisions_for_programs_hold_the_same() -> None:
    _, log, _, _ = told(by_rules)
    first, second = map(as_json, log.decisions())
    assert first == {
        "step": 0,
        "action": "pick(parcel1)",
        "rule": PICK,
        "binding": {"?p": "parcel1", "?s": "spot1"},
        "sentence": log.entries[0].sentence,
    }
    assert (second["action"], second["rule"]) == ("put(parcel1, spot1)", PUT)


def test_without_rules_there_are_only_actions_and_events() -> None:
    _, log, lines, _ = told(objects=2)
    assert lines[0] == "pick(parcel1)"
    assert "(arrival parcel2)" in lines
    assert as_json(log.decisions()[0]) == {
        "step": 0,
        "action": "pick(parcel1)",
        "rule": None,
        "binding": None,
        "sentence": None,
    }


def test_of_one_that_does_not_say_what_it_does_the_changes_are_told() -> None:
    _, _, lines, _ = told(task=TINY_ACTING)
    assert lines == [
        "carrying(parcel1); no longer free(), lying(parcel1)",
        "at(parcel1, spot1), free(); no longer carrying(parcel1), empty(spot1)",
    ]


def test_a_rule_without_variables_has_no_binding_to_tell() -> None:
    (rule,) = parse_rules("1: gripper-free() -> wait()")
    entry = Entry(0, NO_FACTS, NO_FACTS, Action("wait"), match=Match(rule, {}))
    assert reasons(entry) == [f"rule {rule}", "Because the gripper is free, wait."]


def test_a_caption_is_what_is_being_done_and_why_in_short_lines() -> None:
    log = EpisodeLog(expert_policy(SceneEnv(TINY, 1)))
    assert caption(log) == ""
    entries = told(by_rules)[1].entries
    log.entries = entries[:1]
    action, *sentence = caption(log).splitlines()
    assert (action, " ".join(sentence)) == ("pick(parcel1)", entries[0].sentence)
    assert len(sentence) > 1
    log.entries = [replace(entries[0], match=None)]
    assert caption(log) == "pick(parcel1)"
    log.entries = entries  # at the end nothing is being done
    assert caption(log) == ""


# Surprises


def letting_go() -> Callable[[Scene, Action], Control]:
    """An expert that drops every parcel once, and looks at what it has done for a while."""
    calls: list[Action] = []

    def clumsy(scene: Scene, action: Action) -> Control:
        calls.append(action)
        drops = action.name == "put" and calls.count(action) == 7
        looks = action.name == "pick" and calls[-1 - 6 :].count(action) < 6 < len(calls)
        return np.zeros(3, np.float32) if drops or looks else control(scene, action)

    return clumsy


def test_unexpected_changes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log, _, _ = told(task=replace(TINY, expert=Expert(choose, letting_go())), objects=3)
    found = surprises(log, TINY.domain)
    assert {change.kind for change in found} == {"drop"}
    assert len(found) > 1
    lines = surprise_lines(log, TINY.domain)
    for change, line in zip(found, lines, strict=True):
        doing = [str(entry.action) for entry in log.decisions() if entry.step < change.timestep][-1]
        assert line == f"unexpected at step {change.timestep}: {SURPRISES[change.kind].format(action=doing)}"
    for number, noun in ((1, "change"), (2, "changes")):
        monkeypatch.setattr("bilevel.policies.narration.MAX_SURPRISES", len(lines) - number)
        assert surprise_lines(log, TINY.domain)[-1] == f"{number} more unexpected {noun}"
    assert surprise_lines(told()[1], TINY.domain) == []


def test_there_are_words_for_every_surprise() -> None:
    assert tuple(SURPRISES) == UNEXPECTED


# Failures


def why(make: Callable[[SceneEnv], ObservedPolicy] = expert_policy, task: Task = TINY) -> str | None:
    run, log, _, scene = told(make, task)
    return why_failed(run, log, scene)


def test_a_success_needs_no_reason() -> None:
    assert why() is None


def test_a_policy_that_is_stuck_says_at_what_and_for_how_long() -> None:
    """Its network does nothing."""
    told = why(lambda env: still_policy().bind(env.labels))
    stuck = "it is stuck: nothing that it does has an effect any more"
    assert told == f"{stuck}; at last it did pick(parcel1), for 400 steps; the agent is 0.335 from parcel1"
    still = replace(TINY, expert=Expert(act=lambda scene: np.zeros(3, np.float32)))
    assert why(task=still) == stuck


def test_where_no_rule_applies_it_says_what_the_nearest_lacks() -> None:
    only_put = f"variables: ?p - parcel, ?s - spot\n{PUT}"
    assert why(lambda env: still_policy(rules=only_put).bind(env.labels, recovery=NO_RECOVERY)) == (
        "it does not know what to do: no rule applies\n  rule 1 put(parcel1, spot1): carrying(parcel1) does not hold"
    )


def test_an_expert_that_does_not_know_what_to_do_says_only_that() -> None:
    clueless = replace(TINY, expert=Expert(lambda state, goal: None, control))
    assert why(task=clueless) == "it does not know what to do"
    halfway = replace(
        TINY, expert=Expert(lambda state, goal: choose(state, goal) if Atom("free") in state else None, control)
    )
    found = why(task=halfway)
    assert found is not None
    assert found.startswith("it does not know what to do; at last it did pick(parcel1), for ")


def test_what_the_policy_says_itself_is_quoted() -> None:
    run, log, _, scene = told()
    failed = replace(run, outcome="no action", reason="no plan", detail="no plan within 2 s")
    assert why_failed(failed, log, scene) == "its planner found no plan: no plan within 2 s"
    many = replace(run, reason="drop", changes=replace(run.changes, drop=4))
    assert str(why_failed(many, log, scene)).startswith(
        "it keeps losing what it holds or needs: 4 times in this episode; "
    )
