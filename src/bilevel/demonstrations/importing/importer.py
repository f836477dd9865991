"""The importer: recorded episodes in, a data set out, whole or not at all, and a report."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from bilevel.demonstrations.collect import collection_settings
from bilevel.demonstrations.dataset import (
    DOMAIN,
    MANIFEST,
    MOST_EPISODES,
    CollectionSettings,
    Demonstrations,
    ImportReport,
    Manifest,
    Source,
    file_name,
    make_entry,
    write_manifest,
)
from bilevel.demonstrations.demonstration import Demonstration, encode_demonstration
from bilevel.demonstrations.importing.controls import RECORDED, UNKNOWN, ControlReader, ControlSource
from bilevel.demonstrations.importing.conversion import Conversion, Dropped
from bilevel.demonstrations.importing.hindsight import BY_FACTS, Hindsight
from bilevel.demonstrations.importing.recorded import OwnExport, RecordedEpisode, Recordings
from bilevel.demonstrations.importing.timing import Combine, every
from bilevel.files import new_folder, write_atomically
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.controls import Control, Controls
from bilevel.tasks.registry import find_function, registered_task
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import OBJECTS, Expert, Task
from bilevel.versions import versions

EXPERT = "expert"
GOAL_SEEDS = range(5)  # of environments that are asked which predicates a goal has

Format = Literal["npz", "minari", "lerobot", "robomimic"]
MINARI_NAME = re.compile(r"([\w-]+/)*[\w-]+-v\d+")
HDF5 = (".hdf5", ".h5")


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
    - `demonstrator`: only the episodes of these.
    - `keep_failed`: keep failed episodes, up to where the most of the goal was achieved, with that as their goal.
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
    demonstrator: Sequence[str] = ()
    keep_failed: bool = False
    clip: bool = False
    objects: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def words(self) -> list[str]:
        """Return these options as words of the command `bilevel import`."""
        words: list[str] = []
        for name in ("perceive", "hindsight", "controls_from", "rate", "recorded_rate", "objects"):
            value = getattr(self, name)
            text = f"{value.__module__}:{value.__qualname__}" if callable(value) else str(value)
            words += [] if value is None else [f"--{name.replace('_', '-')}", text]
        words += [] if self.combine == "mean" else ["--combine", self.combine]
        words += [f"--{name.replace('_', '-')}" for name in ("clip", "keep_failed") if getattr(self, name)]
        words += ["--demonstrator", *self.demonstrator] if self.demonstrator else []
        words += (
            ["--env-args", *(f"{name}={value}" for name, value in self.arguments.items())] if self.arguments else []
        )
        return words


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
    `ImportOptions`. What we exported ourselves says which task it is of. Afterwards the folder is there and whole or,
    with `BadInput` or an interruption, not there; the `report` of the demonstrations says what became of each episode.

        data = import_demonstrations("play.npz", task, "build/cubes", perceive=from_vector)
    """
    recordings = source if isinstance(source, Recordings) else read_recordings(str(source), format, mask)
    given = ImportOptions(**options)
    words = given.words() + (["--mask", mask] if mask else [])
    importer = _Importer(recordings, task or _own_task(recordings), given)
    if output is None:
        items = tuple(importer.demonstrations(callback))
        importer.finish()
        data = importer.in_memory(items)
    else:
        with new_folder(Path(output)) as folder:
            importer.write(folder, words, callback)
        data = Demonstrations.read(output)
    data.report = importer.report
    return data


# Formats


def read_recordings(source: str, format: Format | None = None, mask: str | None = None) -> Recordings:
    """Return the episodes at a path, or in Minari's data set of that name, in the format that is seen or given."""
    chosen = format or recognise(source)
    if mask is not None and chosen != "robomimic":
        raise BadInput(f"--mask is for robomimic's files, and {source} is read as {chosen}")
    if chosen == "minari":
        from bilevel.demonstrations.importing.minari_reader import read_minari

        return read_minari(source)
    if chosen == "lerobot":
        from bilevel.demonstrations.importing.lerobot_reader import read_lerobot

        return read_lerobot(Path(source))
    if chosen == "robomimic":
        from bilevel.demonstrations.importing.robomimic_reader import read_robomimic

        return read_robomimic(Path(source), mask)
    from bilevel.demonstrations.importing.array_reader import read_npz

    return read_npz(Path(source))


