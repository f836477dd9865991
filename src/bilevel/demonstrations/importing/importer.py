"""The importer: recorded episodes in, a data set out, whole or not at all, and a report."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.collect import collection_settings
from bilevel.demonstrations.dataset import (
    DOMAIN,
    MANIFEST,
    MOST_EPISODES,
    Demonstrations,
    ImportReport,
    Manifest,
    Source,
    env_args,
    file_name,
    make_entry,
    write_manifest,
)
from bilevel.demonstrations.demonstration import Demonstration, all_objects, encode_demonstration
from bilevel.demonstrations.importing.conversion import (
    BY_FACTS,
    Combine,
    Hindsight,
    Stretch,
    as_controls,
    every,
    stretches,
    thin,
)
from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings
from bilevel.files import new_folder, write_atomically
from bilevel.progress import Callback, Progress, silent
from bilevel.rules.traces import traces_from_states
from bilevel.symbolic.domain import BadInput, Facts
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.checking import CheckedEpisode, Findings, check_facts, check_scenes
from bilevel.tasks.controls import Control
from bilevel.tasks.registry import find_function
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task, TaskError, call
from bilevel.versions import versions

EXPERT = "expert"
RECORDED, MADE, ASKED, UNKNOWN = "as recorded", "made by the function", "asked of the expert", "none"  # controls
GOAL_SEEDS = range(5)  # of environments that are asked which predicates a goal has

Format = Literal["npz", "minari", "lerobot", "robomimic"]
READERS: Mapping[Format, str] = {"npz": "array", "minari": "minari", "lerobot": "lerobot", "robomimic": "robomimic"}
MINARI_NAME = re.compile(r"([\w-]+/)*[\w-]+-v\d+")


@dataclass(frozen=True)
class ImportOptions:
    """How recorded episodes are to be understood; functions are given themselves, or as "file.py:function".

    - `perceive`: from an observation, or that and its info, to a `Scene`; by default the task's, without environment.
    - `hindsight`: the function that finds goals in what was done, see there; or "final", which wants what holds at
      the end, or "each", which cuts at each fact that comes true, for the predicates that the task's goals have.
    - `controls_from`: from a scene and the next one, and what was recorded if it takes three, to the control that leads
      there; "expert" asks the task's expert. By default, the expert is asked only where no controls were recorded.
    - `rate`: how many timesteps to keep per second, and `combine` the controls in between; `recorded_rate` is how
      many there are, where the recordings do not say so.
    - `clip`: move controls that are out of bounds to the bounds.
    - `objects`, `arguments`: those of the environment, with which `learn` practises (DAgger); 3 objects
      unless told, or the most that the task takes.
    """

    perceive: Callable[..., Scene] | str | None = None
    hindsight: Hindsight | str | None = None
    controls_from: Callable[..., Control] | str | None = None
    rate: float | None = None
    recorded_rate: float | None = None
    combine: Combine = "mean"
    clip: bool = False
    objects: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def words(self) -> list[str]:
        """Return these options as words of the command `bilevel import`."""
        words: list[str] = []
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name != "arguments" and value != option.default:
                text = f"{value.__module__}:{value.__qualname__}" if callable(value) else str(value)
                words += [f"--{option.name.replace('_', '-')}", *([] if value is True else [text])]
        return words + env_args(self.arguments)


def import_demonstrations(
    source: Path | str | Recordings,
    task: Task | None = None,
    output: Path | str | None = None,
    *,
    format: Format | None = None,
    mask: str | None = None,
    callback: Callback = silent,
    **options: Any,
) -> Demonstrations:
    """Return episodes that others recorded as demonstrations of a task: in memory, or in a new folder.

    The `source` is a file, a folder, the name of a data set of Minari's, or recordings in memory. Its format is
    recognised unless given; a `mask` names some of the episodes of a robomimic file. The `options` are those of
    `ImportOptions`. Afterwards the folder is there and whole or, with `BadInput` or an interruption, not there; the
    `report` of the demonstrations says what became of each episode.

        data = import_demonstrations("play.npz", task, "build/cubes", perceive=from_vector)
    """
    recordings = source if isinstance(source, Recordings) else read_recordings(str(source), format, mask)
    if task is None:
        raise BadInput("say what was demonstrated: --task file.py:task, or the name of a task")
    given = ImportOptions(**options)
    run = _Import(recordings, task, given)
    items = tuple(run.demonstrations(callback))
    if output is None:
        settings = run.settings
        data = Demonstrations(
            items,
            task=task.name,
            spec=task.spec,
            domain=task.domain,
            controls=run.controls,
            arguments=settings.arguments,
        )
    else:
        with new_folder(Path(output)) as folder:
            run.write(folder, items, given.words() + (["--mask", mask] if mask else []))
        data = Demonstrations.read(output)
    data.report = run.report
    return data


# Formats


def read_recordings(source: str, format: Format | None = None, mask: str | None = None) -> Recordings:
    """Return the episodes at a path, or in Minari's data set of that name, in the format that is seen or given."""
    chosen = format or recognise(source)
    if mask is not None and chosen != "robomimic":
        raise BadInput(f"--mask is for robomimic's files, and {source} is read as {chosen}")
    reader = import_module(f"bilevel.demonstrations.importing.{READERS[chosen]}_reader")
    further = (mask,) if chosen == "robomimic" else ()
    recordings: Recordings = getattr(reader, f"read_{chosen}")(source if chosen == "minari" else Path(source), *further)
    return recordings


