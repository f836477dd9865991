"""The folder of an experiment, and the work in it: what is not there yet is made, in parallel.

All that is measured is a list of cells, each of which is a file. What is in a file depends on its cell and the settings
alone, so it does not matter who makes it, or when: a run makes what is missing, one that was stopped or killed goes on,
and several may share a folder, on one machine or on many.

| in the folder | what |
|---|---|
| experiment.json | the settings, which all that is in the folder has in common |
| runs/… | what was asked for, when, and on which machine |
| demonstrations/TASK | data sets |
| policies/TASK/ROW-SEED, costs/… | learned policies, and what learning them took |
| episodes/TASK/ROW-SEED/NN.jsonl | records of episodes with NN objects |
| symbols/TASK/ROW-SEED/NN.jsonl | the same of symbols alone |
| films/TASK.mp4, films/TASK.json | an episode to look at |
| findings.jsonl, report.html | what was found, in a line each, and the page about it |
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from filelock import FileLock, Timeout

from bilevel.experiments.evaluate import evaluate
from bilevel.experiments.rows import OURS, PAPER, ROWS, Row
from bilevel.files import folder_lock, write_atomically
from bilevel.json_files import Count, decode, encode, read_bytes
from bilevel.methods.methods import METHODS, RunnablePolicy, find_policy
from bilevel.parallel import WorkerDied, parallel
from bilevel.policies.folder import POLICY, read_policy
from bilevel.progress import Callback, Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS

EXPERIMENT, FINDINGS, REPORT = "experiment.json", "findings.jsonl", "report.html"
MOST_KILLED = 3  # workers, in a phase, before it is given up

Number = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e6)]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all work in a folder has in common, so that its results go together."""

    demonstrations: Annotated[int, msgspec.Meta(ge=2, le=10**6)] = 200
    shown: Number = 3  # objects in each of them
    epochs: Number = 200  # of cloning in the paper's setting, whatever is learned
    updates: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0  # the same, over all epochs; 0 for one pass an epoch
    learning_rate: Annotated[float, msgspec.Meta(gt=0, le=1e3)] = 1e-3  # at first, of all networks
    dagger_episodes: Number = 60  # in each round, whatever is learned with DAgger
    planning_seconds: Seconds = 100.0  # for each plan
    quick: bool = False  # a smaller version, to be labelled as such


QUICK = Settings(demonstrations=50, epochs=20, dagger_episodes=20, quick=True)


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """Episodes of a row on a task, with one seed of learning and one number of objects, for one purpose."""

    kind: str  # the purpose: episodes, symbols or films
    task: str
    row: str
    seed: Count
    objects: Count
    episodes: Count = 1
    axis: str = ""  # of the hard suite, with the value on it
    value: float = 0.0
    place: Count | None = None  # the number of objects, where the axis is not about it
    noise: float = 0.0
    arguments: dict[str, Any] = {}
    perception: str = ""
    demonstrations: Count | None = None  # that the policy learns from, where that is not the usual number
    shown: Count | None = None  # objects in each of them, likewise

    @property
    def learned(self) -> Row | None:
        """The row whose policy is run, if one is needed: what plans on symbols alone does without."""
        row = ROWS[self.row]
        if not row.learned or (self.kind == "symbols" and METHODS[row.method].planners):
            return None
        return ROWS[row.learned]

    @property
    def policy(self) -> str:
        """The folder of that policy, below those of policies and of costs."""
        return f"{self.task}/{self._seeded(self.learned.name if self.learned else self.row)}"

    @property
    def data(self) -> str:
        """The folder of the data set that the policy is learned from."""
        return f"demonstrations/{self.task}{f'-shown{self.shown}' if self.shown else ''}"

    @property
    def file(self) -> str:
        """The file of its records, or of its film's timeline."""
        if self.kind == "films":
            return f"films/{self.task}.json"
        condition = f"-{self.axis}-{self.value:g}" if self.noise or self.arguments or self.perception else ""
        return f"{self.kind}/{self.task}/{self._seeded(self.row)}/{self.objects:02d}{condition}.jsonl"

    @property
    def with_kept_network(self) -> Cell:
        """The same for the policy whose network is kept, where rules alone are learned."""
        kept = self.learned.network if self.learned else None
        return msgspec.structs.replace(self, row=kept) if kept else self

    def _seeded(self, row: str) -> str:
        number = f"-{self.demonstrations}" if self.demonstrations else ""
        return f"{row}{number}{f'-shown{self.shown}' if self.shown else ''}-{self.seed}"


class Run(msgspec.Struct, frozen=True):
    """What was asked for, when, and on which machine."""

    command: str
    date: str
    machine: dict[str, Any]
    cells: Sequence[Cell]


Make = Callable[[Path, Settings, Cell], None]  # makes the file of a cell in a folder


# The folder


