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

from bilevel.experiments.experiment import EXPERIMENT, FINDINGS, Cell, Settings, read_runs, read_settings
from bilevel.experiments.records import Record, read_records
from bilevel.experiments.rows import AXES, NUMBER, TITLES, Axis, task_order
from bilevel.experiments.statistics import wilson_interval
from bilevel.files import read_bytes, write_atomically
from bilevel.json_files import Amount, Count, decode
from bilevel.policies.folder import BISON, POLICY, RULES
from bilevel.symbolic.domain import BadInput

SUCCESS = "success"
TIMES = ("pause_seconds", "seconds")


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
    """How the episodes of a cell went."""

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
    pause_seconds: Amount | None = None  # the longest that a decision took, the mean over episodes
    seconds: Amount | None = None  # for all decisions of an episode, on average


@dataclass(frozen=True)
class Results:
    """How all was made, and a table of the findings, with the tasks and the rows in their order."""

    about: About
    table: pd.DataFrame

    def along(self, axis: Axis) -> pd.DataFrame:
        """Return the lines of an axis, each with its value, and with `where`, the title of what it is compared with."""
        found: pd.DataFrame = self.table[self.table["axis"] == axis.name].copy()
        for name in ("task", "row"):
            found[name] = found[name].cat.remove_unused_categories()
        if axis is NUMBER:
            found["value"] = found["objects"]
        found["where"] = found["task"].astype(str)
        if found["place"].nunique() > 1:
            found["where"] += [f", {place:g} objects" for place in found["place"]]
        return found


def measured(frame: pd.DataFrame, by: list[str], measure: str = SUCCESS) -> pd.DataFrame:
    """Return for each group what was measured, its lowest and highest value, and a text.

    Success is a rate with Wilson's interval; a time, a column of the table, is a median with its range over seeds.
    """
    groups = frame.groupby(by, observed=True)
    if measure != SUCCESS:
        found: pd.DataFrame = groups[measure].agg(middle="median", low="min", high="max").dropna().reset_index()
        found["text"] = found["middle"].map(seconds)
        return found
    found = groups[["successes", "episodes"]].sum().reset_index()
    found["middle"] = found["successes"] / found["episodes"]
    found["low"], found["high"] = zip(*map(wilson_interval, found["successes"], found["episodes"]), strict=True)
    found["text"] = found["successes"].astype(str) + "/" + found["episodes"].astype(str)
    return found


def seconds(value: float) -> str:
    """Return 110 µs, 40 ms, 3.2 s, 12 min or 3.4 h."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value / 3600:.3g} h"


def read_results(source: Path) -> Results:
    """Read what was found from the folder of an experiment or a file of findings; `BadInput` for anything else."""
    if (source / EXPERIMENT).is_file():
        about, findings = _read_folder(source)
    else:
        about, findings = _read_file(source / FINDINGS if source.is_dir() else source)
    if not findings:
        raise BadInput(f"{source}: there are no results in it yet")
    frame = pd.DataFrame(map(msgspec.structs.asdict, findings)).astype(dict.fromkeys(TIMES, float))
    rows = [name for name in TITLES if name in set(frame["row"])]
    frame["task"] = pd.Categorical(frame["task"], task_order(frame["task"]), ordered=True)
    frame["row"] = pd.Categorical(frame["row"], rows, ordered=True)
    return Results(about, frame)


def write_findings(folder: Path) -> int:
    """Write how all in a folder was made to one file, with a line for each finding; return how many there are."""
    about, findings = _read_folder(folder)
    write_atomically(folder / FINDINGS, b"".join(msgspec.json.encode(line) + b"\n" for line in (about, *findings)))
    return len(findings)


def _read_file(path: Path) -> tuple[About, list[CellResult]]:
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
    findings = [_finding(cell, records[cell.file]) for cell in cells]
    machines = [run.machine for run in runs]
    failures = {path.stem.replace("+", "/"): path.read_text(encoding="utf-8") for path in folder.glob("failures/*.txt")}
    about = About(
        experiment=read_settings(folder),
        command=runs[-1].command if runs else "",
        machines=[machine for number, machine in enumerate(machines) if machine not in machines[:number]],
        dates=sorted({run.date for run in runs}),
        failures={name: text.strip().splitlines()[-1] for name, text in sorted(failures.items())},
        rules=dict(_learned_rules(folder)),
        versions={name: version for known in records.values() for name, version in known[0].versions.items()},
    )
    return about, findings


def _finding(cell: Cell, records: Sequence[Record]) -> CellResult:
    timed = [one for one in records if one.seconds]  # a kill may lose the timing of an episode
    times: dict[str, Any] = {}
    if timed:
        times["pause_seconds"] = round(fmean(one.seconds["longest"] for one in timed), 4)
        times["seconds"] = round(fmean(one.seconds["policy"] for one in timed), 4)
    return CellResult(
        **{name: getattr(cell, name) for name in ("task", "row", "seed", "objects", "axis", "value", "place")},
        **times,
        episodes=len(records),
        successes=sum(one.success for one in records),
        reasons=dict(Counter(one.reason for one in records if one.reason).most_common()),
    )


def _learned_rules(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the rules that were learned for each task: by our preset, else in the paper's setting."""
    for task in task_order(path.name for path in folder.glob("policies/*")):
        for row in (BISON, "bison-paper"):
            path = folder / "policies" / task / f"{row}-0" / RULES
            if path.with_name(POLICY).exists():
                yield task, path.read_text(encoding="utf-8")
                break
