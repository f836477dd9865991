"""The jobs of an experiment, each of which makes a file of its folder, and how they are done in parallel.

What a job makes depends on its name and the settings alone, so it does not matter who does it, or when: a run does what
is not there yet, one that was stopped or killed goes on, and several may share a folder, on one machine or on many. A
phase is a list of jobs that do not need each other.

| in the folder | what |
|---|---|
| experiment.json | the settings, which all that is in the folder has in common |
| demonstrations/TASK | data sets |
| policies/TASK/ROW-SEED, costs/… | learned policies, and what learning them took |
| episodes/TASK/ROW-SEED/NN.jsonl | records of episodes with NN objects |
| memory/…, scaling/…, symbols/…, films/… | what else is measured, and shown |
| findings.jsonl, report.html | what was found, in a line each, and the page about it |
"""

from __future__ import annotations

import os
import pickle
import shlex
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from filelock import FileLock, Timeout

from bilevel.experiments.evaluate import evaluate, forget_peak, own_peak
from bilevel.experiments.machines import machine
from bilevel.experiments.records import Record
from bilevel.experiments.rows import (
    OURS,
    PAPER,
    ROWS,
    WORLDS,
    Row,
)
from bilevel.files import folder_lock, write_atomically
from bilevel.json_files import decode, encode, read_bytes
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


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"dagger_episodes": "practice"}):
    """What all work in a folder has in common, so that its results go together."""

    demonstrations: Annotated[int, msgspec.Meta(ge=2, le=10**6)] = 200
    shown: Number = 3  # objects in each of them
    epochs: Number = 200  # of cloning in the paper's setting, whatever is learned
    updates: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0  # the same, over all epochs; 0 for one pass an epoch
    learning_rate: Annotated[float, msgspec.Meta(gt=0, le=1e3)] = 1e-3  # at first, of all networks
    dagger_episodes: Number = 60  # in each round, whatever is learned with DAgger
    planning_seconds: Seconds = 100.0  # for each plan
    lama_seconds: Seconds = 50.0  # for a large problem
    quick: bool = False  # a smaller version, to be labelled as such


QUICK = Settings(demonstrations=50, epochs=20, dagger_episodes=20, lama_seconds=10.0, quick=True)


@dataclass(frozen=True)
class Outcome:
    """How a run of an experiment went."""

    done: int  # jobs of this run
    there: int  # jobs that were done before, or by others
    failed: Mapping[str, str]  # jobs that failed twice, with the reasons
    left_out: Sequence[str]  # what was asked for and cannot be made, a line each
    report: Path | None


def choose_settings(usual: Settings, given: Mapping[str, float | None]) -> Settings:
    """Return the usual settings with those that are given; `BadInput` for one that makes no sense."""
    values = {**msgspec.structs.asdict(usual), **{name: value for name, value in given.items() if value is not None}}
    try:
        return msgspec.convert({"practice": values.pop("dagger_episodes"), **values}, Settings)
    except msgspec.ValidationError as error:
        raise BadInput(f"settings of the experiment: {error}") from None


