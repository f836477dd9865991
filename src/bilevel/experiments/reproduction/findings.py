"""What was found, in a few lines of JSON: one for each row of the table, task and seed, one for each large problem.

The report is made of these lines alone, but for its films. They are small enough to be kept with a project.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bilevel.experiments.paper import in_order
from bilevel.experiments.records import EpisodeRecord, make_row
from bilevel.experiments.reproduction.folder import FINDINGS, OURS, PAPER, ExperimentFolder, read_json
from bilevel.experiments.reproduction.measurements import Evaluate, MeasureMemory
from bilevel.experiments.reproduction.units import VARIANTS, Train, Variant
from bilevel.experiments.timings import microseconds_per_step
from bilevel.files import write_atomically
from bilevel.json_files import decode
from bilevel.policies.policy_folder import BISON, POLICY, RULES
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.expressions import read_text


class Size(msgspec.Struct, frozen=True):
    """All episodes with one number of objects."""

    objects: int
    episodes: int
    successes: int
    reasons: Mapping[str, int]  # of the failures, the commonest first
    mean_steps: float | None  # of the successes
    policy_microseconds: float | None  # for each step, with labels and all planning
    physics_microseconds: float | None
    peak_mebibytes: float | None  # of a process of its own for an episode, where that was measured


class Training(msgspec.Struct, frozen=True):
    """How the network came about. Methods may share one, and its cost."""

    seconds: float  # of the process that trained it, labels and DAgger included
    peak_mebibytes: float | None
    device: str  # cpu or cuda
    networks: int  # that were trained side by side in these seconds
    epochs: int
    samples: int
    validation_loss: float
    machine: Mapping[str, Any]


RENAMED = {"variant": "entrant", "preset": "recipe"}  # what fields are called in files


class Finding(msgspec.Struct, frozen=True, tag_field="kind", tag="row", rename=RENAMED):
    """A row of the table on one task, with one seed."""

    task: str
    variant: str  # in `VARIANTS`
    method: str
    preset: str | None
    seed: int
    sizes: Sequence[Size]
    training: Training | None
    details: Sequence[str]  # what policies said about failures of theirs, at most three
    settings: Mapping[str, Any]  # of the method
    digest: str | None  # of the policy
    versions: Mapping[str, str]

    @property
    def successes(self) -> int:
        return sum(size.successes for size in self.sizes)

    @property
    def episodes(self) -> int:
        return sum(size.episodes for size in self.sizes)


class Scaling(msgspec.Struct, frozen=True, tag_field="kind", tag="scaling"):
    """How long a large problem took, symbols alone."""

    task: str
    solver: str  # rules or lama
    objects: int
    seconds: float  # on one core
    solved: bool
    timed_out: bool
    actions: int
    peak_mebibytes: float
    versions: Mapping[str, str]
    machine: Mapping[str, Any]


class About(msgspec.Struct, frozen=True, tag_field="kind", tag="about"):
    """What the rows have in common."""

    experiment: Mapping[str, Any]
    command: str
    machines: Sequence[Mapping[str, Any]]  # that took part
    failures: Sequence[Mapping[str, str]]  # work that failed twice: unit, error
    rules: Mapping[str, str]  # the text of the rules that were learned, by task


Line = About | Finding | Scaling


class Findings(msgspec.Struct, frozen=True):
    """All that was found in an experiment."""

    about: About
    rows: Sequence[Finding]
    scaling: Sequence[Scaling]

    def lines(self) -> str:
        """Return one line of JSON for each of them."""
        found: Iterable[Line] = (self.about, *self.rows, *self.scaling)
        return "".join(f"{json.dumps(msgspec.to_builtins(line))}\n" for line in found)


def read_findings(path: Path) -> Findings:
    """Read what `Findings.lines` wrote; `BadInput` for anything else."""
    return parse_findings(read_text(path).splitlines(), str(path))


def parse_findings(lines: Iterable[str], where: str) -> Findings:
    """Read lines; `BadInput`, which says where they come from, for any that `bilevel reproduce` has not written."""
    kind: Any = Line
    found: list[Line] = [
        decode(line, kind, f"{where}, line {number}: not a line that `bilevel reproduce` wrote")
        for number, line in enumerate(lines, 1)
    ]
    about = [line for line in found if isinstance(line, About)]
    if len(about) != 1:
        raise BadInput(f"{where}: a line that says how it was made is missing")
    rows = [line for line in found if isinstance(line, Finding)]
    return Findings(about[0], rows, [line for line in found if isinstance(line, Scaling)])


# From a folder to its findings


def summarise(folder: ExperimentFolder, command: str) -> Findings:
    """Return everything that was found in a folder, whoever asked for it."""
    about = About(
        experiment=msgspec.to_builtins(folder.experiment),
        command=command,
        machines=_machines(folder),
        failures=[{"unit": found["unit"], "error": found["error"]} for found in _objects(folder, "failures/*.json")],
        rules={task: rules for task in _tasks(folder, "policies") if (rules := _rules(folder, task)) is not None},
    )
    scaling = [msgspec.convert(found, Scaling) for found in _objects(folder, "scaling/*.json")]
    order = in_order(one.task for one in scaling)
    scaling.sort(key=lambda one: (order.index(one.task), one.solver, one.objects))
    return Findings(about, list(_findings(folder)), scaling)


def write_findings(folder: ExperimentFolder) -> None:
    """Write what was found, and which command made it."""
    command = shlex.join(["bilevel", *sys.argv[1:]])
    write_atomically(folder.path / FINDINGS, summarise(folder, command).lines())


def _machines(folder: ExperimentFolder) -> list[Mapping[str, Any]]:
    """Return those that runs were started on, and those of a cluster that trained or timed something."""
    found: list[Mapping[str, Any]] = []
    for pattern in ("runs/*.json", "costs/*/*.json", "scaling/*.json"):
        for about in _objects(folder, pattern):
            if "machine" in about and about["machine"] not in found:
                found.append(about["machine"])
    return found


def _objects(folder: ExperimentFolder, pattern: str) -> Iterator[dict[str, Any]]:
    yield from (found for path in sorted(folder.path.glob(pattern)) if (found := read_json(path)))


def _tasks(folder: ExperimentFolder, part: str) -> list[str]:
    """Return the tasks that there is something of in this part of a folder."""
    return in_order(path.name for path in (folder.path / part).glob("*"))


def _rules(folder: ExperimentFolder, task: str) -> str | None:
    """Return the text of the rules that were learned for a task."""
    for network in (Train(task, BISON, preset, seed) for preset in (OURS, PAPER) for seed in range(10)):
        policy = folder.path / network.policy
        if (policy / POLICY).exists():
            return (policy / RULES).read_text(encoding="utf-8")
    return None


def _findings(folder: ExperimentFolder) -> Iterator[Finding]:
    for task in _tasks(folder, "episodes"):
        for variant in VARIANTS.values():
            folders = (folder.path / "episodes" / task).glob(f"{variant.name}-*")
            endings = [path.name.removeprefix(f"{variant.name}-") for path in folders]
            for seed in sorted(int(ending) for ending in endings if ending.isdecimal()):
                if found := _finding(folder, task, variant, seed):
                    yield found


def _finding(folder: ExperimentFolder, task: str, variant: Variant, seed: int) -> Finding | None:
    files = (folder.path / "episodes" / task / f"{variant.name}-{seed}").glob("*.jsonl")
    sizes = sorted(int(path.stem) for path in files if path.stem.isdecimal())
    by_size = {size: Evaluate(task, variant, seed, size, 0).records(folder) for size in sizes}
    records = [record for part in by_size.values() for record in part]
    if not records:
        return None
    details = sorted({record.detail for record in records if record.detail})
    memory = read_json(folder.path / MeasureMemory(task, variant, seed, 0).outputs[0])
    peaks = {memory["objects"]: memory["peak_mebibytes"]} if memory else {}
    network = variant.training(task, seed)
    return Finding(
        task=task,
        variant=variant.name,
        method=variant.method,
        preset=variant.preset,
        seed=seed,
        sizes=[_size(size, part, peaks.get(size)) for size, part in by_size.items() if part],
        training=_training(folder, network) if network else None,
        details=details[:3],
        settings=dict(records[0].settings),
        digest=records[0].policy_digest,
        versions=dict(records[0].versions),
    )


def _size(objects: int, records: Sequence[EpisodeRecord], peak: float | None) -> Size:
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


def _training(folder: ExperimentFolder, network: Train) -> Training | None:
    about, cost = read_json(folder.path / network.policy / POLICY), read_json(folder.path / network.cost)
    if about is None or cost is None:
        return None
    settings, summary = about["settings"]["training"], about["summary"]
    return Training(
        **cost, epochs=settings["epochs"], samples=summary["samples"], validation_loss=summary["validation_loss"]
    )
