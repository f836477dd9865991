"""The importer: recorded episodes in, a data set out, whole or not at all, and a report."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations import dataset
from bilevel.demonstrations.collect import collection_settings
from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings
from bilevel.files import new_folder, write_atomically
from bilevel.json_files import encode
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.checking import CheckedEpisode, Findings, check_facts, check_scenes
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.registry import find_function
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task, call
from bilevel.versions import versions

Result = TypeVar("Result")

ROUNDING = 1e-5  # of the range of a control: so far out of bounds is not out of bounds

Hindsight = Callable[[Sequence[Scene]], Iterable[tuple[int, int, Sequence[Scene]]]]


def import_demonstrations(
    source: Path | str | Recordings,
    task: Task,
    output: Path | str | None = None,
    *,
    format: Format | None = None,
    perceive: Callable[..., Scene] | str | None = None,
    hindsight: Hindsight | str | None = None,
    clip: bool = False,
    objects: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    callback: Callback = silent,
) -> dataset.Demonstrations:
    """Return episodes that others recorded as demonstrations of a task: in memory, or in a new folder.

    The `source` is a file, a folder, the name of a data set of Minari's, or recordings in memory. Its format is
    recognised unless given. Functions are given themselves, or as "file.py:function":

    - `perceive`: from an observation, or that and its info, to a `Scene`; by default the task's, without environment.
    - `hindsight`: from an episode's scenes to the demonstrations in it, as play has no goals: what was brought about is
      what was wanted. Each is `(start, end, scenes)`, with timesteps that both belong to it, and with those scenes, in
      which `goal(scene)` now finds what it needs.

    With `clip`, controls that are out of bounds are moved to the bounds. `objects` and `arguments` are those of the
    environment in which `learn` practises (DAgger): 3 objects unless told, or the most that the task takes.

    Afterwards the folder is there and whole or, with `BadInput` or an interruption, not there; the `report` of the
    demonstrations says what became of each episode.

        data = import_demonstrations("play.npz", task, "build/cubes", perceive=from_vector)
    """
    recordings = source if isinstance(source, Recordings) else read_recordings(str(source), format)
    given = {"perceive": perceive, "hindsight": hindsight, "clip": clip, "objects": objects}
    objects = min(3, task.max_objects or 3) if objects is None else objects
    settings = collection_settings(task, objects, **arguments or {})
    with closing(SceneEnv(task, **settings.arguments)) as env:
        controls = env.controls
    perceive = find_function(perceive) if isinstance(perceive, str) else perceive
    hindsight = find_function(hindsight) if isinstance(hindsight, str) else hindsight
    importer = _Importer(task, controls, perceive, hindsight, clip)
    kept = importer.demonstrations(recordings, callback)
    if output is None:
        about: dict[str, Any] = {"task": task.name, "spec": task.spec, "domain": task.domain, "controls": controls}
        data = dataset.Demonstrations(list(kept), **about, arguments=settings.arguments)
    else:
        with new_folder(Path(output)) as folder:
            entries = tuple(dataset.write_episode(folder, number, each) for number, each in enumerate(kept))
            write_atomically(folder / dataset.DOMAIN, write_domain(task.domain))
            manifest = dataset.Manifest(
                settings=settings,
                episodes=len(entries),
                complete=True,
                spec=task.spec,
                controls=controls,
                versions=versions(task.packages),
                files=entries,
                source=dataset.Source(
                    format=recordings.format,
                    place=recordings.place,
                    options=(*_words(given), *dataset.env_args(arguments or {})),
                    rate=recordings.rate,
                ),
            )
            write_atomically(folder / dataset.MANIFEST, encode(manifest))
        data = dataset.Demonstrations.read(output)
    data.report = importer.report
    return data


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that were given as words of the command `bilevel import`."""
    for name, value in options.items():
        if value is not None and value is not False:
            yield f"--{name}"
            if value is not True:
                yield f"{value.__module__}:{value.__qualname__}" if callable(value) else str(value)


# Formats

Format = Literal["npz", "minari", "lerobot", "robomimic"]
MINARI_NAME = re.compile(r"([\w-]+/)*[\w-]+-v\d+")


