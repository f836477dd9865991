"""Is a data set whole, and is an episode the same, bit for bit, when it is lived through again?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.manifest import DOMAIN, Manifest, file_name, read_episode, read_manifest
from bilevel.demonstrations.recording import Recording
from bilevel.demonstrations.traces import LabelledEpisode, Summary, labelled, summarise
from bilevel.json_files import Damaged
from bilevel.policies.policy import Policy
from bilevel.policies.rollout import Callback, Transition, rollout
from bilevel.symbolic.adl import read_adl_domain
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class Report:
    """What is wrong with a data set, a line each, and what is in it as far as it can be read."""

    problems: tuple[str, ...]
    task: str | None = None
    summary: Summary = field(default_factory=Summary)
    megabytes: float = 0.0


Look = Callable[[LabelledEpisode], None]


def check(
    folder: Path,
    task: Task | None = None,
    callback: Callable[[int, int], None] | None = None,
    begin: Callable[[Manifest, Domain], Look] | None = None,
) -> Report:
    """Read every file of a data set, and label it anew if the task is given.

    Raise `BadInput` where there is no data set, or one of another format. Once it is known what is in it, `begin` gives
    a function that looks at every episode.
    """
    try:
        manifest = read_manifest(folder)
    except Damaged as error:
        return Report(problems=(str(error),))
    try:
        domain = task.domain if task else read_adl_domain(folder / DOMAIN)
    except BadInput as error:
        return Report((str(error),), manifest.settings.task)
    problems, size = [], 0
    summary = Summary()
    look = begin(manifest, domain) if begin else None
    for index in range(manifest.episodes):
        try:
            demonstration, data = read_episode(folder, manifest, index)
        except BadInput as error:
            problems.append(str(error))
        else:
            size += len(data)
            episode = labelled(index, demonstration, domain, task)
            summary = summary + summarise(episode)
            if look:
                look(episode)
        if callback:
            callback(index + 1, manifest.episodes)
    if not manifest.complete:
        problems = _incomplete(folder, manifest, problems)
    return Report(tuple(problems), manifest.settings.task, summary, size / 1e6)


def _incomplete(folder: Path, manifest: Manifest, problems: list[str]) -> list[str]:
    """Return one line for all that has not been collected yet, and those about files that are there."""
    names = [file_name(index) for index in range(manifest.episodes)]
    there = sum((folder / name).is_file() for name in names)
    advice = f"go on with: {manifest.command} --output {folder}"
    reason = f"{folder}: not complete, {there} of {manifest.episodes} episodes are there; {advice}"
    return [reason, *(problem for problem in problems if not problem.endswith(": missing"))]


class _Replaying(Policy):
    """The policy that does again what was done."""

    def __init__(self, demonstration: Demonstration) -> None:
        self._controls = iter(demonstration.executed)

    def act(self, scene: Scene) -> Control | None:
        return next(self._controls, None)


def replay(demonstration: Demonstration, env: SceneEnv, callback: Callback | None = None) -> str | None:
    """Execute the controls again from the seed; return where what is seen and saved first differs, if it does.

    `callback` sees every step, too.
    """
    recording = Recording(env)

    def each_step(transition: Transition) -> None:
        recording(transition)
        if callback:
            callback(transition)

    episode = rollout(env, _Replaying(demonstration), demonstration.seed, callback=each_step)
    again = recording.demonstration(episode, demonstration.seed)
    then, now = (_timelines(each, env.task.spec) for each in (demonstration, again))
    last = min(demonstration.steps, again.steps)
    for timestep in range(last + 1):
        for what in (what for what in then if what in now):  # there are no snapshots where the task cannot save
            before, after = then[what][timestep], now[what][timestep]
            if before is not None and _bits(before) != _bits(after):
                return f"first differs at step {timestep}: {what}{_amount(before, after)}"
    if (demonstration.outcome, demonstration.steps) != (again.outcome, again.steps):
        return f"first differs at step {last}: the outcome"
    return None


def _timelines(demonstration: Demonstration, spec: Spec) -> dict[str, Sequence[Any]]:
    """Return all that is compared, with a value for every timestep, `None` where there is no snapshot."""
    scenes = demonstration.scenes(spec)
    found: dict[str, Sequence[Any]] = {
        "'agent'": [scene.values for scene in scenes],
        "the objects": [list(scene.objects.items()) for scene in scenes],
        "'features'": [scene.features for scene in scenes],
        "the goal": demonstration.at_each_timestep(demonstration.goals),
        "the events": [[event for when, event in demonstration.events if when == now] for now in range(len(scenes))],
    }
    index = {int(timestep): index for index, timestep in enumerate(demonstration.keyframes)}
    for name, part in demonstration.snapshots.items():
        found[f"'snapshot.{name}'"] = [part[index[now]] if now in index else None for now in range(len(scenes))]
    return found


def _bits(value: Any) -> Any:
    """Return what decides whether two values are the same: of numbers, their bits."""
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray | np.generic) else value


def _amount(one: Any, other: Any) -> str:
    """Say by how much two arrays of numbers differ at most."""
    if not isinstance(one, np.ndarray) or np.shape(one) != np.shape(other):
        return ""
    return f" by {np.max(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)), initial=0.0):.3g}"
