"""Collecting a data set from a task's expert, so that it can be stopped and taken up again, and replaying it.

The manifest is written first, then a file for each episode as soon as it is recorded, then the manifest again with the
list of all files. What a file holds depends on the settings and its number alone, so it does not matter who records it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations import dataset
from bilevel.files import folder_lock, write_atomically
from bilevel.json_files import encode
from bilevel.parallel import parallel
from bilevel.policies.episode import Episode
from bilevel.policies.policy import ActingExpert, Policy, expert_policy
from bilevel.policies.rollout import Perturbation, Transition, rollout
from bilevel.progress import Callback, Progress, silent
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import Action, BadInput
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.checking import largest_difference, numbers
from bilevel.tasks.controls import Control
from bilevel.tasks.perception import PERFECT, Perception, read_perception
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import OBJECTS, Snapshot, Task
from bilevel.versions import differences, versions

MOST_ATTEMPTS = 20  # of the expert at one episode
ELSEWHERE = "choose another --output or remove the folder"


def collect(
    task: Task,
    output: Path | str,
    *,
    objects: int = 3,
    episodes: int = 200,
    seed: int = 0,
    noise: float | None = None,
    perception: Perception | str = PERFECT,
    workers: int | None = 1,
    callback: Callback = silent,
    **arguments: Any,
) -> dataset.Demonstrations:
    """Let a task's expert demonstrate it, keep the episodes that succeed in a folder, and return them.

    What is there already is kept, so a collection that was stopped goes on. `noise` is the amplitude of the bursts
    that perturb the expert's controls, such as 0.7; `perception`, such as "noise=0.005,missed=0.01", is what is wrong
    with what the expert sees; `arguments` are further ones of the task's `make_env`. The files are the same for any
    number of `workers`. The `report` of the demonstrations says what was there, and why attempts failed.

        data = collect(task, "build/cubes", objects=3, episodes=200, workers=2)
    """
    settings = collection_settings(task, objects, seed=seed, noise=noise, perception=perception, **arguments)
    if not 1 <= episodes <= dataset.MOST_EPISODES:
        raise BadInput(f"the number of episodes must be at least 1, at most {dataset.MOST_EPISODES}, but is {episodes}")
    folder = Path(output)
    with closing(SceneEnv(task, **settings.arguments, perception=settings.perception)) as env:
        expert_policy(env)  # what does not fit is said before anything is written
        controls = env.controls
    wanted = dataset.Manifest(
        settings=settings,
        episodes=episodes,
        spec=task.spec,
        controls=controls,
        versions=versions(task.packages),
    )
    with folder_lock(folder, "collecting"):
        known = _begun(folder, wanted, write_domain(task.domain))
        report = dataset.Report()
        entries = {number: entry for number, _, entry in dataset.whole_episodes(folder, known, report.notes)}
        report.found = len(entries)
        missing = [index for index in range(episodes) if index not in entries]
        write_atomically(folder / dataset.DOMAIN, write_domain(task.domain))
        if missing:
            if others := differences(known.versions, task.packages):
                raise BadInput(f"{folder}: was begun with {others}; choose another --output")
            write_atomically(folder / dataset.MANIFEST, encode(wanted))
        callback(Progress("collecting", len(entries), episodes))
        for index, entry, failures in parallel(Recorder(task, settings, folder), missing, workers):
            entries[index] = entry
            report.dropped.update(failures)
            callback(Progress("collecting", len(entries), episodes, {"failed attempts": report.dropped.total()}))
        files = tuple(entries[index] for index in range(episodes))
        whole = msgspec.structs.replace(wanted, versions=known.versions, files=files, complete=True)
        write_atomically(folder / dataset.MANIFEST, encode(whole))
    data = dataset.Demonstrations.read(folder)
    data.report = report
    return data


def collection_settings(
    task: Task,
    objects: int = 3,
    *,
    seed: int = 0,
    noise: float | None = None,
    perception: Perception | str = PERFECT,
    **arguments: Any,
) -> dataset.CollectionSettings:
    """Return what to record, with every argument of the environment spelt out."""
    task.check_arguments(arguments)
    if seed < 0:
        raise BadInput(f"the seed must not be negative, but is {seed}")
    for name, value in arguments.items():
        if not _is_plain(value):
            raise BadInput(f"the argument '{name}' is {value!r}, which cannot be kept in a data set: JSON has no such")
    defaults = {name: value for name, value in task.arguments.items() if _is_plain(value)}
    spelt_out = {OBJECTS: objects, **defaults, **arguments}
    seen = read_perception(perception) if isinstance(perception, str) else perception
    return dataset.CollectionSettings(
        task.name, spelt_out, Perturbation(amplitude=noise) if noise else None, seed, seen
    )


def _is_plain(value: Any) -> bool:
    """Return whether JSON gives a value back as it is."""
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except (TypeError, msgspec.MsgspecError):
        return False


# What is there already


def _begun(folder: Path, wanted: dataset.Manifest, domain: str) -> dataset.Manifest:
    """Return the manifest of what was begun in the folder, or the one that is wanted if nothing was."""
    path = folder / dataset.DOMAIN
    if path.exists() and path.read_bytes() != domain.encode():
        raise BadInput(f"{path}: not the domain of the task; {ELSEWHERE}")
    if not (folder / dataset.MANIFEST).exists():
        if any(folder.glob("episode-*.npz")):
            raise BadInput(f"{folder}: there are episodes but no {dataset.MANIFEST}; {ELSEWHERE}")
        return wanted
    try:
        known = dataset.read_manifest(folder)
    except BadInput as error:
        raise BadInput(f"{error}; {ELSEWHERE}") from None
    for reason, holds in {
        "holds imported demonstrations, to which none can be added": known.source is not None,
        f"was begun with other settings, by {known.command}": known.settings != wanted.settings,
        "was begun when the task had another spec": known.spec != wanted.spec,
        "was begun when the task had another action space": known.controls != wanted.controls,
        f"holds {known.episodes} episodes, more than the {wanted.episodes} wanted": known.episodes > wanted.episodes,
    }.items():
        if holds:
            raise BadInput(f"{folder}: {reason}; {ELSEWHERE}")
    return known


# Recording


@dataclass
class Recorder:
    """Records the episodes of some settings in one environment, which is made in whichever process it is needed.

    Called with the number of an episode, it writes that into its folder.
    """

    task: Task
    settings: dataset.CollectionSettings
    folder: Path = Path()

    def __call__(self, index: int) -> tuple[int, dataset.FileEntry, list[str]]:
        """Return the number of an episode, the entry of its file, and how failed attempts at it ended."""
        demonstration, failures = self.record(index)
        return index, dataset.write_episode(self.folder, index, demonstration), failures

    @cached_property
    def _at_work(self) -> tuple[SceneEnv, Policy]:
        env = SceneEnv(self.task, **self.settings.arguments, perception=self.settings.perception)
        return env, expert_policy(env)

    def record(self, index: int) -> tuple[dataset.Demonstration, list[str]]:
        """Return the episode of this number, the first attempt at it that succeeds, and how those before it ended."""
        failures: list[str] = []
        noise = self.settings.noise.amplitude if self.settings.noise else 0.0
        for attempt in range(MOST_ATTEMPTS):
            seed = training_seed(self.settings.seed, index, attempt)
            episode, demonstration = record_episode(*self._at_work, seed, noise=noise, attempt=attempt)
            if episode.success and episode.steps:
                demonstration.check(self.task.spec, self._at_work[0].controls)
                return demonstration, failures
            failures.append(f"{episode.outcome} ({episode.reason})" if episode.reason else "nothing to do")
        what = f"the expert failed {MOST_ATTEMPTS} times at episode {index} ({', '.join(sorted(set(failures)))})"
        raise BadInput(f"{what}; try less noise or other arguments")


def record_episode(
    env: SceneEnv, policy: Policy, seed: int, *, noise: float = 0.0, attempt: int = 0
) -> tuple[Episode, dataset.Demonstration]:
    """Run an episode, and return what happened, and the demonstration of it, with what the policy says it is doing."""
    transitions: list[Transition] = []
    actions: list[Action | None] = []
    snapshots: list[Snapshot] = []

    def note(transition: Transition) -> None:
        if env.can_save and len(transitions) % dataset.KEYFRAME == 0:
            snapshots.append(env.save())
        transitions.append(transition)
        actions.append(policy.action)

    def array(controls: Sequence[Control]) -> NDArray[Any]:
        return np.array(controls, env.controls.dtype).reshape(-1, *env.controls.shape)

    episode = rollout(env, policy, seed, noise=noise, callback=note)
    if env.can_save:
        snapshots.append(env.save())
    scenes = [*(step.scene for step in transitions), episode.scene]
    events = [*(step.events for step in transitions), episode.events]
    try:
        saved = {name: np.stack([each[name] for each in snapshots]) for name in (snapshots[0] if snapshots else ())}
    except (KeyError, ValueError):
        raise BadInput("save(env) must always give the same arrays, each of the same shape") from None
    return episode, dataset.Demonstration.of(
        scenes,
        [env.labels.state(scene) for scene in scenes],
        [env.labels.goal(scene) for scene in scenes],
        array([step.control for step in transitions]),
        executed=array([step.executed for step in transitions]),
        actions=tuple(actions),
        events=tuple((now, event) for now, each in enumerate(events) for event in each),
        outcome=episode.outcome,
        seed=seed,
        attempt=attempt,
        snapshots=saved,
    )


# Replaying


def replay(
    demonstrations: dataset.Demonstrations, task: Task, episode: int | None = None, callback: Callback = silent
) -> dict[int, str | None]:
    """Execute demonstrations, or the `episode` of this number, again; return where each first differs, if it does."""
    numbers = range(len(demonstrations)) if episode is None else [episode]
    found: dict[int, str | None] = {}
    with closing(demonstrations.make_env(task)) as env:
        for number in numbers:
            found[number] = replay_episode(demonstrations[number], env)
            different = sum(difference is not None for difference in found.values())
            callback(Progress("replaying", len(found), len(numbers), {"different": different}))
    return found


def causes(demonstrations: dataset.Demonstrations) -> tuple[str, ...]:
    """Return what may be behind episodes that are not the same again."""
    manifest = demonstrations.manifest
    if manifest and manifest.source:
        return ("the data set was imported: an episode happens again only if its seed was recorded, too",)
    others = differences(manifest.versions, manifest.versions) if manifest else ""
    return (
        f"the data set was made with {others}" if others else "the data set may be of another kind of machine",
        "or the simulator keeps something from one episode to the next: make it anew at each reset(seed)",
    )


def replay_episode(demonstration: dataset.Demonstration, env: SceneEnv) -> str | None:
    """Execute the controls again from the seed; return where what is seen and saved first differs, if it does."""
    executed, spec = iter(demonstration.executed), env.task.spec
    _, again = record_episode(env, ActingExpert(lambda scene: next(executed, None), env.labels), demonstration.seed)
    scenes = enumerate(zip(demonstration.scenes(spec), again.scenes(spec), strict=False))
    found = [(step, largest_difference(*both)) for step, both in scenes if numbers(both[0]) != numbers(both[1])]
    found += [(step, "the goal") for step, _ in {*demonstration.goals} ^ {*again.goals}]
    found += [(step, "the events") for step, _ in {*demonstration.events} ^ {*again.events}]
    for name in demonstration.snapshots.keys() & again.snapshots.keys():  # there are none where the task cannot save
        saved = zip(demonstration.snapshots[name], again.snapshots[name], demonstration.keyframes, strict=False)
        found += [(step, f"'snapshot.{name}'") for then, now, step in saved if then.tobytes() != now.tobytes()]
    if (demonstration.outcome, demonstration.steps) != (again.outcome, again.steps):
        found.append((min(demonstration.steps, again.steps), "the outcome"))
    return "first differs at step {}: {}".format(*min(found, key=lambda each: each[0])) if found else None
