"""Recording an expert: what is kept of an episode, and what happens when it fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bilevel.demonstrations.demonstration import Demonstration, all_objects
from bilevel.demonstrations.recording import MOST_ATTEMPTS, Recorder, collection_settings
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import rollout
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import Action, BadInput
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, SceneEnv
from bilevel.tasks.task import Expert, Task, TaskError
from tiny_task import SPEC, TINY, TINY_ACTING, TINY_DISCRETE, choose, control


def recorder(task: Task = TINY, objects: int = 1, **arguments: Any) -> Recorder:
    return Recorder(task, collection_settings(task, objects, **arguments))


def test_an_episode_is_recorded_from_its_first_timestep_to_its_last(eventful: Demonstration) -> None:
    assert eventful.outcome == SUCCESS
    assert len(eventful.agent) == len(eventful.features) == len(eventful.visible) == eventful.steps + 1
    assert len(eventful.controls) == len(eventful.executed) == len(eventful.actions)
    assert list(eventful.objects) == ["parcel1", "parcel2", "parcel3", "spot1", "spot2", "spot3"]
    assert eventful.seed in {training_seed(1, index, eventful.attempt) for index in range(20)}
    assert set(eventful.actions) <= {
        Action("pick", (parcel,)) for parcel in eventful.objects
    } | {Action("put", (parcel, spot)) for parcel in eventful.objects for spot in eventful.objects}  # fmt: skip


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE])
def test_the_scenes_states_and_goals_come_back_as_they_were_seen(task: Task) -> None:
    env = SceneEnv(task, 3)
    seen: list[Scene] = []
    demonstration = recorder(task, 3).record(0)
    episode = rollout(env, expert_policy(env), demonstration.seed, callback=lambda now: seen.append(now.scene))
    seen.append(episode.scene)
    scenes = demonstration.scenes(SPEC)
    assert scenes == seen
    assert len({id(scene.roster) for scene in scenes}) == 3  # there are two arrivals
    labels = task.labels
    assert demonstration.at_each_timestep(demonstration.states) == [labels.state(scene) for scene in seen]
    assert demonstration.at_each_timestep(demonstration.goals) == [labels.goal(scene) for scene in seen]
    assert [len(goal) for _, goal in demonstration.goals] == [1, 2, 3]


def test_what_the_expert_wanted_is_kept_beside_what_was_done(eventful: Demonstration) -> None:
    perturbed = (eventful.controls != eventful.executed).any(axis=1)
    assert 0 < perturbed.mean() < 0.5
    clean = expert_policy(SceneEnv(TINY, 3))
    scenes = eventful.scenes(SPEC)
    clean.reset(scenes[0])
    assert np.array_equal(np.array([clean.act(scene) for scene in scenes[:100]]), eventful.controls[:100])


def test_without_noise_what_is_wanted_is_done() -> None:
    demonstration = recorder().record(0)
    assert np.array_equal(demonstration.controls, demonstration.executed)
    assert collection_settings(TINY, noise=0.0) == collection_settings(TINY)


def test_whole_numbers_are_kept_of_a_discrete_space() -> None:
    demonstration = recorder(TINY_DISCRETE, noise=0.7).record(0)
    assert (demonstration.controls.dtype, demonstration.controls.shape) == (np.dtype(np.int64), (demonstration.steps,))


def test_an_expert_that_only_acts_says_nothing_of_actions() -> None:
    acting, saying = recorder(TINY_ACTING).record(0), recorder().record(0)
    assert set(acting.actions) == {None}
    assert np.array_equal(acting.controls, saying.controls)
    assert acting.states == saying.states


def test_any_timestep_can_be_restored_and_lived_on(eventful: Demonstration) -> None:
    env = SceneEnv(TINY, 3, slip_rate=0.02)
    scenes = eventful.scenes(SPEC)
    for timestep in (0, 63, 64, 100):
        when, snapshot = eventful.snapshot_before(timestep)
        assert when == timestep // 64 * 64
        scene = env.restore(snapshot)
        for step in range(when, eventful.steps):
            assert scene == scenes[step]
            scene = env.step(eventful.executed[step])
    assert eventful.snapshot_before(eventful.steps)[0] == eventful.steps
    with pytest.raises(ValueError, match="has timesteps 0 to"):
        eventful.snapshot_before(eventful.steps + 1)


def test_a_task_that_cannot_save_has_no_snapshots() -> None:
    assert recorder(replace(TINY, save=None, restore=None)).record(0).snapshots == {}


def test_a_failed_attempt_is_tried_again_with_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = recorder(seed=5)
    attempt = found.attempt

    def attempt_badly(index: int, number: int) -> Demonstration:
        return replace(attempt(index, number), outcome=STEP_LIMIT if number < 2 else SUCCESS)

    monkeypatch.setattr(found, "attempt", attempt_badly)
    demonstration = found.record(7)
    assert (demonstration.attempt, demonstration.seed) == (2, training_seed(5, 7, 2))


def test_an_expert_that_always_fails_is_given_up() -> None:
    helpless = replace(TINY, expert=Expert(lambda state, goal: None, control))
    with pytest.raises(TaskError, match=rf"failed {MOST_ATTEMPTS} times at episode 4 \(no action\)"):
        recorder(helpless).record(4)


@pytest.mark.parametrize("expert", [None, Expert(control=control)])
def test_a_task_without_an_expert_that_can_show_it_is_one_line(expert: Expert | None) -> None:
    with pytest.raises(BadInput, match="the task 'tiny' has no expert that can show it"):
        recorder(replace(TINY, expert=expert))


def test_what_cannot_be_kept_is_refused_at_once() -> None:
    def perceive_badly(*arguments: Any) -> Scene:
        scene = TINY.perceive(*arguments)
        scene.features[0, 3] = np.nan
        return scene

    with pytest.raises(BadInput, match="'features' holds numbers that are not finite"):
        recorder(replace(TINY, perceive=perceive_badly)).record(0)
    growing = replace(TINY, save=lambda env: {"x": np.zeros(int(env.agent[0] * 10) + 20)})
    with pytest.raises(BadInput, match="must always give the same arrays"):
        recorder(growing).record(0)


def test_an_object_keeps_its_type() -> None:
    agent = {"x": 0.0, "y": 0.0, "closed": 0.0}
    parcel, spot = {"x": 0.0, "y": 0.0, "held": 0.0}, {"x": 0.0, "y": 0.0, "radius": 1.0}
    scenes = [Scene(SPEC, agent, {"spot": {"b": spot}}), Scene(SPEC, agent, {"parcel": {"a": parcel}})]
    assert all_objects(scenes) == {"b": "spot", "a": "parcel"}
    with pytest.raises(BadInput, match="'a' is of the type 'parcel' first, then of the type 'spot'"):
        all_objects([*scenes, Scene(SPEC, agent, {"spot": {"a": spot}})])


def test_arguments_are_spelt_out() -> None:
    assert collection_settings(TINY).arguments == {"objects": 3, "slip_rate": 0.0}
    assert collection_settings(TINY, 2, slip_rate=0.5).arguments == {"objects": 2, "slip_rate": 0.5}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"speed": 2}, "the task 'tiny' takes no argument 'speed'; it takes: slip_rate"),
        ({"slip_rate": {0.5}}, "the argument 'slip_rate' is {0.5}, which cannot be kept"),
        ({"seed": -1}, "the seed must not be negative"),
        ({"noise": float("nan")}, "the noise is an amplitude"),
        ({"objects": 13}, "takes 1 to 12 objects, not 13"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        recorder(TINY, **{"objects": 1, **arguments})


def test_the_tiny_expert_does_the_tiny_task() -> None:
    """All that uses the tiny task relies on it."""
    for task in (TINY, TINY_DISCRETE, TINY_ACTING):
        for objects in (1, 5):
            attempts = [recorder(task, objects, noise=0.7, slip_rate=0.01).record(index).attempt for index in range(5)]
            assert sum(attempts) <= 1
    assert choose(frozenset(), frozenset()) is None