def open_folder(path: Path, settings: Settings) -> Path:
    """Begin the folder of an experiment, or take one up; `BadInput` for another one, or with other things in it."""
    file = path / EXPERIMENT
    with folder_lock(path, "beginning an experiment", patience=10.0):
        if not file.exists():
            if any(not other.name.startswith(".") for other in path.iterdir()):
                raise BadInput(f"{path}: holds other files; choose a new folder as --output")
            write_atomically(file, encode(settings, indent=1))
    if (known := read_settings(path)) != settings:
        was, now = msgspec.structs.asdict(known), msgspec.structs.asdict(settings)
        different = [f"{name.replace('_', ' ')} {was[name]}, not {now[name]}" for name in was if was[name] != now[name]]
        raise BadInput(f"{path}: was begun with {', '.join(different)}; choose another --output")
    told = {
        "machine": machine(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "command": shlex.join(["bilevel", *sys.argv[1:]]),
    }
    write_atomically(path / "runs" / f"{time.time_ns()}-{os.getpid()}.json", encode(told, indent=0))
    return path


def read_settings(folder: Path) -> Settings:
    """Return what the work in a folder has in common."""
    path = folder / EXPERIMENT
    if not path.exists():
        raise BadInput(f"{folder}: no experiment: there is no {EXPERIMENT} in it; `bilevel reproduce` makes one")
    return decode(read_bytes(path), Settings, f"{path}: not what `bilevel reproduce` wrote there")


# Jobs and phases


class Job(NamedTuple):
    """A file of an experiment, and the function that makes it from the folder, the settings and a subject."""

    file: str
    make: Callable[[Path, Settings, Any], None]
    subject: Any

    def is_done(self, folder: Path) -> bool:
        """Return whether the file is there, and whole."""
        path = folder / self.file
        if isinstance(self.subject, Cell) and path.suffix == ".jsonl":
            return path.exists() and path.read_bytes().count(b"\n") >= self.subject.episodes
        return path.exists()


class Phase(NamedTuple):
    """Jobs that do not need each other, though maybe those of earlier phases."""

    name: str
    jobs: Sequence[Job]


def run_phases(
    folder: Path,
    settings: Settings,
    phases: Sequence[Phase],
    workers: int | None,
    cluster: str | None,
    callback: Callback,
) -> Outcome:
    """Do the jobs of the phases whose files are missing, phase by phase; what fails is tried twice, then listed."""
    done, there, failed = 0, 0, dict[str, str]()
    for name, jobs in phases:
        finished = {job.file for job in jobs if job.is_done(folder)}
        there += len(finished)
        callback(Progress(name, len(finished), len(jobs)))
        for patience in (0.0, -1.0):  # at first, what another run is at is left to it; then it is waited for
            missing = [job for job in jobs if job.file not in finished]
            for job, is_mine, error in _results(_Maker(folder, settings, patience), missing, workers, cluster):
                if error is None:
                    finished.add(job.file)
                    done, there = done + is_mine, there + (not is_mine)
                    failed.pop(job.file, None)
                elif error != TAKEN:
                    failed[job.file] = error
                callback(Progress(name, len(finished), len(jobs), {"failed": len(failed)}))
    return Outcome(done, there, failed, (), None)


def _results(
    maker: _Maker, jobs: Sequence[Job], workers: int | None, cluster: str | None
) -> Iterator[tuple[Job, bool, str | None]]:
    """Yield what the maker returns for each job; if a worker is killed, go on with the jobs that are left."""
    left = list(jobs)
    for killed in range(MOST_KILLED + 1):
        try:
            with closing(parallel(maker, left, workers and min(workers, len(left)), cluster)) as results:
                for result in results:
                    left.remove(result[0])
                    yield result
            return
        except WorkerDied:  # noqa: PERF203
            if killed == MOST_KILLED:
                raise


TAKEN = ""  # the error of a job that another run is at


@dataclass(frozen=True)
class _Maker:
    """Does jobs, wherever it is sent; returns the job, whether it was done here, and the error if it was not done."""

    folder: Path
    settings: Settings
    patience: float  # seconds to wait for another run that is at the same job; negative for any time

    def __call__(self, job: Job) -> tuple[Job, bool, str | None]:
        name = job.file.replace("/", "+")
        failure = self.folder / "failures" / f"{name}.txt"
        (self.folder / "locks").mkdir(exist_ok=True)
        try:
            with FileLock(self.folder / "locks" / name, timeout=self.patience):
                if job.is_done(self.folder):
                    return job, False, None
                try:
                    job.make(self.folder, self.settings, job.subject)
                except Exception as error:  # of one job, which must not end the others
                    write_atomically(failure, traceback.format_exc())
                    return job, True, " ".join(str(error).split()) or type(error).__name__
                failure.unlink(missing_ok=True)
                return job, True, None
        except Timeout:
            return job, False, TAKEN


# Policies and episodes


@dataclass(frozen=True)
class Network:
    """A policy that is learned: by the settings of a row, from the given demonstrations or else the usual ones."""

    task: str
    row: str
    seed: int
    demonstrations: int | None = None  # that it learns from
    shown: int | None = None  # objects in each of them

    @property
    def name(self) -> str:
        """Its folder, below those of policies and of costs."""
        number = f"-{self.demonstrations}" if self.demonstrations else ""
        return f"{self.task}/{self.row}{number}{f'-shown{self.shown}' if self.shown else ''}-{self.seed}"

    @property
    def data(self) -> str:
        """The folder of its data set."""
        world = ROWS[self.row].world
        shown = f"-shown{self.shown}" if self.shown else ""
        return f"demonstrations/{self.task}{shown}{f'-{world}' if world else ''}"

    @property
    def kept(self) -> Network | None:
        """The policy whose network is kept, where rules alone are learned."""
        other = ROWS[self.row].network
        return replace(self, row=other) if other else None


@dataclass(frozen=True)
class Cell:
    """Episodes of a row on a task with one number of objects, maybe under a condition that has a name."""

    task: str
    row: str
    seed: int
    objects: int
    episodes: int
    condition: str = ""
    noise: float = 0.0
    arguments: tuple[tuple[str, Any], ...] = ()
    perception: str = ""
    demonstrations: int | None = None  # that its policy learns from, where that is not the usual number
    shown: int | None = None

    @property
    def network(self) -> Network | None:
        """The policy that is run, if it is learned."""
        learned = ROWS[self.row].learned
        return Network(self.task, learned, self.seed, self.demonstrations, self.shown) if learned else None

    @property
    def file(self) -> str:
        """The file of its records."""
        where = Network(self.task, self.row, self.seed, self.demonstrations, self.shown).name
        return f"episodes/{where}/{self.objects:02d}{f'-{self.condition}' if self.condition else ''}.jsonl"


def learning_phases(folder: Path, networks: Iterable[Network | None]) -> list[Phase]:
    """Return the phases that learn these policies, from data sets to policies that keep the network of another."""
    wanted = dict.fromkeys(network for network in networks if network)
    kept = dict.fromkeys(network.kept for network in wanted if network.kept)
    first = [network for network in {**kept, **wanted} if not network.kept]
    rules = [network for network in wanted if network.kept]
    data = {
        network.data: Job(f"{network.data}.complete", collect_data, network)
        for network in (*first, *rules)
        if not _learning(network).is_done(folder)
    }
    return [
        Phase("data sets", list(data.values())),
        Phase("networks", list(map(_learning, first))),
        Phase("rules", list(map(_learning, rules))),
    ]


def _learning(network: Network) -> Job:
    return Job(f"policies/{network.name}/{POLICY}", learn_policy, network)


def episode_phases(folder: Path, cells: Sequence[Cell]) -> list[Phase]:
    """Return the phases that run these episodes, with those that learn the policies."""
    episodes = [Job(cell.file, run_cell, cell) for cell in cells]
    missing = [job.subject.network for job in episodes if not job.is_done(folder)]
    return [*learning_phases(folder, missing), Phase("episodes", episodes)]


# What jobs do


def collect_data(folder: Path, settings: Settings, network: Network) -> None:
    """Collect the demonstrations that a policy is learned from."""
    from bilevel.demonstrations.collect import collect

    world = WORLDS[ROWS[network.row].world]
    shown = network.shown or settings.shown
    collect(TASKS[network.task], folder / network.data, objects=shown, episodes=settings.demonstrations, **world)
    write_atomically(folder / f"{network.data}.complete", "")


def learn_policy(folder: Path, settings: Settings, network: Network) -> None:
    """Learn a policy, and note what that takes; where it was begun before, nobody knows what it took."""
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.learning.learn import learn

    row, output = ROWS[network.row], folder / "policies" / network.name
    is_new, began = not output.exists(), time.monotonic()
    demonstrations = Demonstrations.read(folder / network.data)
    if network.demonstrations:
        demonstrations = demonstrations.first(network.demonstrations)
    forget_peak()
    learned = learn(
        demonstrations,
        output,
        task=TASKS[network.task],
        method=row.method,
        preset=row.preset or OURS,
        seed=network.seed,
        config=learning_config(settings, row),
        network=read_policy(folder / "policies" / network.kept.name) if network.kept else None,
    )
    if is_new and not network.kept:
        summary = learned.card.summary
        cost = {
            "seconds": round(time.monotonic() - began, 1),
            "peak_mebibytes": own_peak(),
            "device": summary["device"],
            "machine": machine(),
        }
        write_atomically(folder / "costs" / f"{network.name}.json", encode(cost, indent=0))


def learning_config(settings: Settings, row: Row) -> Any:
    """Return how the policy of a row is learned: BISON's and its rivals' at one rate, as many epochs and rollouts."""
    from bilevel.learning.learn import PRESETS

    config, change = PRESETS[row.preset or OURS], msgspec.structs.replace
    for name, value in row.config.items():
        part, _, setting = name.rpartition(".")
        config = change(
            config, **({part: change(getattr(config, part), **{setting: value})} if part else {setting: value})
        )
    training = change(config.training, learning_rate=settings.learning_rate)
    if row.preset == PAPER:
        return change(config, training=change(training, epochs=settings.epochs, updates=settings.updates))
    return change(config, training=training, dagger=change(config.dagger, episodes=settings.dagger_episodes))


def load_row(folder: Path, settings: Settings, cell: Cell) -> RunnablePolicy:
    """Return what is run for a cell; its policy is named as the folder knows it, wherever that is."""
    row, options = ROWS[cell.row], dict(ROWS[cell.row].options)
    policy = folder / "policies" / cell.network.name if cell.network else None
    if METHODS[row.method].planners:
        options["planning_seconds"] = settings.planning_seconds
    if policy and METHODS[row.method].training is None:  # a method that is not learned only sees as the policy does
        return find_policy(**{**options, "estimation": str(policy)})
    found = find_policy(policy, **options)
    return replace(found, policy=f"policies/{cell.network.name}") if cell.network else found


def run_cell(folder: Path, settings: Settings, cell: Cell) -> None:
    """Run the episodes of a cell that are not in its file yet."""
    _evaluate(folder, settings, cell, folder / cell.file)


def _evaluate(folder: Path, settings: Settings, cell: Cell, output: Path | None = None) -> list[Record]:
    return evaluate(
        load_row(folder, settings, cell),
        TASKS[cell.task],
        objects=[cell.objects],
        episodes=cell.episodes,
        seed=cell.seed,
        noise=cell.noise,
        perception=cell.perception,
        output=output,
        **WORLDS[ROWS[cell.row].world],
        **dict(cell.arguments),
    )


def measure_memory(folder: Path, settings: Settings, cell: Cell) -> None:
    """Measure how much memory a process of its own needs for one episode."""
    program = "from bilevel.experiments.jobs import print_peak; print_peak()"
    given = pickle.dumps((folder, settings, cell))
    done = subprocess.run([sys.executable, "-c", program], input=given, stdout=subprocess.PIPE, check=True)
    found = {"objects": cell.objects, "peak_mebibytes": float(done.stdout)}
    write_atomically(folder / "memory" / cell.task / f"{cell.row}.json", encode(found, indent=0))


def print_peak() -> None:
    """Run the episode that comes by standard input, and print the memory that this process needed."""
    (record,) = _evaluate(*pickle.load(sys.stdin.buffer))
    print(record.peak_mebibytes)
