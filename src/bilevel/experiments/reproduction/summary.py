"""From a folder to its findings: what was measured, in a line for each row, task and seed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.reproduction.folder import Kept, read_json
from bilevel.experiments.reproduction.measurements import kept_records
from bilevel.experiments.reproduction.rows import About, Findings, Row, Scaling, Size, Training
from bilevel.experiments.reproduction.settings import BISON, ENTRANTS, OURS, PAPER, Entrant
from bilevel.experiments.summary import make_row
from bilevel.files import write_atomically
from bilevel.policies.policy_files import POLICY
from bilevel.policies.policy_folder import RULES
from bilevel.tabletop.tasks import TASKS


def summarise(kept: Kept, command: str) -> Findings:
    """Everything that is in the folder, whoever asked for it."""
    about = About(
        experiment=asdict(kept.experiment),
        command=command,
        machines=_different(_machines(kept)),
        failures=[{"unit": found["unit"], "error": found["error"]} for found in _objects(kept.failures)],
        rules=dict(_rules(kept)),
    )
    return Findings(about, list(_rows(kept)), list(_scaling(kept)))


def write_findings(kept: Kept, command: str) -> Findings:
    found = summarise(kept, command)
    write_atomically(kept.findings, found.lines())
    return found


def this_command() -> str:
    return shlex.join(["bilevel", *sys.argv[1:]])


def _machines(kept: Kept) -> Iterator[Mapping[str, Any]]:
    """Those that runs were started on, and those of a cluster that trained or timed something."""
    costs = kept.folder / "costs"
    for found in (*_objects(kept.runs), *_objects(costs, "*/*.json"), *_objects(kept.folder / "scaling")):
        if "machine" in found:
            yield found["machine"]


def _objects(folder: Path, pattern: str = "*.json") -> Iterator[dict[str, Any]]:
    yield from (found for path in sorted(folder.glob(pattern)) if (found := read_json(path)))


def _different(things: Iterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for thing in things:
        if thing not in found:
            found.append(thing)
    return found


def _rules(kept: Kept) -> Iterator[tuple[str, str]]:
    for task in TASKS:
        folders = [kept.policy(task, BISON, recipe, seed) for recipe in (OURS, PAPER) for seed in range(10)]
        known = next((folder for folder in folders if (folder / POLICY).exists()), None)
        if known:
            yield task, (known / RULES).read_text(encoding="utf-8")


def _rows(kept: Kept) -> Iterator[Row]:
    for task in TASKS:
        for entrant in ENTRANTS.values():
            folders = (kept.folder / "episodes" / task).glob(f"{entrant.name}-*")
            endings = [folder.name.removeprefix(f"{entrant.name}-") for folder in folders]
            for seed in sorted(int(ending) for ending in endings if ending.isdecimal()):
                if row := _row(kept, task, entrant, seed):
                    yield row


def _row(kept: Kept, task: str, entrant: Entrant, seed: int) -> Row | None:
    files = kept.episodes(task, entrant.name, seed, 1).parent.glob("*.jsonl")
    sizes = sorted(int(path.stem) for path in files if path.stem.isdecimal())
    by_size = {size: kept_records(kept, task, entrant, seed, size) for size in sizes}
    records = [record for part in by_size.values() for record in part]
    if not records:
        return None
    details = sorted({record.detail for record in records if record.detail})
    weighed = read_json(kept.memory(task, entrant.name))
    peaks = {weighed["objects"]: weighed["peak_mebibytes"]} if weighed else {}
    return Row(
        task=task,
        entrant=entrant.name,
        method=entrant.method,
        recipe=entrant.recipe,
        seed=seed,
        sizes=[_size(size, part, peaks.get(size)) for size, part in by_size.items() if part],
        training=_training(kept, task, entrant, seed),
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


def _training(kept: Kept, task: str, entrant: Entrant, seed: int) -> Training | None:
    if entrant.learner is None or entrant.recipe is None:
        return None
    about = read_json(kept.policy(task, entrant.learner, entrant.recipe, seed) / POLICY)
    cost = read_json(kept.cost(task, entrant.learner, entrant.recipe, seed))
    if about is None or cost is None:
        return None
    return Training(
        seconds=cost["seconds"],
        peak_mebibytes=cost["peak_mebibytes"],
        device=cost["device"],
        networks=cost["networks"],
        epochs=about["settings"]["training"]["epochs"],
        samples=about["summary"]["samples"],
        validation_loss=about["summary"]["validation_loss"],
        machine=cost["machine"],
    )


def _scaling(kept: Kept) -> Iterator[Scaling]:
    found = [Scaling(**one) for one in _objects(kept.folder / "scaling")]
    yield from sorted(found, key=lambda one: (list(TASKS).index(one.task), one.solver, one.objects))