def choose_settings(usual: Settings, given: Mapping[str, float | None]) -> Settings:
    """Return the usual settings with those that are given; `BadInput` for one that makes no sense."""
    values = {**msgspec.structs.asdict(usual), **{name: value for name, value in given.items() if value is not None}}
    try:
        return msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise BadInput(f"settings of the experiment: {error}") from None


def open_folder(path: Path, settings: Settings, cells: Sequence[Cell]) -> None:
    """Begin the folder of an experiment, or take one up, and note what is asked for and who asks.

    `BadInput` for a folder with other settings, or with other things in it.
    """
    with folder_lock(path, "beginning an experiment", patience=10.0):
        if not (path / EXPERIMENT).exists():
            if any(not other.name.startswith(".") for other in path.iterdir()):
                raise BadInput(f"{path}: holds other files; choose a new folder as --output")
            write_atomically(path / EXPERIMENT, encode(settings, indent=1))
    if (known := read_settings(path)) != settings:
        was, now = msgspec.structs.asdict(known), msgspec.structs.asdict(settings)
        different = [f"{name.replace('_', ' ')} {was[name]}, not {now[name]}" for name in was if was[name] != now[name]]
        raise BadInput(f"{path}: was begun with {', '.join(different)}; choose another --output")
    date, command = datetime.now(timezone.utc).date().isoformat(), shlex.join(["bilevel", *sys.argv[1:]])
    run = Run(command, date, machine(), cells)
    write_atomically(path / "runs" / f"{time.time_ns()}-{os.getpid()}.json", encode(run, indent=0))


def read_settings(folder: Path) -> Settings:
    """Return what the work in a folder has in common."""
    path = folder / EXPERIMENT
    if not path.exists():
        raise BadInput(f"{folder}: no experiment: there is no {EXPERIMENT} in it; `bilevel reproduce` makes one")
    return decode(read_bytes(path), Settings, f"{path}: not what `bilevel reproduce` wrote there")


def read_runs(folder: Path) -> list[Run]:
    """Return all runs of an experiment that there were in a folder, the latest last."""
    return [decode(read_bytes(path), Run, path) for path in sorted((folder / "runs").glob("*.json"))]


def machine() -> dict[str, str | int | None]:
    """Return what there is to say about this machine."""
    cpu = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        cpu = names[0] if names else cpu
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system()}


# The work


@dataclass
class Experiment:
    """A run of an experiment: how it works in its folder, and how far it has come."""

    folder: Path
    settings: Settings
    workers: int | None
    cluster: str | None
    callback: Callback
    done: int = 0  # files that this run has made
    there: int = 0  # files that were there, or that others have made
    failed: dict[str, str] = field(default_factory=dict)  # files that could not be made, with the reasons

    def learn(self, cells: Iterable[Cell]) -> None:
        """Learn the policies that these cells run, from data sets to policies that keep the network of another."""
        wanted = {f"policies/{cell.policy}/{POLICY}": cell for cell in cells if cell.learned}
        missing = {file: cell for file, cell in wanted.items() if not (self.folder / file).exists()}
        rules = {file: cell for file, cell in missing.items() if cell.learned and cell.learned.network}
        kept = [cell.with_kept_network for cell in rules.values()]
        networks = {f"policies/{cell.policy}/{POLICY}": cell for cell in [*kept, *missing.values()]}
        self.make("data sets", collect_data, {f"{cell.data}.complete": cell for cell in networks.values()})
        self.make("networks", learn_policy, {file: cell for file, cell in networks.items() if file not in rules})
        self.make("rules", learn_policy, rules)

    def make(self, phase: str, function: Make, cells: Mapping[str, Cell]) -> None:
        """Make the files of these cells that are missing; what fails is tried twice, then listed."""
        missing = {file: cell for file, cell in cells.items() if not is_made(self.folder / file, cell)}
        self.there += len(cells) - len(missing)
        self.callback(Progress(phase, len(cells) - len(missing), len(cells)))
        for patience in (0.0, -1.0):  # at first, what another run is at is left to it; then it is waited for
            make = partial(make_file, self.folder, self.settings, function, patience)
            for file, is_mine, error in self._results(make, list(missing.items())):
                if error is None:
                    del missing[file]
                    self.failed.pop(file, None)
                    self.done, self.there = self.done + is_mine, self.there + (not is_mine)
                elif error:
                    self.failed[file] = error
                made = len(cells) - len(missing)
                self.callback(Progress(phase, made, len(cells), {"failed": len(self.failed)}))

    def _results(
        self, make: Callable[[tuple[str, Cell]], tuple[str, bool, str | None]], cells: list[tuple[str, Cell]]
    ) -> Iterator[tuple[str, bool, str | None]]:
        """Yield what is returned for each cell; if a worker is killed, go on with the cells that are left."""
        left = dict(cells)
        for killed in range(MOST_KILLED + 1):
            try:
                with closing(parallel(make, left.items(), self.workers, self.cluster)) as results:
                    for result in results:
                        del left[result[0]]
                        yield result
                return
            except WorkerDied:  # noqa: PERF203
                if killed == MOST_KILLED:
                    raise


