"""The importer: recorded episodes in, a data set out, whole or not at all, and a report."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bilevel.demonstrations.demonstration import Demonstration, encode_demonstration
from bilevel.demonstrations.importing.controls import RECORDED, UNKNOWN, ControlReader, ControlSource
from bilevel.demonstrations.importing.conversion import Conversion, Dropped
from bilevel.demonstrations.importing.hindsight import BY_FACTS, Hindsight
from bilevel.demonstrations.importing.recorded import OwnExport, RecordedEpisode, Recordings
from bilevel.demonstrations.importing.timing import Combine, every
from bilevel.demonstrations.manifest import (
    DOMAIN,
    MOST_EPISODES,
    CollectionSettings,
    Entry,
    Manifest,
    Source,
    file_name,
    make_entry,
    write_manifest,
)
from bilevel.demonstrations.recording import collection_settings
from bilevel.files import alone_in, write_atomically
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.controls import Control, Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import OBJECTS, Expert, Task
from bilevel.versions import versions

EXPERT = "expert"
GOAL_SEEDS = range(5)  # of environments that are asked which predicates a goal has


@dataclass(frozen=True)
class ImportOptions:
    """How recorded episodes are to be understood.

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

    perceive: Callable[..., Scene] | None = None
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
    words: tuple[str, ...] = ()  # these options as words of a command, for the manifest


@dataclass
class ImportReport:
    """What became of the episodes that were read."""

    read: int = 0
    kept: int = 0  # demonstrations: hindsight may find several in an episode
    steps: int = 0
    rate: float | None = None
    controls: Counter[str] = field(default_factory=Counter)  # of episodes, by where they come from
    dropped: Counter[str] = field(default_factory=Counter)  # by the reason
    unachieved: int = 0  # demonstrations that are said to be successes, though the task's goal does not hold at the end
    demonstrators: Counter[str] = field(default_factory=Counter)  # of what was kept
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Imported:
    """What was imported: in memory, or else in a folder."""

    report: ImportReport
    controls: Controls
    settings: CollectionSettings
    items: tuple[Demonstration, ...] = ()


def import_recordings(
    recordings: Recordings,
    task: Task,
    output: Path | None = None,
    options: ImportOptions | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> Imported:
    """Turn recorded episodes into demonstrations of a task, in memory, or in a new folder.

    Afterwards the folder is there and whole or, with `BadInput` or an interruption, not there. `callback` is told how
    many episodes have been read, and how many there are.
    """
    importer = _Importer(recordings, task, options or ImportOptions())
    kept = importer.demonstrations(callback)
    if output is None:
        items = tuple(kept)
        importer.finish()
        return Imported(importer.report, importer.controls, importer.settings, items)
    with _appearing(output) as folder:
        entries = []
        for index, demonstration in enumerate(kept):
            data = encode_demonstration(demonstration)
            write_atomically(folder / file_name(index), data)
            entries.append(make_entry(index, demonstration, data))
        importer.finish()
        write_atomically(folder / DOMAIN, write_domain(task.domain))
        write_manifest(folder, importer.manifest(tuple(entries)))
    return Imported(importer.report, importer.controls, importer.settings)


@contextmanager
def _appearing(output: Path) -> Iterator[Path]:
    """A folder to be written to, which becomes the output if all goes well; else it goes."""
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise BadInput(f"{output}: there is something already; choose another --output or remove it")
    unfinished = output.absolute().with_name(f".{output.name}.importing")
    with alone_in(unfinished, "importing"):
        try:
            for leftover in unfinished.iterdir():
                leftover.unlink()
            yield unfinished
            os.replace(unfinished, output)
        except OSError as error:
            raise BadInput(f"{output}: cannot be written: {error.strerror}") from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


class _Importer:
    """One import: what the task needs to know, and the report."""

    def __init__(self, recordings: Recordings, task: Task, options: ImportOptions) -> None:
        self.recordings, self.task, self.options = recordings, task, options
        own = recordings.own
        self.settings = _settings(own, task, options)
        with closing(SceneEnv(task, **self.settings.arguments)) as env:
            self.controls = env.controls
            hindsight = self._hindsight(env)
        if own:
            _require_fitting(own, task, self.controls, options)
        rate = recordings.rate if options.recorded_rate is None else options.recorded_rate
        k = every(rate, options.rate)
        self.report = ImportReport(rate=None if rate is None else rate / k, notes=list(recordings.notes))
        self.reader = ControlReader(self.controls, options.clip)
        self.conversion = Conversion(
            task, self._control_source(), options.perceive, hindsight, options.keep_failed, k, options.combine
        )

    def _hindsight(self, env: SceneEnv) -> Hindsight | None:
        wanted = self.options.hindsight
        if wanted is None or callable(wanted):
            return wanted
        if wanted not in BY_FACTS:
            raise BadInput(f"--hindsight takes {', '.join(BY_FACTS)} or file.py:function, not '{wanted}'")
        goals = (env.labels.goal(env.reset(seed)) for seed in GOAL_SEEDS)
        predicates = frozenset(fact.predicate for goal in goals for fact in goal)
        if not predicates:
            raise BadInput(f"--hindsight {wanted} needs goals: goal(scene) gave no facts in the task's environment")
        return BY_FACTS[wanted](self.task.labels, predicates)

    def _control_source(self) -> ControlSource:
        """The expert can be asked if it knows by the scene alone what to do: there is no environment to look into."""
        wanted, expert = self.options.controls_from, self.task.expert
        control = expert.control if isinstance(expert, Expert) else None
        if callable(wanted) or wanted is None:
            return ControlSource(self.reader, wanted, control, still=self.task.still)
        if wanted != EXPERT:
            raise BadInput(f"--controls-from takes {EXPERT} or file.py:function, not '{wanted}'")
        if control is None:
            reason = "an Expert with a `control`, which is not made for one environment"
            raise BadInput(f"--controls-from {EXPERT}: the task '{self.task.name}' lacks {reason}")
        return ControlSource(self.reader, None, control, True, self.task.still)

    def demonstrations(self, callback: Callable[[int, int], None] | None) -> Iterator[Demonstration]:
        """Give what is kept, one by one, and note in the report what is not."""
        for recorded in self.recordings.episodes:
            self.report.read += 1
            for found in self._found(recorded):
                if isinstance(found, Dropped):
                    self.report.dropped[str(found)] += 1
                    continue
                self._note(found)
                yield found
            if callback:
                callback(self.report.read, self.recordings.total)

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

    def manifest(self, entries: tuple[Entry, ...]) -> Manifest:
        """Return what the data set says of itself."""
        report, recordings = self.report, self.recordings
        return Manifest(
            settings=self.settings,
            episodes=len(entries),
            complete=True,
            spec_json=self.task.spec.as_json(),
            controls=self.controls,
            versions=versions(self.task.packages),
            files=entries,
            source=Source(
                recordings.format,
                recordings.place,
                self.options.words,
                report.rate,
                report.read,
                dict(report.dropped),
            ),
        )


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