def read_recordings(source: str, format: Format | None = None) -> Recordings:
    """Return the episodes at a path, or in Minari's data set of that name, in the format that is seen or given."""
    reader = import_module(f"bilevel.demonstrations.importing.{format or recognise(source)}_reader")
    recordings: Recordings = reader.read(source)
    return recordings


def recognise(source: str) -> Format:
    """Return the format of what is at a path, or of what a name is one of; `BadInput` where that cannot be seen."""
    path = Path(source)
    if (path / dataset.MANIFEST).is_file():
        raise BadInput(f"{source}: is a data set of demonstrations already; use it as it is")
    if (path / "data" / "metadata.json").is_file() or (not path.exists() and MINARI_NAME.fullmatch(source)):
        return "minari"
    if (path / "meta" / "info.json").is_file():
        return "lerobot"
    if path.suffix in (".hdf5", ".h5"):
        return "robomimic"
    if path.suffix == ".npz" or (path.is_dir() and any(path.glob("*.npz"))):
        return "npz"
    what = "its format is none that is known here" if path.exists() else "there is no such file, folder or data set"
    raise BadInput(f"{source}: {what}; formats: {', '.join(get_args(Format))}")


# From recorded episodes to demonstrations


@dataclass
class _Importer:
    """Makes demonstrations of a task of recorded episodes, and reports what became of each."""

    task: Task
    controls: Controls
    perceive: Callable[..., Scene] | None
    hindsight: Hindsight | None
    clip: bool
    report: dataset.Report = field(default_factory=dataset.Report)

    def demonstrations(self, recordings: Recordings, callback: Callback) -> Iterator[dataset.Demonstration]:
        """Give what is kept, one by one, and complete the report; `BadInput` where nothing is left."""
        report, kept = self.report, 0
        report.notes += recordings.notes
        for recorded in recordings.episodes:
            report.found += 1
            for episode in self._parts(recorded):
                found = self._demonstration(episode)
                if isinstance(found, str):
                    report.dropped[found] += 1
                    continue
                kept += 1
                if kept > dataset.MOST_EPISODES:
                    raise BadInput(
                        f"there are more than {dataset.MOST_EPISODES} demonstrations, the most in a data set"
                    )
                yield found
            callback(Progress("importing", report.found, recordings.total))
        if not kept:
            reasons = ", ".join(f"{number} {reason}" for reason, number in report.dropped.most_common())
            what = f"of {report.found} episodes none can be used" if report.found else "there is no episode"
            raise BadInput(f"{recordings.place}: {what}{': ' if reasons else ''}{reasons}")

    def _parts(self, episode: RecordedEpisode) -> list[RecordedEpisode]:
        """Return the episode, or the parts of it that hindsight finds, with scenes as observations."""
        scenes = [self._scene(episode, now) for now in range(len(episode.observations))]
        hindsight = self.hindsight
        if hindsight is None:
            return [replace(episode, observations=scenes)]
        what = f"{episode.name}: hindsight(scenes)"
        found = _call(what, lambda: list(hindsight(scenes)))
        if not found:
            self.report.dropped["in which hindsight found nothing"] += 1
        return [_part(episode, given, what) for given in found]

    def _scene(self, episode: RecordedEpisode, now: int) -> Scene:
        """Return what was seen: as the user's function sees it, or else the task's, which is given no environment."""
        observation, info = episode.observations[now], dict(episode.infos[now]) if episode.infos else {}
        where = f"{episode.name}, step {now}: perceive"
        if self.perceive is not None:
            given = (observation, info)[: len(inspect.signature(self.perceive).parameters)]
            return _call(where, self.perceive, *given)
        if isinstance(observation, Scene):
            return observation
        what = f"{where}(observation, info, None) of the task, for want of --perceive,"
        return _call(what, self.task.perceive, observation, info, None)

    def _demonstration(self, episode: RecordedEpisode) -> dataset.Demonstration | str:
        """Return an episode of scenes with labels and the task's controls, or why it is no demonstration."""
        labels, scenes = self.task.labels, episode.observations
        if len(scenes) < 2:
            return "without a step"
        seen = CheckedEpisode(episode.name, episode.seed, scenes)
        _refuse(check_scenes(self.task, seen))
        seen.states = states = [labels.state(scene) for scene in scenes]
        seen.goals = goals = [labels.goal(scene) for scene in scenes]
        _refuse(check_facts(self.task.domain, seen))
        if not any(goals):
            return "without a goal (see --hindsight)"
        if not _succeeded(episode, goals[-1] <= states[-1]):
            return "that failed"
        if self.hindsight is not None and goals[-1] <= states[0]:
            return "in which nothing was achieved"
        return dataset.Demonstration.of(
            scenes,
            states,
            goals,
            self._controls(episode),
            seed=episode.seed,
            demonstrator=episode.demonstrator,
            has_controls=episode.controls is not None,
        )

    def _controls(self, episode: RecordedEpisode) -> NDArray[Any]:
        """Return what was done as the task's controls, (steps, ...); zeros where it is not on record."""
        controls, steps = self.controls, len(episode.observations) - 1
        if episode.controls is None:
            return np.zeros((steps, *controls.shape), controls.dtype)
        size, given = math.prod(controls.shape), math.prod(episode.controls.shape[1:])
        if given != size:
            remedy = "import arrays of the task's own controls: bilevel.recordings_in_memory"
            raise BadInput(f"{episode.name}: a control has {given} numbers, but the task takes {size}; {remedy}")
        flat: NDArray[Any] = episode.controls.astype(np.float64).reshape(steps, size)
        for step in np.flatnonzero(~np.isfinite(flat).all(axis=1)):
            raise BadInput(f"{episode.name}, step {step}: the control is {flat[step].tolist()}, which is not finite")
        if not isinstance(controls, BoxControls):
            last = controls.start + controls.n - 1
            for step in np.flatnonzero((flat != np.floor(flat)) | (flat < controls.start) | (flat > last)):
                what = f"the control is {flat[step, 0]:g}, but the task takes whole numbers, {controls.start} to {last}"
                raise BadInput(f"{episode.name}, step {step}: {what}")
            return flat[:, 0].astype(controls.dtype)
        low, high = np.array(controls.low), np.array(controls.high)
        outside = (np.maximum(low - flat, flat - high) > ROUNDING * (high - low)).sum()
        if outside and not self.clip:
            what = f"{outside} of {flat.size} numbers of controls are out of the action space's bounds"
            raise BadInput(f"{episode.name}: {what}; --clip moves them to the bounds")
        within: NDArray[Any] = np.clip(flat, low, high).astype(controls.dtype)
        return within.reshape(-1, *controls.shape)


