"""The importer: recorded episodes in, a data set out, whole or not at all, and a report."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

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
    write_episode,
    write_manifest,
)
from bilevel.demonstrations.demonstration import Demonstration, all_objects
from bilevel.demonstrations.importing.recorded import RecordedEpisode, Recordings
from bilevel.files import new_folder, write_atomically
from bilevel.progress import Callback, Progress, silent
from bilevel.rules.traces import traces_from_states
from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.checking import SETTLING, CheckedEpisode, Findings, check_facts, check_scenes
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.registry import find_function
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task, TaskError, call
from bilevel.versions import versions

EXPERT = "expert"
GOAL_SEEDS = range(5)  # of environments that are asked which predicates a goal has
ROUNDING = 1e-5  # of the range of a control: so far out of bounds is not out of bounds

Hindsight = Callable[[Sequence[Scene]], Iterable[Any]]
Combine = Literal["mean", "sum", "last"]
COMBINED: dict[Combine, Callable[[NDArray[Any]], Any]] = {
    "mean": lambda controls: controls.mean(axis=0),
    "sum": lambda controls: controls.sum(axis=0),
    "last": lambda controls: controls[-1],
}


def import_demonstrations(
    source: Path | str | Recordings,
    task: Task,
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
    run = _Import(recordings, task, ImportOptions(**options))
    if output is None:
        data = Demonstrations(
            list(run.demonstrations(callback)),
            task=task.name,
            spec=task.spec,
            domain=task.domain,
            controls=run.controls,
            arguments=run.settings.arguments,
        )
    else:
        with new_folder(Path(output)) as folder:
            run.write(folder, callback, ["--mask", mask] if mask else [])
        data = Demonstrations.read(output)
    data.report = run.report
    return data


@dataclass(frozen=True)
class ImportOptions:
    """How recorded episodes are to be understood; functions are given themselves, or as "file.py:function".

    - `perceive`: from an observation, or that and its info, to a `Scene`; by default the task's, without environment.
    - `hindsight`: finds goals in what was done, as play has none: what a demonstrator brought about is what it wanted.
      It is "final", which wants what holds at the end, or "each", which cuts at each fact that comes true, for the
      predicates that the task's goals have; or a function from an episode's scenes to the stretches that are
      demonstrations: `(start, end, wanted)` with timesteps that both belong to it, and either facts, or those scenes
      with what `goal(scene)` needs in them.
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


# Formats

Format = Literal["npz", "minari", "lerobot", "robomimic"]
READERS: Mapping[Format, str] = {"npz": "array", "minari": "minari", "lerobot": "lerobot", "robomimic": "robomimic"}
MINARI_NAME = re.compile(r"([\w-]+/)*[\w-]+-v\d+")


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


class DroppedEpisode(Exception):
    """Why an episode, or a stretch of it, is no demonstration."""