def recognise(source: str) -> Format:
    """Return the format of what is at a path, or of what a name is one of; `BadInput` where that cannot be seen."""
    path = Path(source)
    if (path / MANIFEST).is_file():
        raise BadInput(f"{source}: is a data set of demonstrations already; use it as it is")
    if path.is_dir():
        if (path / "data" / "metadata.json").is_file():
            return "minari"
        if (path / "meta" / "info.json").is_file():
            return "lerobot"
        if any(path.glob("*.npz")):
            return "npz"
    elif path.suffix == ".npz":
        return "npz"
    elif path.suffix in HDF5:
        return "robomimic"
    elif not path.exists() and MINARI_NAME.fullmatch(source):
        return "minari"
    what = "its format is none that is known here" if path.exists() else "there is no such file, folder or data set"
    raise BadInput(f"{source}: {what}; formats: {', '.join(get_args(Format))}")


# One import


class _Importer:
    """One import: what the task needs to know, and the report."""

    def __init__(self, recordings: Recordings, task: Task, options: ImportOptions) -> None:
        self.recordings, self.task, self.options = recordings, task, options
        self.settings = _settings(recordings.own, task, options)
        with closing(SceneEnv(task, **self.settings.arguments)) as env:
            self.controls = env.controls
            hindsight = self._hindsight(env)
        if recordings.own:
            _require_fitting(recordings.own, task, self.controls, options)
        rate = recordings.rate if options.recorded_rate is None else options.recorded_rate
        k = every(rate, options.rate)
        self.report = ImportReport(rate=None if rate is None else rate / k, notes=list(recordings.notes))
        self.reader = ControlReader(self.controls, options.clip)
        self.conversion = Conversion(
            task,
            self._control_source(),
            _function(options.perceive),
            hindsight,
            options.keep_failed,
            k,
            options.combine,
        )

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

    def _control_source(self) -> ControlSource:
        """Return where controls come from; the expert can be asked if it needs no environment to look into."""
        wanted, expert = self.options.controls_from, self.task.expert
        control = expert.control if isinstance(expert, Expert) else None
        if wanted != EXPERT:
            return ControlSource(self.reader, _function(wanted), control, still=self.task.still)
        if control is None:
            reason = "an Expert with a `control`, which is not made for one environment"
            raise BadInput(f"--controls-from {EXPERT}: the task '{self.task.name}' lacks {reason}")
        return ControlSource(self.reader, None, control, True, self.task.still)

    def demonstrations(self, callback: Callback) -> Iterator[Demonstration]:
        """Give what is kept, one by one, and note in the report what is not."""
        for recorded in self.recordings.episodes:
            self.report.read += 1
            for found in self._found(recorded):
                if isinstance(found, Dropped):
                    self.report.dropped[str(found)] += 1
                    continue
                self._note(found)
                yield found
            callback(Progress("importing", self.report.read, self.recordings.total))

    def _found(self, recorded: RecordedEpisode | Demonstration) -> Iterator[Demonstration | Dropped]:
        wanted = self.options.demonstrator
        if wanted and recorded.demonstrator not in wanted:
            return iter([Dropped("of other demonstrators")])
        if isinstance(recorded, Demonstration):
            self.report.controls[RECORDED if recorded.has_controls else UNKNOWN] += 1
            return iter([recorded])
        self.report.controls[self.conversion.controls.origin(recorded.controls)] += 1
        return self.conversion.demonstrations(recorded)

    def _note(self, kept: Demonstration) -> None:
        self.report.kept += 1
        self.report.steps += kept.steps
        self.report.demonstrators[kept.demonstrator] += 1
        achieved = kept.goals[-1][1] <= kept.states[-1][1]
        self.report.unachieved += kept.outcome == SUCCESS and not achieved
        if self.report.kept > MOST_EPISODES:
            raise BadInput(f"there are more than {MOST_EPISODES} demonstrations, the most that a data set holds")

    def finish(self) -> None:
        """Complete the report; `BadInput` where controls are out of bounds, or nothing is left."""
        self.reader.require_within_bounds()
        notes = self.report.notes
        notes += self.conversion.notes
        if self.reader.outside:
            notes.append(f"{self.reader.outside} of {self.reader.total} numbers of controls were clipped")
        if self.report.unachieved:
            what = f"{self.report.unachieved} of {self.report.kept} were recorded as successes"
            notes.append(f"{what}, but the task's goal does not hold at their end: do label and goal fit?")
        if not self.report.kept:
            reasons = ", ".join(f"{number} {reason}" for reason, number in self.report.dropped.most_common())
            what = f"of {self.report.read} episodes none can be used" if self.report.read else "there is no episode"
            raise BadInput(f"{self.recordings.place}: {what}{': ' if reasons else ''}{reasons}")

    def in_memory(self, items: Sequence[Demonstration]) -> Demonstrations:
        """Return what was kept as demonstrations without a folder."""
        return Demonstrations(
            items,
            task=self.task.name,
            spec=self.task.spec,
            domain=self.task.domain,
            controls=self.controls,
            arguments=self.settings.arguments,
        )

    def write(self, folder: Path, words: Sequence[str], callback: Callback) -> None:
        """Write what is kept as a data set, whose manifest says where it comes from."""
        entries = []
        for index, demonstration in enumerate(self.demonstrations(callback)):
            data = encode_demonstration(demonstration)
            write_atomically(folder / file_name(index), data)
            entries.append(make_entry(index, demonstration, data))
        self.finish()
        write_atomically(folder / DOMAIN, write_domain(self.task.domain))
        report, recordings = self.report, self.recordings
        options = tuple(map(shlex.quote, words))
        manifest = Manifest(
            settings=self.settings,
            episodes=len(entries),
            complete=True,
            spec_json=self.task.spec.as_json(),
            controls=self.controls,
            versions=versions(self.task.packages),
            files=tuple(entries),
            source=Source(recordings.format, recordings.place, options, report.rate, report.read, dict(report.dropped)),
        )
        write_manifest(folder, manifest)