def recognise(source: str) -> Format:
    """Return the format of what is at a path, or of what a name is one of; `BadInput` where that cannot be seen."""
    path = Path(source)
    if (path / MANIFEST).is_file():
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


# One import


class Dropped(Exception):
    """Why an episode, or a stretch of it, is no demonstration."""


class _Import:
    """One import: what the task needs to know, and the report."""

    def __init__(self, recordings: Recordings, task: Task, options: ImportOptions) -> None:
        self.recordings, self.task, self.options = recordings, task, options
        objects = min(3, task.max_objects or 3) if options.objects is None else options.objects
        self.settings = collection_settings(task, objects, **options.arguments)
        with closing(SceneEnv(task, **self.settings.arguments)) as env:
            self.controls = env.controls
            self.hindsight = self._hindsight(env)
        rate = recordings.rate if options.recorded_rate is None else options.recorded_rate
        self.every = every(rate, options.rate)
        self.report = ImportReport(rate=None if rate is None else rate / self.every, notes=list(recordings.notes))
        self.perceive = _function(options.perceive)
        wanted = options.controls_from
        self.make_control: Any = None if wanted == EXPERT else _function(wanted)
        self.ask = task.expert.control if isinstance(task.expert, Expert) else None
        if wanted == EXPERT and self.ask is None:
            reason = "an Expert with a `control`, which is not made for one environment"
            raise BadInput(f"--controls-from {EXPERT}: the task '{task.name}' lacks {reason}")

    def _hindsight(self, env: SceneEnv) -> Hindsight | None:
        wanted = self.options.hindsight
        if wanted not in BY_FACTS:
            function: Hindsight | None = _function(wanted)
            return function
        goals = (env.labels.goal(env.reset(seed)) for seed in GOAL_SEEDS)
        predicates = frozenset(fact.predicate for goal in goals for fact in goal)
        if not predicates:
            raise BadInput(f"--hindsight {wanted} needs goals: goal(scene) gave no facts in the task's environment")
        return BY_FACTS[str(wanted)](self.task.labels, predicates)

    def write(self, folder: Path, items: Sequence[Demonstration], words: Sequence[str]) -> None:
        """Write demonstrations as a data set, whose manifest says where they come from."""
        report, recordings, entries = self.report, self.recordings, []
        for index, demonstration in enumerate(items):
            data = encode_demonstration(demonstration)
            write_atomically(folder / file_name(index), data)
            entries.append(make_entry(index, demonstration, data))
        write_atomically(folder / DOMAIN, write_domain(self.task.domain))
        options, dropped = tuple(map(shlex.quote, words)), dict(report.dropped)
        manifest = Manifest(
            settings=self.settings,
            episodes=len(entries),
            complete=True,
            spec_json=self.task.spec.as_json(),
            controls=self.controls,
            versions=versions(self.task.packages),
            files=tuple(entries),
            source=Source(recordings.format, recordings.place, options, report.rate, report.read, dropped),
        )
        write_manifest(folder, manifest)

    def demonstrations(self, callback: Callback) -> Iterator[Demonstration]:
        """Give what is kept, one by one, and complete the report; `BadInput` where nothing is left."""
        report = self.report
        for episode in self.recordings.episodes:
            report.read += 1
            report.controls[self._origin(episode)] += 1
            for found in self._found(episode):
                if isinstance(found, Dropped):
                    report.dropped[str(found)] += 1
                    continue
                report.kept += 1
                report.steps += found.steps
                report.demonstrators[found.demonstrator] += 1
                if report.kept > MOST_EPISODES:
                    raise BadInput(f"there are more than {MOST_EPISODES} demonstrations, the most in a data set")
                yield found
            callback(Progress("importing", report.read, self.recordings.total))
        if not report.kept:
            reasons = ", ".join(f"{number} {reason}" for reason, number in report.dropped.most_common())
            what = f"of {report.read} episodes none can be used" if report.read else "there is no episode"
            raise BadInput(f"{self.recordings.place}: {what}{': ' if reasons else ''}{reasons}")
        if report.clipped:
            report.notes.append(f"{report.clipped} numbers of controls were clipped")

    def _found(self, episode: RecordedEpisode) -> Iterator[Demonstration | Dropped]:
        """Give the demonstrations in an episode, mostly one, and the reason for each that is none."""
        switches = () if self.make_control else self.task.switches
        episode = thin(episode, self.every, self.options.combine, switches)
        scenes = self._scenes(episode)
        if len(scenes) < 2:
            yield Dropped("without a step")
            return
        if self.hindsight is None:
            found = [Stretch(0, len(scenes) - 1, scenes)]
        else:
            found = stretches(self.hindsight, scenes, episode.name)
            if not found:
                yield Dropped("in which hindsight found nothing")
        for stretch in found:
            try:
                yield self._demonstration(episode, stretch)
            except Dropped as reason:  # noqa: PERF203
                yield reason

    # What was seen

    def _scenes(self, episode: RecordedEpisode) -> list[Scene]:
        """Return what was seen: as the user's function sees it, or else the task's, which is given no environment."""
        scenes, places = [], 0 if self.perceive is None else min(_places(self.perceive), 2)
        for now, observation in enumerate(episode.observations):
            info = {} if episode.infos is None else dict(episode.infos[now])
            where = f"{episode.name}, step {now}: perceive"
            if self.perceive is not None:
                scenes.append(call(where, self.perceive, *(observation, info)[:places]))
            elif isinstance(observation, Scene):
                scenes.append(observation)
            else:
                try:
                    scenes.append(
                        call(f"{where}(observation, info, None)", self.task.perceive, observation, info, None)
                    )
                except TaskError as error:
                    reason = "what was recorded may be other than what the task sees: give --perceive file.py:function"
                    raise TaskError(f"{error}; {reason}") from None
        return scenes

    # What was wanted

    def _demonstration(self, episode: RecordedEpisode, stretch: Stretch) -> Demonstration:
        """Return the demonstration in a stretch of an episode, labelled, with its controls; or raise `Dropped`."""
        labels, scenes = self.task.labels, list(stretch.scenes)
        seen = CheckedEpisode(episode.name, episode.seed, scenes)
        self._check(check_scenes, self.task, seen)
        seen.states = states = [labels.state(scene) for scene in scenes]
        if stretch.goal is None:
            goals = [labels.goal(scene) for scene in scenes]
        else:
            goals = [self._about_seen(stretch.goal, scene) for scene in scenes]
        seen.goals = goals
        self._check(check_facts, self.task.domain, seen)
        if not any(goals):
            raise Dropped("without a goal (see --hindsight)")
        if self.hindsight is None and not _succeeded(episode, states[-1], goals[-1]):
            raise Dropped("that failed")
        if self.hindsight is not None and not goals[-1] <= states[-1]:
            raise Dropped("in which what hindsight wants is not achieved")
        if self.hindsight is not None and goals[-1] <= states[0]:
            raise Dropped("in which nothing was achieved")
        recorded = None if episode.controls is None else episode.controls[stretch.start : stretch.end]
        controls = self._controls(episode, recorded, scenes, states, goals)
        nothing = np.zeros((len(scenes) - 1, *self.controls.shape), self.controls.dtype)
        return Demonstration.of(
            scenes,
            states,
            goals,
            nothing if controls is None else controls,
            seed=episode.seed,
            demonstrator=episode.demonstrator,
            own_goals=stretch.goal is not None,
            has_controls=controls is not None,
        )

    def _check(self, check: Callable[..., None], what: object, seen: CheckedEpisode) -> None:
        """`BadInput` with the first error that a check finds; what is no error becomes a note."""
        found = _Findings()
        check(what, seen, found)
        for finding in found.in_order():
            if finding.is_error:
                raise BadInput(finding.message)
            if finding.message not in self.report.notes:
                self.report.notes.append(finding.message)

    def _about_seen(self, goal: Facts, scene: Scene) -> Facts:
        """Return the part of a goal that is about what is seen: nobody wants anything of what is not there yet."""
        known = self.task.domain.constants
        return frozenset(fact for fact in goal if all(term in scene or term in known for term in fact.terms))

    # What was done

    def _origin(self, episode: RecordedEpisode) -> str:
        """Return where the controls of an episode come from."""
        if self.make_control is not None:
            return MADE
        if episode.controls is not None and self.options.controls_from != EXPERT:
            return RECORDED
        return UNKNOWN if self.ask is None else ASKED

    def _controls(
        self,
        episode: RecordedEpisode,
        recorded: NDArray[Any] | None,
        scenes: Sequence[Scene],
        states: Sequence[Facts],
        goals: Sequence[Facts],
    ) -> NDArray[Any] | None:
        """Return the controls that lead from scene to scene, if they are known."""
        origin, where = self._origin(episode), episode.name
        if origin == UNKNOWN:
            return None
        if origin == MADE:
            recorded = _as_array(self._made(where, recorded, scenes), where)
        elif origin == ASKED:
            recorded = _as_array(self._asked(where, scenes, states, goals), where)
        assert recorded is not None
        controls, outside = as_controls(recorded, self.controls, where)
        if outside and not self.options.clip:
            what = f"{outside} of {recorded.size} numbers of controls are out of the action space's bounds"
            raise BadInput(f"{where}: {what}; --clip moves them to the bounds")
        self.report.clipped += outside
        return controls

    def _made(self, where: str, recorded: NDArray[Any] | None, scenes: Sequence[Scene]) -> list[Control]:
        """Return the controls that the user's function makes of two scenes, and of what was recorded between them."""
        places = min(_places(self.make_control), 3)
        known = [None] * len(scenes) if recorded is None else recorded
        return [
            call(f"{where}, step {step}: controls(scene, next_scene)", self.make_control, *given[:places])
            for step, given in enumerate(zip(scenes, scenes[1:], known, strict=False))
        ]

    def _asked(
        self, where: str, scenes: Sequence[Scene], states: Sequence[Facts], goals: Sequence[Facts]
    ) -> list[Control]:
        """Return the expert's controls for what was being done.

        Where nobody knows that, the control is one that does nothing: `still`, or else the one in the middle.
        """
        still, ask = self.task.still, self.ask
        assert ask is not None
        if still is None:
            still = self.controls.decode(np.zeros(self.controls.size, np.float32))
        actions = traces_from_states(self.task.domain, states, goals, all_objects(scenes)).actions[:-1]
        return [
            call(f"{where}, step {step}: control(scene, {action})", ask, scene, action) if action else still
            for step, (scene, action) in enumerate(zip(scenes, actions, strict=False))
        ]


def _as_array(controls: list[Control], where: str) -> NDArray[Any]:
    try:
        return np.array([np.asarray(control, np.float64) for control in controls])
    except (TypeError, ValueError):
        raise BadInput(f"{where}: the controls that were made are not numbers, all of one shape") from None


class _Findings(Findings):
    """Names that seem to change are no error here: who has only recordings can seldom do anything about it."""

    def error(self, about: Hashable, message: str) -> None:
        (super().advise if about == "names" else super().error)(about, message)


def _function(given: Callable[..., Any] | str | None) -> Any:
    """Return a function that is given itself, or as "file.py:function"."""
    return find_function(given) if isinstance(given, str) else given


def _places(function: Any) -> int:
    """Return how many arguments a function takes by their places."""
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in by_place for parameter in inspect.signature(function).parameters.values())


def _succeeded(episode: RecordedEpisode, state: Facts, goal: Facts) -> bool:
    """Return whether an episode succeeded: as was recorded, or else by whether the goal holds at the end."""
    if episode.success is not None:
        return episode.success
    final: Mapping[str, Any] = episode.infos[-1] if episode.infos else {}
    for key in ("success", "is_success"):
        if key in final:
            return bool(np.all(final[key]))
    return goal <= state
