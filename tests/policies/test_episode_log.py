"""The log of an episode: an entry where something is new, and all that can be read off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bilevel.policies.episode_log import Entry, EpisodeLog
from bilevel.policies.policy import expert_policy
from bilevel.policies.policy_folder import load_policy
from bilevel.policies.rollout import Episode, Transition, rollout
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from tiny_policies import PICK as PICK_RULE
from tiny_policies import PUT as PUT_RULE
from tiny_policies import moving_as_the_expert, still_folder
from tiny_task import SPEC, TINY

PICK, PUT, OTHER = Action("pick", ("parcel1",)), Action("put", ("parcel1", "spot1")), Action("pick", ("parcel2",))
HERE, THERE = frozenset({Atom("here")}), frozenset({Atom("there")})
SCENE = Scene(SPEC, {"x": 0.0, "y": 0.0, "closed": 0.0}, {})

Step = tuple[Facts, "Action | None"] | tuple[Facts, "Action | None", str]


@dataclass
class Puppet:
    """Is in whatever state, and does whatever, it is told."""

    state: Facts = THERE
    goal: Facts = NO_FACTS
    action: Action | None = None

    @property
    def labels(self) -> Any:
        return self

    def reset(self, scene: Scene) -> None: ...

    def act(self, scene: Scene) -> None: ...


class LastLabels:
    """What is seen in the end."""

    def __init__(self, state: Facts) -> None:
        self._state = state

    def state(self, scene: Scene) -> Facts:
        return self._state

    def goal(self, scene: Scene) -> Facts:
        return NO_FACTS


class LabelledPuppet(Puppet):
    labels: Any = None


def logged(steps: Sequence[Step], end: Facts | None = None, last: tuple[str, ...] = (), **how: Any) -> EpisodeLog:
    """The log of these states, actions and events."""
    policy = LabelledPuppet(action=PUT)  # as an earlier episode left it
    policy.labels = LastLabels(end or NO_FACTS)
    log = EpisodeLog(policy, **how)
    for state, action, *events in steps:
        policy.state, policy.action = frozenset(list(state)), action  # equal, but not the very same
        log(Transition(SCENE, tuple(events), None, None))
    if end is not None:
        log.finish(Episode("success", len(steps), SCENE, last))
    return log


def test_an_entry_is_kept_where_something_is_new() -> None:
    log = logged([(HERE, PICK), (HERE, PICK), (HERE, PUT), (THERE, PUT), (THERE, PUT, "slip parcel1")], end=HERE)
    assert [(entry.step, entry.state, entry.action, entry.events) for entry in log.entries] == [
        (0, HERE, PICK, ()),
        (2, HERE, PUT, ()),
        (3, THERE, PUT, ()),
        (4, THERE, PUT, ("slip parcel1",)),
        (5, HERE, None, ()),
    ]
    assert log.steps == 5


def test_a_listener_hears_of_each_entry_with_the_one_before() -> None:
    heard: list[tuple[Entry, Entry | None]] = []
    log = logged(
        [(HERE, PICK), (HERE, PICK), (THERE, PUT)], listener=lambda entry, before: heard.append((entry, before))
    )
    assert heard == [(log.entries[0], None), (log.entries[1], log.entries[0])]


def test_a_decision_is_where_another_action_begins() -> None:
    log = logged([(HERE, PICK), (THERE, PICK), (HERE, PUT), (HERE, None), (HERE, PUT), (HERE, PICK)], end=HERE)
    assert [(entry.step, entry.action) for entry in log.decisions()] == [(0, PICK), (2, PUT), (5, PICK)]


def test_durations_are_the_steps_of_each_action() -> None:
    assert logged([(HERE, PICK), (HERE, PICK), (THERE, PUT), (HERE, PICK)]).durations() == {"pick": [2, 1], "put": [1]}
    assert logged([(HERE, PICK), (HERE, OTHER), (HERE, OTHER)]).durations() == {"pick": [1, 2]}
    assert logged([(HERE, PICK), (THERE, PICK)], end=HERE).durations() == {"pick": [2]}
    assert logged([]).durations() == {}


def test_events_are_counted_by_kind() -> None:
    log = logged([(HERE, PICK, "slip a", "arrival b"), (HERE, PICK, "slip b")], end=HERE, last=("slip c",))  # type: ignore[list-item]
    assert log.events() == {"slip": 3, "arrival": 1}


def test_stretches_are_of_equal_states_and_end_with_what_was_seen_last() -> None:
    steps: list[Step] = [(HERE, PICK), (HERE, PUT), (THERE, PICK, "arrival b"), (THERE, PICK)]
    log = logged(steps, end=THERE, last=("arrival c",))
    found = [(stretch.state, stretch.action, stretch.start, stretch.length) for stretch in log.stretches()]
    assert found == [(HERE, PUT, 0, 2), (THERE, PICK, 2, 2)]
    assert log.stretches()[1].events == [(2, "arrival b"), (4, "arrival c")]
    over = logged(steps, end=HERE).stretches()[-1]
    assert (over.state, over.action, over.start, over.length) == (HERE, None, 4, 0)


def test_every_step_of_an_episode_belongs_to_a_stretch_and_to_an_action() -> None:
    env = SceneEnv(TINY, 3, slip_rate=0.02)
    policy = expert_policy(env)
    log = EpisodeLog(policy)
    episode = rollout(env, policy, 5, callback=log)
    log.finish(episode)
    assert sum(stretch.length for stretch in log.stretches()) == episode.steps == log.steps
    assert sum(map(sum, log.durations().values())) == episode.steps
    starts = [stretch.start for stretch in log.stretches()]
    assert starts == sorted(set(starts))
    assert log.entries[-1].step == episode.steps


# Rules


def test_entries_say_which_rule_fired_if_that_is_asked_for() -> None:
    with moving_as_the_expert():
        policy = load_policy(still_folder(), TINY)
    for explain in (True, False):
        env = SceneEnv(TINY, 1)
        log = EpisodeLog(policy, explain=explain)
        log.finish(rollout(env, policy, 1, callback=log))
        matches = [entry.match for entry in log.decisions()]
        assert [str(match.rule) for match in matches if match] == ([PICK_RULE, PUT_RULE] if explain else [])
        assert log.explains is explain
        assert log.entries[-1].match is None
    assert log.decisions()[0].sentence is None


def test_who_has_no_rules_explains_nothing() -> None:
    log = EpisodeLog(expert_policy(SceneEnv(TINY, 1)), explain=True)
    assert (log.rules, log.explains) == (None, False)


def test_what_somebody_does_who_watches_is_an_event_of_the_next_step() -> None:
    policy = LabelledPuppet(state=HERE, action=PICK)
    log = EpisodeLog(policy)
    for step in range(4):
        if step == 2:
            log.remark("you push")
            log.remark("you push again")
        log(Transition(SCENE, (), None, None))
    assert [(entry.step, entry.events) for entry in log.entries] == [(0, ()), (2, ("you push", "you push again"))]
    assert log.events() == {"you": 2}