def is_made(path: Path, cell: Cell) -> bool:
    """Return whether a file is there, with all records that it should have."""
    return path.exists() and (path.suffix != ".jsonl" or path.read_bytes().count(b"\n") >= cell.episodes)


def make_file(
    folder: Path, settings: Settings, make: Make, patience: float, item: tuple[str, Cell]
) -> tuple[str, bool, str | None]:
    """Make a file, wherever this is done; return its name, whether it was made here, and the error if it was not.

    While another run is at it, wait so many seconds, or for any time if they are negative; then the error is empty.
    """
    file, cell = item
    name = file.replace("/", "+")
    failure = folder / "failures" / f"{name}.txt"
    (folder / "locks").mkdir(exist_ok=True)
    try:
        with FileLock(folder / "locks" / name, timeout=patience):
            if is_made(folder / file, cell):
                return file, False, None
            try:
                make(folder, settings, cell)
            except Exception as error:  # of one file, which must not end the others
                write_atomically(failure, traceback.format_exc())
                return file, True, " ".join(str(error).split()) or type(error).__name__
            failure.unlink(missing_ok=True)
            return file, True, None
    except Timeout:
        return file, False, ""


# What is made


def collect_data(folder: Path, settings: Settings, cell: Cell) -> None:
    """Collect the demonstrations that the policy of a cell is learned from."""
    from bilevel.demonstrations.collect import collect

    shown = cell.shown or settings.shown
    collect(TASKS[cell.task], folder / cell.data, objects=shown, episodes=settings.demonstrations)
    write_atomically(folder / f"{cell.data}.complete", "")


def learn_policy(folder: Path, settings: Settings, cell: Cell) -> None:
    """Learn the policy of a cell, and note what that takes; where it was begun before, that is unknown."""
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.learning.learn import learn

    row, output = cell.learned, folder / "policies" / cell.policy
    assert row is not None
    is_new, began = not output.exists(), time.monotonic()
    demonstrations = Demonstrations.read(folder / cell.data)
    if cell.demonstrations:
        demonstrations = demonstrations.first(cell.demonstrations)
    learned = learn(
        demonstrations,
        output,
        task=TASKS[cell.task],
        method=row.method,
        preset=row.preset or OURS,
        seed=cell.seed,
        config=learning_config(settings, row),
        network=read_policy(folder / "policies" / cell.with_kept_network.policy) if row.network else None,
    )
    if is_new and not row.network:
        seconds, device = round(time.monotonic() - began, 1), learned.card.summary["device"]
        cost = {"seconds": seconds, "device": device, "machine": machine()}
        write_atomically(folder / "costs" / f"{cell.policy}.json", encode(cost, indent=0))


def learning_config(settings: Settings, row: Row) -> Any:
    """Return how the policy of a row is learned: BISON's and its rivals' at one rate, as many epochs and rollouts."""
    from bilevel.learning.learn import PRESETS

    config, change = PRESETS[row.preset or OURS], msgspec.structs.replace
    for name, value in row.config.items():
        part, _, setting = name.rpartition(".")
        changed = {part: change(getattr(config, part), **{setting: value})} if part else {setting: value}
        config = change(config, **changed)
    training = change(config.training, learning_rate=settings.learning_rate)
    if row.preset == PAPER:
        return change(config, training=change(training, epochs=settings.epochs, updates=settings.updates))
    return change(config, training=training, dagger=change(config.dagger, episodes=settings.dagger_episodes))


def load_row(folder: Path, settings: Settings, cell: Cell) -> RunnablePolicy:
    """Return what is run for a cell; its policy is named as the folder knows it, wherever that is."""
    method, options = METHODS[ROWS[cell.row].method], dict(ROWS[cell.row].options)
    policy = folder / "policies" / cell.policy if cell.learned else None
    if method.planners:
        options["planning_seconds"] = settings.planning_seconds
    if policy and method.training is None:  # a method that is not learned only sees as the policy does
        return find_policy(**{**options, "estimation": str(policy)})
    found = find_policy(policy, **options)
    return replace(found, policy=f"policies/{cell.policy}") if policy else found


def run_episodes(folder: Path, settings: Settings, cell: Cell) -> None:
    """Run the episodes of a cell that are not in its file yet."""
    run_policy(load_row(folder, settings, cell), folder, cell)


def run_policy(policy: RunnablePolicy, folder: Path, cell: Cell) -> None:
    """Evaluate a policy as a cell says, into its file."""
    evaluate(
        policy,
        TASKS[cell.task],
        objects=[cell.objects],
        episodes=cell.episodes,
        seed=cell.seed,
        noise=cell.noise,
        perception=cell.perception,
        output=folder / cell.file,
        **cell.arguments,
    )
