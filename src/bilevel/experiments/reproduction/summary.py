"""From a folder to its findings: what was measured, in a line for each row, task and seed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bilevel.experiments.paper import in_order
from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.reproduction.folder import FINDINGS, ExperimentFolder, read_json
from bilevel.experiments.reproduction.rows import About, Finding, Findings, Scaling, Size, Training
from bilevel.experiments.reproduction.settings import OURS, PAPER, VARIANTS, Network, Variant
from bilevel.experiments.reproduction.units import Evaluate, MeasureMemory
from bilevel.experiments.summary import make_row
from bilevel.files import write_atomically
from bilevel.policies.policy_folder import BISON, POLICY, RULES


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
    for network in (Network(task, BISON, preset, seed) for preset in (OURS, PAPER) for seed in range(10)):
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
    network = variant.network(task, seed)
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
        policy_microseconds=_per_step(records, "policy"),
        physics_microseconds=_per_step(records, "physics"),
        peak_mebibytes=peak,
    )


def _per_step(records: Sequence[EpisodeRecord], what: str) -> float | None:
    steps = sum(record.steps for record in records)
    return round(1e6 * sum(record.seconds[what] for record in records) / steps, 1) if steps else None


def _training(folder: ExperimentFolder, network: Network) -> Training | None:
    about, cost = read_json(folder.path / network.policy / POLICY), read_json(folder.path / network.cost)
    if about is None or cost is None:
        return None
    settings, summary = about["settings"]["training"], about["summary"]
    return Training(
        **cost, epochs=settings["epochs"], samples=summary["samples"], validation_loss=summary["validation_loss"]
    )