def _refuse(findings: Findings) -> None:
    """Refuse what is wrong, but for names that seem to change: recordings can seldom be mended in that."""
    for finding in findings:
        if finding.about != "names":
            raise BadInput(finding.message)


def _call(where: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a user's function; a `BadInput` says where it raised an error, in an episode that others have named."""
    return call(where.replace("{", "{{").replace("}", "}}"), function, *arguments)


def _part(episode: RecordedEpisode, given: Any, what: str) -> RecordedEpisode:
    """Return the part of an episode that a user's function gave; `BadInput` where that makes no sense."""
    try:
        start, end, scenes = given
        start, end, scenes = int(start), int(end), list(scenes)
    except (TypeError, ValueError):
        how = f"must give start, end and scenes, but gave {type(given).__name__} {given!r:.60}"
        raise BadInput(f"{what} {how}") from None
    last = len(episode.observations) - 1
    if not 0 <= start < end <= last or len(scenes) != end - start + 1:
        where = f"timesteps {start} to {end}, both included, of 0 to {last}"
        raise BadInput(f"{what} gave {len(scenes)} scenes for {where}")
    controls = None if episode.controls is None else episode.controls[start:end]
    return replace(episode, observations=scenes, controls=controls, infos=None, success=None)


def _succeeded(episode: RecordedEpisode, holds: bool) -> bool:
    """Return whether an episode succeeded: as was recorded, or else by whether the goal holds at the end."""
    final: Mapping[str, Any] = episode.infos[-1] if episode.infos else {}
    said = [episode.success, final.get("success"), final.get("is_success"), holds]
    return bool(np.all(next(each for each in said if each is not None)))