class Stretch(NamedTuple):
    """Timesteps `start` to `end` of an episode, both included, and what was wanted, where the scenes do not say so."""

    start: int
    end: int
    scenes: Sequence[Scene]
    goal: Facts | None = None


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
        self.asks_expert = options.controls_from == EXPERT
        self.make_control = None if self.asks_expert else _function(options.controls_from)
        self.expert = task.expert.control if isinstance(task.expert, Expert) else None
        if self.asks_expert and self.expert is None:
            reason = "an Expert with a `control`, which is not made for one environment"
            raise BadInput(f"--controls-from {EXPERT}: the task '{task.name}' lacks {reason}")

    def _hindsight(self, env: SceneEnv) -> Hindsight | None:
        wanted = self.options.hindsight
        if wanted not in BY_FACTS:
            function: Hindsight | None = _function(wanted)
            return function
        goals = (env.labels.goal(env.reset(seed)) for seed in GOAL_SEEDS)
        predicates = {fact.predicate for goal in goals for fact in goal}
        if not predicates:
            raise BadInput(f"--hindsight {wanted} needs goals: goal(scene) gave no facts in the task's environment")
        find, state = BY_FACTS[str(wanted)], self.task.labels.state

        def hindsight(scenes: Sequence[Scene]) -> Iterable[Any]:
            return find([frozenset(fact for fact in state(scene) if fact.predicate in predicates) for scene in scenes])

        return hindsight

    def write(self, folder: Path, callback: Callback, further: Sequence[str]) -> None:
        """Write what is kept as a data set, whose manifest says where it comes from, with further options."""
        entries = [write_episode(folder, *numbered) for numbered in enumerate(self.demonstrations(callback))]
        write_atomically(folder / DOMAIN, write_domain(self.task.domain))
        manifest = Manifest(
            settings=self.settings,
            episodes=len(entries),
            complete=True,
            spec_json=self.task.spec.as_json(),
            controls=self.controls,
            versions=versions(self.task.packages),
            files=tuple(entries),
            source=Source(
                format=self.recordings.format,
                place=self.recordings.place,
                options=(*self.options.words(), *further),
                rate=self.report.rate,
                read=self.report.read,
                dropped=dict(self.report.dropped),
            ),
        )
        write_manifest(folder, manifest)

    def demonstrations(self, callback: Callback) -> Iterator[Demonstration]:
        """Give what is kept, one by one, and complete the report; `BadInput` where nothing is left."""
        report, kept = self.report, 0
        for recorded in self.recordings.episodes:
            report.read += 1
            episode = thin(recorded, self.every, self.options.combine, () if self.make_control else self.task.switches)
            for stretch in self._stretches(episode):
                try:
                    demonstration = self._demonstration(episode, stretch)
                except DroppedEpisode as reason:
                    report.dropped[str(reason)] += 1
                    continue
                kept += 1
                if kept > MOST_EPISODES:
                    raise BadInput(f"there are more than {MOST_EPISODES} demonstrations, the most in a data set")
                yield demonstration
            callback(Progress("importing", report.read, self.recordings.total))
        if not kept:
            reasons = ", ".join(f"{number} {reason}" for reason, number in report.dropped.most_common())
            what = f"of {report.read} episodes none can be used" if report.read else "there is no episode"
            raise BadInput(f"{self.recordings.place}: {what}{': ' if reasons else ''}{reasons}")
        if report.clipped:
            report.notes.append(f"{report.clipped} numbers of controls were clipped")

    def _stretches(self, episode: RecordedEpisode) -> list[Stretch]:
        """Return the stretches of an episode that may be demonstrations, mostly all of it."""
        scenes = [self._scene(episode, now) for now in range(len(episode.observations))]
        if len(scenes) < 2:
            self.report.dropped["without a step"] += 1
            return []
        if self.hindsight is None:
            return [Stretch(0, len(scenes) - 1, scenes)]
        what, hindsight = f"{episode.name}: hindsight(scenes)", self.hindsight
        found = [_stretch(each, scenes, what) for each in _call(what, lambda: list(hindsight(scenes)))]
        if not found:
            self.report.dropped["in which hindsight found nothing"] += 1
        return found

    def _scene(self, episode: RecordedEpisode, now: int) -> Scene:
        """Return what was seen: as the user's function sees it, or else the task's, which is given no environment."""
        observation, info = episode.observations[now], {} if episode.infos is None else dict(episode.infos[now])
        if self.perceive is None and isinstance(observation, Scene):
            return observation
        where = f"{episode.name}, step {now}: perceive"
        if self.perceive is not None:
            scene: Scene = _call(where, self.perceive, *(observation, info)[: _places(self.perceive)])
            return scene
        try:
            scene = _call(f"{where}(observation, info, None)", self.task.perceive, observation, info, None)
        except TaskError as error:
            reason = "what was recorded may be other than what the task sees: give --perceive file.py:function"
            raise TaskError(f"{error}; {reason}") from None
        return scene

    def _demonstration(self, episode: RecordedEpisode, stretch: Stretch) -> Demonstration:
        """Return the labelled demonstration in a stretch of an episode, or raise `DroppedEpisode`."""
        labels, scenes, wanted = self.task.labels, list(stretch.scenes), stretch.goal
        seen = CheckedEpisode(episode.name, episode.seed, scenes)
        self._check(check_scenes, self.task, seen)
        seen.states = states = [labels.state(scene) for scene in scenes]
        seen.goals = [labels.goal(each) if wanted is None else self._about_seen(wanted, each) for each in scenes]
        self._check(check_facts, self.task.domain, seen)
        goal = seen.goals[-1]
        if not any(seen.goals):
            raise DroppedEpisode("without a goal (see --hindsight)")
        if self.hindsight is None and not _succeeded(episode, states[-1], goal):
            raise DroppedEpisode("that failed")
        if self.hindsight is not None and not goal <= states[-1]:
            raise DroppedEpisode("in which what hindsight wants is not achieved")
        if self.hindsight is not None and goal <= states[0]:
            raise DroppedEpisode("in which nothing was achieved")
        recorded = None if episode.controls is None else episode.controls[stretch.start : stretch.end]
        controls = self._controls(recorded, seen)
        nothing = np.zeros((len(scenes) - 1, *self.controls.shape), self.controls.dtype)
        return Demonstration.of(
            scenes,
            states,
            seen.goals,
            nothing if controls is None else controls,
            seed=episode.seed,
            demonstrator=episode.demonstrator,
            own_goals=wanted is not None,
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
        """Return the part of a goal that is about what is seen: what is not there yet is not wanted."""
        known = self.task.domain.constants
        return frozenset(fact for fact in goal if all(term in scene or term in known for term in fact.terms))

    def _controls(self, recorded: NDArray[Any] | None, seen: CheckedEpisode) -> NDArray[Any] | None:
        """Return the controls that lead from scene to scene, if they are known, and note where they come from."""
        if self.make_control is not None:
            origin, controls = "made by the function", self._made(recorded, seen)
        elif recorded is not None and not self.asks_expert:
            origin, controls = "as recorded", recorded
        elif self.expert is not None:
            origin, controls = "asked of the expert", self._asked(seen)
        else:
            origin, controls = "none", None
        self.report.controls[origin] += 1
        if controls is None:
            return None
        fitting, outside = as_controls(controls, self.controls, seen.who)
        if outside and not self.options.clip:
            what = f"{outside} of {fitting.size} numbers of controls are out of the action space's bounds"
            raise BadInput(f"{seen.who}: {what}; --clip moves them to the bounds")
        self.report.clipped += outside
        return fitting

    def _made(self, recorded: NDArray[Any] | None, seen: CheckedEpisode) -> Any:
        """Return the controls that the user's function makes of two scenes, and of what was recorded between them."""
        places, scenes = _places(self.make_control), seen.scenes
        known = [None] * len(scenes) if recorded is None else recorded
        return [
            _call(f"{seen.who}, step {step}: controls(scene, next_scene)", self.make_control, *given[:places])
            for step, given in enumerate(zip(scenes, scenes[1:], known, strict=False))
        ]

    def _asked(self, seen: CheckedEpisode) -> Any:
        """Return the expert's controls for what was being done; where that is unknown, one that does nothing."""
        still = self.task.still
        if still is None:
            still = self.controls.decode(np.zeros(self.controls.size, np.float32))  # in the middle
        found = traces_from_states(self.task.domain, seen.states, seen.goals, all_objects(seen.scenes))
        return [
            _call(f"{seen.who}, step {step}: control(scene, {action})", self.expert, scene, action) if action else still
            for step, (scene, action) in enumerate(zip(seen.scenes, found.actions[:-1], strict=False))
        ]


class _Findings(Findings):
    """Names that seem to change are no error here: who has only recordings can seldom do anything about it."""

    def error(self, about: Hashable, message: str) -> None:
        (super().advise if about == "names" else super().error)(about, message)


def _call(where: str, function: Any, *arguments: Any) -> Any:
    """Call a user's function; a `TaskError` says where it raised an error, in an episode that others have named."""
    return call(where.replace("{", "{{").replace("}", "}}"), function, *arguments)


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


# Fewer timesteps


def every(recorded: float | None, wanted: float | None) -> int:
    """Return k where every k-th timestep is to be kept, so that there are `wanted` ones per second."""
    if wanted is None:
        return 1
    if recorded is None:
        raise BadInput("the recordings do not say how many timesteps there are per second: give --recorded-rate HZ")
    k = round(recorded / wanted) if wanted > 0 else 0
    if k < 1 or abs(recorded / wanted - k) > 1e-6 * k:
        fitting = ", ".join(f"{recorded / divisor:g}" for divisor in range(1, 6))
        raise BadInput(f"{wanted:g} Hz is no whole part of the recorded {recorded:g} Hz; that would be: {fitting}, ...")
    return k


def thin(episode: RecordedEpisode, k: int, combine: Combine, switches: Sequence[int] = ()) -> RecordedEpisode:
    """Return an episode with every k-th timestep, and the last one, wherever that is; controls are combined.

    The numbers of a control that are `switches` are the last ones of each stretch, as nothing lies between open and
    closed; so are controls that are whole numbers.
    """
    last, controls = len(episode.observations) - 1, episode.controls
    if k == 1 or last < 1:
        return episode
    kept = [*range(0, last, k), last]
    if controls is not None:
        latest = controls[np.array(kept[1:]) - 1]
        if controls.dtype.kind == "f" or controls.ndim > 1:
            combined = np.array([COMBINED[combine](controls[start:end]) for start, end in pairwise(kept)])
            if controls.ndim == 2 and switches:
                combined[:, list(switches)] = latest[:, list(switches)]
            latest = combined
        controls = latest
    infos = None if episode.infos is None else [episode.infos[now] for now in kept]
    return replace(episode, observations=[episode.observations[now] for now in kept], controls=controls, infos=infos)


# Controls


def as_controls(recorded: Any, controls: Controls, where: str) -> tuple[NDArray[Any], int]:
    """Return controls, (steps, ...), as the task has them, within bounds, and how many numbers were out of bounds."""
    try:
        recorded = np.asarray(recorded, np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"{where}: the controls that were made are not numbers, all of one shape") from None
    size = controls.size if isinstance(controls, BoxControls) else 1
    given = math.prod(recorded.shape[1:])
    if given != size:
        remedy = "give --controls-from file.py:function, which makes those of the task"
        raise BadInput(f"{where}: a control has {given} numbers, but the task takes {size}; {remedy}")
    flat = recorded.reshape(len(recorded), size)
    for step in np.flatnonzero(~np.isfinite(flat).all(axis=1)):
        raise BadInput(f"{where}, step {step}: the control is {flat[step].tolist()}, which is not finite")
    if isinstance(controls, BoxControls):
        low, high = np.array(controls.low), np.array(controls.high)
        outside = np.maximum(low - flat, flat - high) > ROUNDING * (high - low)
        return np.clip(flat, low, high).astype(controls.dtype).reshape(-1, *controls.shape), int(outside.sum())
    last = controls.start + controls.n - 1
    for step in np.flatnonzero((flat != np.floor(flat)) | (flat < controls.start) | (flat > last)):
        what = f"the control is {flat[step, 0]:g}, but the task takes whole numbers, {controls.start} to {last}"
        raise BadInput(f"{where}, step {step}: {what}")
    return flat[:, 0].astype(controls.dtype), 0


# Goals in hindsight


def _stretch(given: Any, scenes: Sequence[Scene], what: str) -> Stretch:
    """Return a stretch as a user's function gave it; `BadInput` where that makes no sense."""
    try:
        start, end, wanted = given
        start, end, parts = int(start), int(end), list(wanted)
    except (TypeError, ValueError):
        form = "start, end, and scenes or facts"
        raise BadInput(f"{what} must give {form}, but gave {type(given).__name__} {given!r:.60}") from None
    if not 0 <= start < end < len(scenes):
        raise BadInput(f"{what} gave timesteps {start} to {end}, but the episode has 0 to {len(scenes) - 1}")
    if parts and all(isinstance(part, Scene) for part in parts):
        if len(parts) != end - start + 1:
            raise BadInput(f"{what} gave {len(parts)} scenes for timesteps {start} to {end}, both included")
        return Stretch(start, end, parts)
    if not all(isinstance(part, Atom) for part in parts):
        raise BadInput(f"{what} gave neither scenes nor facts, but {parts[0]!r:.60}")
    return Stretch(start, end, scenes[start : end + 1], frozenset(parts))


def _final(facts: Sequence[Facts]) -> Iterator[tuple[int, int, Facts]]:
    """Give all of an episode, in which the facts that hold at its end were wanted."""
    yield 0, len(facts) - 1, facts[-1]


def _each(facts: Sequence[Facts]) -> Iterator[tuple[int, int, Facts]]:
    """Cut an episode wherever facts come true, and stay true for some steps: just these were wanted.

    What comes after the last of them is left out.
    """
    start = 0
    for now in range(1, len(facts)):
        achieved = frozenset.intersection(*facts[now : now + SETTLING + 1]) - facts[now - 1]
        if achieved:
            yield start, now, achieved
            start = now


BY_FACTS = {"final": _final, "each": _each}  # as the command line names them