def _function(given: Callable[..., Any] | str | None) -> Any:
    """Return a function that is given itself, or as "file.py:function"."""
    return find_function(given) if isinstance(given, str) else given


def _own_task(recordings: Recordings) -> Task:
    """Return the task that an export of ours is of."""
    settings = recordings.own.settings if recordings.own else None
    if settings is None:
        raise BadInput("say what was demonstrated: --task file.py:task, or the name of a task")
    task = registered_task(settings.task)
    if task is None:
        what = f"is of the task '{settings.task}', which is not registered here"
        raise BadInput(f"{recordings.place} {what}; add --task file.py:task")
    return task


def _settings(own: OwnExport | None, task: Task, options: ImportOptions) -> CollectionSettings:
    """Return the settings of an export of ours, or else those of the environment that the options describe."""
    known = own.settings if own else None
    given = {**options.arguments, **({} if options.objects is None else {OBJECTS: options.objects})}
    if known is not None and not given:
        return known
    usual = {OBJECTS: min(3, task.max_objects or 3)}
    return collection_settings(task, **{**usual, **(known.arguments if known else {}), **given})


def _require_fitting(own: OwnExport, task: Task, controls: Controls, options: ImportOptions) -> None:
    """`BadInput` where an export of ours is of another task, or is to be understood otherwise than it is."""
    what = "spec" if own.spec != task.spec else "action space" if not own.controls.is_like(controls) else None
    if what:
        raise BadInput(
            f"the recordings are an export of demonstrations with another {what} than the task '{task.name}'"
        )
    for name in ("perceive", "hindsight", "controls_from", "rate"):
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise BadInput(f"the recordings are an export of demonstrations, to be taken as they are: no {option}")
