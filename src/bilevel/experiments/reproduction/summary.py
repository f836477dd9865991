"""From the folder of an experiment to its findings: what is there, and what of it has to be left out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bilevel.experiments.machines import Machine
from bilevel.experiments.paper import in_order
from bilevel.experiments.records import Record
from bilevel.experiments.reproduction.completeness import SELECTED, Asked
from bilevel.experiments.reproduction.findings import About, Failure, Finding, Findings, Size, Training
from bilevel.experiments.reproduction.folder import (
    FINDINGS,
    ExperimentFolder,
    Run,
    read_intact,
)
from bilevel.experiments.reproduction.large_problems import Scaling
from bilevel.experiments.reproduction.measurements import Evaluate, MeasureMemory, Memory
from bilevel.experiments.reproduction.recipes import OUR_RECIPE, PAPERS_RECIPE
from bilevel.experiments.reproduction.units import Cost, Train
from bilevel.experiments.reproduction.variants import VARIANTS, Variant
from bilevel.experiments.statistics import microseconds_per_step
from bilevel.experiments.statistics import summarise as make_row
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, Value
from bilevel.policies.folder import BISON, POLICY, RULES
from bilevel.symbolic.expressions import read_text
from bilevel.tabletop import TASKS


def summarise(folder: ExperimentFolder, command: str) -> Findings:
    """Return everything that was found in a folder, whoever asked for it."""
    files = FolderFiles(folder)
    scaling = files.read_all("scaling/*.json", Scaling)
    order = in_order(one.task for one in scaling)
    scaling.sort(key=lambda one: (order.index(one.task), one.solver, one.objects))
    rows = list(_findings(files))
    rules = {task: rules for task in files.tasks("policies") if (rules := _rules(folder, task)) is not None}
    asked = files.read_all(f"{SELECTED}/*.json", Asked)
    about = say_how(files, command, [one.machine for one in scaling])
    about = msgspec.structs.replace(about, rules=rules, asked=asked)
    return Findings(about, rows, scaling)


def say_how(files: FolderFiles, command: str, further_machines: Iterable[Machine] = ()) -> About:
    """Return how what is in a folder came about, but for what was learned; ask it after all files were read."""
    runs, costs = files.read_all("runs/*.json", Run), files.read_all("costs/*/*.json", Cost)
    machines = [*(run.machine for run in runs), *(cost.machine for cost in costs), *further_machines]
    return About(
        experiment=files.folder.experiment,
        command=command,
        machines=_each_once(machines),
        failures=files.read_all("failures/*.json", Failure),
        rules={},
        dates=sorted({run.date for run in runs if run.date}),
        left_out=sorted(files.left_out),
    )


def write_findings(folder: ExperimentFolder) -> None:
    """Write what was found, and which command made it."""
    command = shlex.join(["bilevel", *sys.argv[1:]])
    write_atomically(folder.path / FINDINGS, summarise(folder, command).lines())


@dataclass
class FolderFiles:
    """The files of a folder, and the names of those that had to be left out."""

    folder: ExperimentFolder
    left_out: set[str] = field(default_factory=set)

    def read_all(self, pattern: str, kind: type[Value]) -> list[Value]:
        """Return what is in the files of this pattern, in the order of their names."""
        found = (self.read(path, kind) for path in sorted(self.folder.path.glob(pattern)))
        return [one for one in found if one is not None]

    def read(self, path: Path, kind: type[Value]) -> Value | None:
        """Return what is in a file; `None` where there is none, or where it has to be left out."""
        found = read_intact(path, kind)
        if found is None and path.exists():
            self.leave_out(path)
        return found

    def leave_out(self, path: Path) -> None:
        """Note that something in the folder is of no use."""
        self.left_out.add(_printable(str(path.relative_to(self.folder.path))))

    def tasks(self, part: str) -> list[str]:
        """Return the tasks that there is something of in this part of the folder."""
        paths = {path.name: path for path in (self.folder.path / part).glob("*")}
        for name in paths.keys() - TASKS.keys():
            self.leave_out(paths[name])
        return in_order(paths.keys() & TASKS.keys())


def _each_once(machines: Iterable[Machine]) -> list[Machine]:
    found: list[Machine] = []
    for machine in machines:
        if machine not in found:
            found.append(machine)
    return found


def _printable(name: str) -> str:
    """Return the name of a file as it can be written down: on Linux it may hold any bytes."""
    return name.encode(errors="backslashreplace").decode()


def _rules(folder: ExperimentFolder, task: str) -> str | None:
    """Return the text of the rules that were learned for a task."""
    for network in (Train(task, BISON, recipe, seed) for recipe in (OUR_RECIPE, PAPERS_RECIPE) for seed in range(10)):
        policy = folder.path / network.policy
        if (policy / POLICY).exists():
            return read_text(policy / RULES)
    return None


def _findings(files: FolderFiles) -> Iterator[Finding]:
    for task in files.tasks("episodes"):
        for variant in VARIANTS.values():
            folders = (files.folder.path / "episodes" / task).glob(f"{variant.name}-*")
            endings = [path.name.removeprefix(f"{variant.name}-") for path in folders]
            for seed in sorted(int(ending) for ending in endings if ending.isdecimal()):
                if found := _finding(files, task, variant, seed):
                    yield found


def _finding(files: FolderFiles, task: str, variant: Variant, seed: int) -> Finding | None:
    by_size = dict(_records(files, task, variant, seed))
    records = [record for part in by_size.values() for record in part]
    if not records:
        return None
    details = sorted({record.detail for record in records if record.detail})
    memory = files.read(files.folder.path / MeasureMemory(task, variant, seed, 0).outputs[0], Memory)
    peaks = {memory.objects: memory.peak_mebibytes} if memory else {}
    network = variant.training(task, seed)
    return Finding(
        task=task,
        variant=variant.name,
        method=variant.method,
        preset=variant.preset,
        seed=seed,
        sizes=[_size(size, part, peaks.get(size)) for size, part in by_size.items()],
        training=_training(files, network.network) if network else None,
        details=details[:3],
        settings=dict(records[0].settings),
        digest=records[0].policy_digest,
        versions=dict(records[0].versions),
    )


def _records(files: FolderFiles, task: str, variant: Variant, seed: int) -> Iterator[tuple[int, list[Record]]]:
    """Yield the numbers of objects of which there are episodes, with these."""
    paths = (files.folder.path / "episodes" / task / f"{variant.name}-{seed}").glob("*.jsonl")
    for size, path in sorted((int(path.stem), path) for path in paths if path.stem.isdecimal()):
        if records := Evaluate(task, variant, seed, size, 0).records(files.folder):
            yield size, records
        else:
            files.leave_out(path)


def _size(objects: int, records: Sequence[Record], peak: float | None) -> Size:
    row = make_row(records)
    return Size(
        objects=objects,
        episodes=row.episodes,
        successes=row.successes,
        reasons=row.reasons,
        mean_steps=None if row.mean_steps is None else round(row.mean_steps, 1),
        policy_microseconds=microseconds_per_step(records, "policy"),
        physics_microseconds=microseconds_per_step(records, "physics"),
        peak_mebibytes=peak,
    )


class _TrainingSettings(msgspec.Struct):
    epochs: Count
    updates: Count = 0
    learning_rate: Amount = 1e-3


class _Settings(msgspec.Struct):
    training: _TrainingSettings


class _Summary(msgspec.Struct):
    samples: Count
    validation_loss: float
    parameters: Count | None = None


class _Card(msgspec.Struct):
    """What the report takes from the card of a policy."""

    settings: _Settings
    summary: _Summary


def _training(files: FolderFiles, network: Train) -> Training | None:
    """Return how a network was trained; `None` where that is not known."""
    cost = files.read(files.folder.path / network.cost, Cost)
    card = files.read(files.folder.path / network.policy / POLICY, _Card)
    if cost is None or card is None:
        return None
    parts = (cost, card.summary, card.settings.training)
    return Training(**{name: value for part in parts for name, value in msgspec.structs.asdict(part).items()})
