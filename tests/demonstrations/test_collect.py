"""Collecting: what is recorded of an expert, and the same files whoever collects, whatever happens in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilevel
import tiny_task
from bilevel.demonstrations.collect import MOST_ATTEMPTS, Recorder, collect, collection_settings
from bilevel.demonstrations.dataset import DOMAIN, MANIFEST, Demonstration, Demonstrations, file_name, read_manifest
from bilevel.files import folder_lock
from bilevel.policies.episode import Episode
from bilevel.policies.policy import Policy, expert_policy
from bilevel.policies.rollout import rollout
from bilevel.progress import Progress
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, TERMINATED, SceneEnv
from bilevel.tasks.spec import Scalar, Spec
from bilevel.tasks.task import Expert, Task
from tiny_task import SPEC, TINY, TINY_ACTING, TINY_DISCRETE, control

EPISODES = 3  # in the data set that was collected


def gather(folder: Path, task: Task = TINY, episodes: int = EPISODES, **arguments: Any) -> Demonstrations:
    return collect(task, folder, **{"objects": 1, "episodes": episodes, **arguments})


def recorder(task: Task = TINY, objects: int = 1, **arguments: Any) -> Recorder:
    return Recorder(task, collection_settings(task, objects, **arguments))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


# What is recorded


def test_an_episode_is_recorded_from_its_first_timestep_to_its_last(eventful: Demonstration) -> None:
    assert eventful.outcome == SUCCESS
    assert len(eventful.agent) == len(eventful.features) == len(eventful.visible) == eventful.steps + 1
    assert len(eventful.controls) == len(eventful.executed) == len(eventful.actions)
    assert eventful.seed in {training_seed(1, index, eventful.attempt) for index in range(20)}
    perturbed = (eventful.controls != eventful.executed).any(axis=1)
    assert 0 < perturbed.mean() < 0.5
    expert, scenes = expert_policy(SceneEnv(TINY, 3)), eventful.scenes(SPEC)
    expert.reset(scenes[0])
    assert np.array_equal(np.array([expert.act(scene) for scene in scenes[:100]]), eventful.controls[:100])


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING, replace(TINY, save=None, restore=None)])
def test_scenes_labels_and_actions_come_back_as_they_were_seen(task: Task) -> None:
    env = SceneEnv(task, 3)
    seen: list[Scene] = []
    demonstration = recorder(task, 3).record(0)[0]
    episode = rollout(env, expert_policy(env), demonstration.seed, callback=lambda now: seen.append(now.scene))
    seen.append(episode.scene)
    scenes = demonstration.scenes(SPEC)
    assert scenes == seen
    assert len({id(scene.roster) for scene in scenes}) == 3  # there are two arrivals
    assert demonstration.at_each_timestep(demonstration.states) == [task.labels.state(scene) for scene in seen]
    assert demonstration.at_each_timestep(demonstration.goals) == [task.labels.goal(scene) for scene in seen]
    names = {None} if task is TINY_ACTING else {"pick", "put"}
    assert {action.name if action else None for action in demonstration.actions} == names
    assert np.array_equal(demonstration.controls, demonstration.executed)
    assert bool(demonstration.snapshots) == (task.save is not None)


def test_a_failed_attempt_is_tried_again_with_another_seed_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [training_seed(5, number, number) for number in range(EPISODES)]

    def rollout_badly(env: SceneEnv, policy: Policy, seed: int, **further: Any) -> Episode:
        episode = rollout(env, policy, seed, **further)
        episode.outcome = SUCCESS if seed in wanted else TERMINATED
        return episode

    monkeypatch.setattr("bilevel.demonstrations.collect.rollout", rollout_badly)
    progress: list[Progress] = []
    data = gather(tmp_path, seed=5, callback=progress.append)
    assert [(one.attempt, one.seed) for one in data] == list(enumerate(wanted))
    assert data.report.dropped == {"terminated (terminated)": 3}
    assert progress[-1] == Progress("collecting", EPISODES, EPISODES, {"failed attempts": 3})


def test_an_expert_that_cannot_show_the_task_is_one_line(tmp_path: Path) -> None:
    helpless = replace(TINY, expert=Expert(lambda state, goal: None, control))
    with pytest.raises(BadInput, match=rf"failed {MOST_ATTEMPTS} times at episode 0 \(no action \(no rule\)\)"):
        gather(tmp_path / "set", helpless)
    for expert in (None, Expert(control=control)):
        with pytest.raises(BadInput, match="the task 'tiny' has no expert that can show it"):
            gather(tmp_path / "other", replace(TINY, expert=expert))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"speed": 2}, "the task 'tiny' takes no argument 'speed'; it takes: slip_rate"),
        ({"slip_rate": {0.5}}, "the argument 'slip_rate' is {0.5}, which cannot be kept"),
        ({"seed": -1}, "the seed must not be negative"),
        ({"objects": 13}, "takes 1 to 12 objects, not 13"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        gather(tmp_path / "set", **arguments)
    assert not (tmp_path / "set").exists()


# The folder


def test_a_complete_data_set_stands_alone(collected: Path) -> None:
    found = read_manifest(collected)
    assert found.complete
    assert set(contents(collected)) == {MANIFEST, DOMAIN, *(file_name(index) for index in range(EPISODES))}
    assert found.versions.keys() == {"bilevel", "python", "numpy", "gymnasium"}
    data = Demonstrations.read(collected)
    assert (data.task, data.arguments) == ("tiny", {"objects": 1, "slip_rate": 0.0})
    assert (data.spec, data.domain) == (TINY.spec, TINY.domain) == (found.spec, read_domain(collected / DOMAIN))
    first = data.first(2)
    assert [one.seed for one in first] == [data[0].seed, data[1].seed]
    for number in (0, EPISODES + 1):
        with pytest.raises(BadInput, match=f"the first {number} are asked for"):
            data.first(number)


def test_any_number_of_workers_writes_the_same_bytes(collected: Path, tmp_path: Path) -> None:
    done: list[int] = []
    data = gather(tmp_path / "two", workers=2, callback=lambda progress: done.append(progress.done))
    assert contents(tmp_path / "two") == contents(collected)
    assert done == [0, 1, 2, 3]
    assert len(data) == EPISODES


def test_what_is_there_is_kept_and_what_is_missing_or_broken_is_collected(copied: Path) -> None:
    whole = contents(copied)
    times = {path: path.stat().st_mtime_ns for path in copied.glob("*.npz")}
    (copied / file_name(0)).unlink()
    (copied / file_name(1)).write_bytes(whole[file_name(1)][:-100])
    (copied / ".episode-00000.npz.0123abcd.part").write_bytes(b"half")
    report = gather(copied).report
    assert report.found == 1
    missing, broken = report.notes
    assert missing.endswith(f"{file_name(0)}: there is no such file")
    assert f"{file_name(1)}: the archive: damaged" in broken
    assert contents(copied) == whole
    kept = copied / file_name(2)
    assert kept.stat().st_mtime_ns == times[kept]


def test_more_episodes_extend_a_data_set(copied: Path, tmp_path: Path) -> None:
    gather(copied, episodes=EPISODES + 2)
    gather(tmp_path / "at-once", episodes=EPISODES + 2)
    assert contents(copied) == contents(tmp_path / "at-once")
    with pytest.raises(BadInput, match="holds 5 episodes, more than the 3 wanted; choose another --output"):
        gather(copied)


OTHER_SPEC = Spec({**TINY.spec.agent, "mood": Scalar}, TINY.spec.objects)


@pytest.mark.parametrize(
    ("task", "arguments", "reason"),
    [
        (TINY, {"objects": 2}, "other settings, by bilevel collect tiny --objects 1 .*; choose another --output"),
        (TINY, {"noise": 0.5}, "begun with other settings"),
        (TINY_DISCRETE, {}, "begun with other settings, by bilevel collect tiny "),
        (replace(TINY, spec=OTHER_SPEC), {}, "begun when the task had another spec"),
        (replace(TINY, domain=replace(TINY.domain, name="other")), {}, "domain.pddl: not the domain of the task"),
    ],
)
def test_other_settings_are_refused_and_nothing_changes(
    copied: Path, task: Task, arguments: dict[str, Any], reason: str
) -> None:
    before = contents(copied)
    with pytest.raises(BadInput, match=reason):
        gather(copied, task, **arguments)
    assert contents(copied) == before


def test_other_versions_are_refused_only_where_something_is_missing(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(copied)
    monkeypatch.setattr(bilevel, "__version__", "9.0")
    gather(copied)
    assert contents(copied) == before
    with pytest.raises(BadInput, match=r"begun with bilevel 0.* instead of 9\.0"):
        gather(copied, episodes=EPISODES + 1)


def test_a_folder_without_a_sound_manifest_is_not_touched(copied: Path) -> None:
    for content, reason in (
        (b"{", r"truncated; choose another --output"),
        (None, "there are episodes but no manifest"),
    ):
        (copied / MANIFEST).unlink()
        if content:
            (copied / MANIFEST).write_bytes(content)
        before = contents(copied)
        with pytest.raises(BadInput, match=reason):
            gather(copied)
        assert contents(copied) == before


def test_two_cannot_collect_into_one_folder(copied: Path) -> None:
    with folder_lock(copied, "collecting"), pytest.raises(BadInput, match="another process is collecting here"):
        gather(copied)
    gather(copied)


def test_a_killed_collection_goes_on(tmp_path: Path) -> None:
    """It is killed, all its processes at once, as soon as two episodes are there."""
    folder, episodes = tmp_path / "set", 100
    program = f"import tiny_task, bilevel; bilevel.collect(tiny_task.TINY, {str(folder)!r}, objects=1, "
    command = [sys.executable, "-c", f"{program}episodes={episodes}, workers=2)"]
    path = f"{Path(tiny_task.__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with subprocess.Popen(
        command, stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        while process.poll() is None and len(list(folder.glob("episode-*.npz"))) < 2:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    there = {path: path.stat().st_mtime_ns for path in folder.glob("episode-*.npz")}
    assert 2 <= len(there) < episodes
    data = gather(folder, episodes=episodes)
    assert (data.report.found, data.report.notes) == (len(there), [])
    assert {path: path.stat().st_mtime_ns for path in there} == there
    assert {path.name for path in folder.glob(".*")} <= {".lock"}
