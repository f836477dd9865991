"""What an experiment found: one table, with a line for the episodes of each cell, from its folder or from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pandas as pd

from bilevel.experiments.axes import AXES
from bilevel.experiments.experiment import EXPERIMENT, FINDINGS, Cell, Run, Settings, read_runs, read_settings
from bilevel.experiments.records import Record, read_records
from bilevel.experiments.rows import TITLES, task_order
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, decode, read_bytes
from bilevel.policies.folder import BISON, POLICY, RULES
from bilevel.symbolic.domain import BadInput

LARGEST = 10**7  # bytes of a file that is read here


class About(msgspec.Struct, omit_defaults=True):
    """How all was made."""

    experiment: Settings
    command: str = ""
    machines: list[dict[str, Any]] = []
    dates: list[str] = []
    failures: dict[str, str] = {}  # the files that could not be made, with the reasons
    rules: dict[str, str] = {}  # the text of the rules that were learned, by task
    versions: dict[str, str] = {}


class CellResult(msgspec.Struct, omit_defaults=True, kw_only=True):
    """How the episodes of a cell went, and what learning the policy took; rows may share one, and its cost."""

    task: str
    row: str
    seed: Count
    objects: Count
    axis: str = ""
    value: float = 0.0
    place: Count | None = None
    episodes: Count
    successes: Count
    reasons: dict[str, Count] = {}  # of the failures
    mean_steps: Amount | None = None  # of the successes
    policy_microseconds: Amount | None = None  # for each step, with labels and all planning
    pause_seconds: Amount | None = None  # the longest that a decision took, the mean over episodes
    seconds: Amount | None = None  # for all decisions of an episode, on average
    training_seconds: Amount | None = None  # where it was trained in one go
    parameters: Count | None = None
    epochs: Count | None = None  # of training, or else updates
    updates: Count | None = None
    samples: Count | None = None


@dataclass(frozen=True)
class Results:
    """How all was made, and a table of the findings, with the tasks and the rows in their order."""

    about: About
    table: pd.DataFrame

    def of(self, axis: str) -> pd.DataFrame:
        """Return the lines of an axis, without tasks and rows that it does not have."""
        found: pd.DataFrame = self.table[self.table["axis"] == axis].copy()
        for name in ("task", "row"):
            found[name] = found[name].cat.remove_unused_categories()
        return found


def read_results(source: Path) -> Results:
    """Read what was found from the folder of an experiment or a file of findings; `BadInput` for anything else."""
    if (source / EXPERIMENT).is_file():
        about, findings = _read_folder(source)
    else:
        about, findings = _read_file(source / FINDINGS if source.is_dir() else source)
    if not findings:
        raise BadInput(f"{source}: there are no results in it yet")
    frame = pd.DataFrame([msgspec.structs.asdict(line) for line in findings])
    rows = [name for name in TITLES if name in set(frame["row"])]
    frame["task"] = pd.Categorical(frame["task"], task_order(frame["task"]), ordered=True)
    frame["row"] = pd.Categorical(frame["row"], rows, ordered=True)
    return Results(about, frame)


def write_findings(folder: Path) -> None:
    """Write what is in a folder to one file: a line that says how it was made, and a line for each finding."""
    about, findings = _read_folder(folder)
    write_atomically(folder / FINDINGS, b"".join(msgspec.json.encode(line) + b"\n" for line in (about, *findings)))


def _read_file(path: Path) -> tuple[About, list[CellResult]]:
    if not path.is_file():
        raise BadInput(f"{path}: nothing to report on; `bilevel reproduce --output DIR` makes a folder")
    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path}: too large for a file of findings")
    first, *others = read_bytes(path).splitlines() or [b""]
    about = decode(first, About, f"{path}, line 1: does not say how it was made")
    findings = []
    for number, text in enumerate(others, 2):
        line = decode(text, CellResult, f"{path}, line {number}: not a line that `bilevel reproduce` wrote")
        if line.row not in TITLES or line.axis not in ("", *AXES):
            raise BadInput(f"{path}, line {number}: unknown method '{line.row}' or axis '{line.axis}'")
        findings.append(line)
    return about, findings


# From a folder


def _read_folder(folder: Path) -> tuple[About, list[CellResult]]:
    runs = read_runs(folder)
    asked = {(cell.axis, cell.value, cell.place, cell.file): cell for run in runs for cell in run.cells}
    cells = [cell for cell in asked.values() if cell.kind != "films" and (folder / cell.file).exists()]
    records = {file: read_records(folder / file) for file in {cell.file for cell in cells}}
    versions = {name: version for known in records.values() for name, version in known[0].versions.items()}
    findings = [_finding(folder, cell, records[cell.file]) for cell in cells]
    return _about(folder, runs, versions), findings


def _finding(folder: Path, cell: Cell, records: Sequence[Record]) -> CellResult:
    solved = [one for one in records if one.success]
    reasons = Counter(one.reason for one in records if one.reason)
    timed = [one for one in records if one.seconds]  # a kill may lose the timing of an episode
    seconds, steps = sum(one.seconds["policy"] for one in timed), sum(one.steps for one in timed)
    return CellResult(
        task=cell.task,
        row=cell.row,
        seed=cell.seed,
        objects=cell.objects,
        axis=cell.axis,
        value=cell.value,
        place=cell.place,
        episodes=len(records),
        successes=len(solved),
        reasons=dict(reasons.most_common()),
        mean_steps=round(fmean(one.steps for one in solved), 1) if solved else None,
        policy_microseconds=round(1e6 * seconds / steps, 1) if steps else None,
        pause_seconds=round(fmean(one.seconds["longest"] for one in timed), 4) if timed else None,
        seconds=round(seconds / len(timed), 4) if timed else None,
        **_training(folder, cell),
    )


def _training(folder: Path, cell: Cell) -> dict[str, Any]:
    """Return what learning the policy of a cell took, if the policy is there."""
    card = _read(folder / "policies" / cell.policy / POLICY) if cell.learned and not cell.axis else {}
    if not card:
        return {}
    cost, training = _read(folder / "costs" / f"{cell.with_kept_network.policy}.json"), card["settings"]["training"]
    length = "updates" if training.get("updates") else "epochs"
    return {
        "training_seconds": cost.get("seconds"),
        "parameters": card["summary"].get("parameters"),
        "samples": card["summary"]["samples"],
        length: training[length],
    }


def _read(path: Path) -> dict[str, Any]:
    return decode(read_bytes(path), dict[str, Any], path) if path.exists() else {}


def _about(folder: Path, runs: Sequence[Run], versions: dict[str, str]) -> About:
    machines = [run.machine for run in runs] + [_read(path)["machine"] for path in folder.glob("costs/*/*.json")]
    failures = {path.stem.replace("+", "/"): path.read_text(encoding="utf-8") for path in folder.glob("failures/*.txt")}
    return About(
        experiment=read_settings(folder),
        command=runs[-1].command if runs else "",
        machines=[machine for number, machine in enumerate(machines) if machine not in machines[:number]],
        dates=sorted({run.date for run in runs}),
        failures={name: text.strip().splitlines()[-1] for name, text in sorted(failures.items())},
        rules=dict(_learned_rules(folder)),
        versions=versions,
    )


def _learned_rules(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the rules that were learned for each task: by our preset, else in the paper's setting."""
    for task in task_order(path.name for path in folder.glob("policies/*")):
        for row in (BISON, "bison-paper"):
            path = folder / "policies" / task / f"{row}-0" / RULES
            if path.with_name(POLICY).exists():
                yield task, path.read_text(encoding="utf-8")
                break
