"""What an experiment found, as tables: read from its folder, or from a file of findings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pandas as pd

from bilevel.experiments.axes import AXES, points, read_requests
from bilevel.experiments.jobs import EXPERIMENT, FINDINGS, Network, Settings, read_settings
from bilevel.experiments.records import read_records
from bilevel.experiments.rows import ROWS, task_order
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, decode, read_bytes
from bilevel.methods.methods import EXPERT
from bilevel.policies.folder import BISON, POLICY, RULES
from bilevel.symbolic.domain import BadInput

LARGEST = 10**7  # bytes of a file that is read here


class About(msgspec.Struct, tag_field="kind", tag="about"):
    """How all was made."""

    experiment: Settings
    command: str = ""
    machines: list[dict[str, Any]] = []
    dates: list[str] = []
    failures: list[dict[str, str]] = []
    rules: dict[str, str] = {}  # the text of the rules that were learned, by task
    versions: dict[str, str] = {}


class Episodes(msgspec.Struct, tag_field="kind", tag="episodes", kw_only=True):
    """How all episodes of a row on a task with one seed and one number of objects went."""

    task: str
    row: str
    seed: Count
    objects: Count
    episodes: Count
    successes: Count
    reasons: dict[str, Count]  # of the failures
    mean_steps: Amount | None  # of the successes
    policy_microseconds: Amount | None = None  # for each step, with labels and all planning
    peak_mebibytes: Amount | None = None  # of a process of its own for an episode, where that was measured


class Point(Episodes, tag="point", kw_only=True):
    """The same at a value of an axis of the hard suite."""

    axis: str
    value: float
    place: Count | None = None  # the number of objects, where the axis is not about it
    pause_seconds: Amount | None = None  # the longest that a decision took, the mean over episodes
    seconds: Amount | None = None  # for all decisions of an episode, on average


class Training(msgspec.Struct, tag_field="kind", tag="training", kw_only=True):
    """How the network of a row came about; rows may share one, and its cost."""

    task: str = ""
    row: str = ""
    seed: Count = 0
    seconds: Amount | None = None  # where it was trained in one go
    peak_mebibytes: Amount | None = None
    device: str = "cpu"
    epochs: Count = 0
    updates: Count = 0
    learning_rate: Amount = 1e-3
    samples: Count = 0
    parameters: Count | None = None
    versions: dict[str, str] = {}


class Scaling(msgspec.Struct, tag_field="kind", tag="scaling"):
    """How long a large problem took."""

    task: str
    solver: str
    objects: Count
    seconds: Amount  # of CPU time
    actions: Count
    failure: str | None = None
    # In files of version 0.3:
    solved: bool = True
    timed_out: bool = False
    reason: str | None = None


class _OldRow(msgspec.Struct, tag_field="kind", tag="row"):
    """A line of version 0.3: a row on a task with one seed."""

    task: str
    entrant: str
    seed: Count
    sizes: list[dict[str, Any]]
    training: Training | None
    versions: dict[str, str] = {}


class _OldCurve(msgspec.Struct, tag_field="kind", tag="curve"):
    """A line of version 0.3: a curve of the hard suite."""

    axis: str
    task: str
    method: str
    objects: Count | None
    points: list[dict[str, Any]]


Line = About | Episodes | Point | Training | Scaling | _OldRow | _OldCurve
NewLine = About | Episodes | Point | Training | Scaling


@dataclass(frozen=True)
class Results:
    """What was found: a table of episodes, of points of the hard suite, of trainings, and of large problems."""

    about: About
    episodes: pd.DataFrame
    points: pd.DataFrame
    training: pd.DataFrame
    scaling: pd.DataFrame

    @property
    def settings(self) -> Settings:
        """What all work had in common."""
        return self.about.experiment


def read_results(source: Path) -> Results:
    """Read what was found from the folder of an experiment or a file of findings; `BadInput` for anything else."""
    if (source / EXPERIMENT).is_file():
        return _results(_folder_lines(source), str(source))
    file = source / FINDINGS if source.is_dir() else source
    if not file.is_file():
        raise BadInput(f"{source}: nothing to report on; `bilevel reproduce --output DIR` makes a folder")
    return _results(_file_lines(file), str(file))


def write_findings(folder: Path) -> None:
    """Write what is in a folder to one file, a line for each thing."""
    lines = [json.dumps(msgspec.to_builtins(line)) + "\n" for line in _folder_lines(folder)]
    write_atomically(folder / FINDINGS, "".join(lines))


def _results(lines: Iterable[NewLine], where: str) -> Results:
    found: dict[type, list[Any]] = {About: [], Episodes: [], Point: [], Training: [], Scaling: []}
    for line in lines:
        found[type(line)].append(line)
    if not found[About]:
        raise BadInput(f"{where}: a line that says how it was made is missing")
    if not (found[Episodes] or found[Point] or found[Scaling]):
        raise BadInput(f"{where}: there are no results in it yet")
    for line in (*found[Episodes], *found[Point], *found[Training]):
        if line.row not in ROWS:
            raise BadInput(f"{where}: unknown method '{line.row}'")
    for line in found[Point]:
        if line.axis not in AXES:
            raise BadInput(f"{where}: unknown axis '{line.axis}'")
    return Results(found[About][0], *(_frame(kind, found[kind]) for kind in (Episodes, Point, Training, Scaling)))


def _frame(kind: type[msgspec.Struct], lines: Sequence[Any]) -> pd.DataFrame:
    """Return lines as a table, with the tasks and the rows in their order."""
    frame: pd.DataFrame = pd.DataFrame(
        [msgspec.structs.asdict(line) for line in lines], columns=list(kind.__struct_fields__)
    )
    frame["task"] = pd.Categorical(frame["task"], task_order(frame["task"]), ordered=True)
    if "row" in frame:
        names = set(frame["row"])
        frame["row"] = pd.Categorical(frame["row"], [name for name in ROWS if name in names], ordered=True)
    return frame


# From a file


def _file_lines(path: Path) -> Iterator[NewLine]:
    kind: Any = Line
    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path}: too large for a file of findings")
    for number, text in enumerate(read_bytes(path).splitlines(), 1):
        line = decode(text, kind, f"{path}, line {number}: not a line that `bilevel reproduce` wrote")
        if isinstance(line, _OldRow):
            about = {"task": line.task, "row": line.entrant, "seed": line.seed}
            yield from (msgspec.convert({"kind": "episodes", **about, **size}, Episodes) for size in line.sizes)
            if line.training:
                yield msgspec.structs.replace(line.training, **about)
        elif isinstance(line, _OldCurve):
            place = {"axis": line.axis, "task": line.task, "row": line.method, "place": line.objects}
            for point in line.points:
                time = {"policy_microseconds": point["decision_microseconds"]}
                yield msgspec.convert({"kind": "point", **place, **point, **time}, Point)
        elif isinstance(line, Scaling) and not line.solved:
            yield msgspec.structs.replace(
                line, failure=line.reason or ("out of time" if line.timed_out else "unsolved")
            )
        else:
            yield line


# From a folder


def _folder_lines(folder: Path) -> Iterator[NewLine]:
    settings, versions, trained = read_settings(folder), dict[str, str](), set[tuple[str, str, str]]()
    for path in sorted(folder.glob("episodes/*/*/*.jsonl")):
        row, _, seed = path.parent.name.rpartition("-")
        found = _read_episodes(path) if path.stem.isdecimal() and row in ROWS else []
        if found:
            task, objects = path.parent.parent.name, int(path.stem)
            versions |= read_records(path)[0].versions
            memory = _read(folder / "memory" / task / f"{row}.json")
            peak = memory["peak_mebibytes"] if memory.get("objects") == objects else None
            about: dict[str, Any] = {"task": task, "row": row, "seed": int(seed)}
            yield Episodes(**about, objects=objects, **_counts(found), peak_mebibytes=peak)
            if (task, row, seed) not in trained and (training := _training(folder, **about)):
                yield training
            trained.add((task, row, seed))
    for request in read_requests(folder):
        yield from _read_points(folder, request, settings)
    for path in sorted(folder.glob("scaling/*.json")):
        yield decode(read_bytes(path), Scaling, path)
    yield _about(folder, settings, versions)


def _read(path: Path) -> dict[str, Any]:
    return decode(read_bytes(path), dict[str, Any], path) if path.exists() else {}


def _about(folder: Path, settings: Settings, versions: dict[str, str]) -> About:
    runs = [_read(path) for path in sorted(folder.glob("runs/*.json"))]
    machines = [run["machine"] for run in runs] + [_read(path)["machine"] for path in folder.glob("costs/*/*.json")]
    rules = {}
    for task in task_order(path.name for path in folder.glob("policies/*")):
        names = [Network(task, row, seed).name for row in (BISON, "bison-paper") for seed in range(10)]
        texts = [folder / "policies" / name / RULES for name in names if (folder / "policies" / name / POLICY).exists()]
        if texts:
            rules[task] = texts[0].read_text(encoding="utf-8")
    return About(
        experiment=settings,
        command=next((run["command"] for run in reversed(runs)), ""),
        machines=[machine for number, machine in enumerate(machines) if machine not in machines[:number]],
        dates=sorted({run["date"] for run in runs}),
        failures=[
            {"unit": path.stem.replace("+", "/"), "error": path.read_text(encoding="utf-8").strip().splitlines()[-1]}
            for path in sorted(folder.glob("failures/*.txt"))
        ],
        rules=rules,
        versions=versions,
    )


def _training(folder: Path, task: str, row: str, seed: int) -> Training | None:
    """Return how the network of a row was trained, if it has one."""
    learned = ROWS[row].learned
    if not learned:
        return None
    network = Network(task, learned, seed)
    card = _read(folder / "policies" / network.name / POLICY)
    if not card:
        return None
    cost = _read(folder / "costs" / f"{(network.kept or network).name}.json")
    training, summary = card["settings"]["training"], card["summary"]
    return Training(
        task=task,
        row=row,
        seed=seed,
        seconds=cost.get("seconds"),
        peak_mebibytes=cost.get("peak_mebibytes"),
        device=cost.get("device", "cpu"),
        epochs=training["epochs"],
        updates=training.get("updates", 0),
        learning_rate=training["learning_rate"],
        samples=summary["samples"],
        parameters=summary.get("parameters"),
    )


@dataclass(frozen=True)
class _Episode:
    """What counts of an episode, in a world or of symbols alone."""

    success: bool
    reason: str | None
    steps: int
    seconds: Mapping[str, float]


def _read_episodes(path: Path) -> list[_Episode]:
    if not path.exists():
        return []
    if path.suffix == ".json":  # of symbols alone
        return decode(read_bytes(path), list[_Episode], path)
    return [_Episode(one.success, one.reason, one.steps, one.seconds) for one in read_records(path)]


def _counts(episodes: Sequence[_Episode], allowed: float | None = None) -> dict[str, Any]:
    """Return how episodes went; with so many steps allowed, what takes longer has not succeeded."""
    solved = [one for one in episodes if one.success and (allowed is None or one.steps <= allowed)]
    reasons = Counter(one.reason or "time" for one in episodes if one not in solved)
    timed = [one for one in episodes if "policy" in one.seconds]
    seconds, steps = sum(one.seconds["policy"] for one in timed), sum(one.steps for one in timed)
    return {
        "episodes": len(episodes),
        "successes": len(solved),
        "reasons": dict(reasons.most_common()),
        "mean_steps": round(fmean(one.steps for one in solved), 1) if solved else None,
        "policy_microseconds": round(1e6 * seconds / steps, 1) if steps else None,
    }


def _read_points(folder: Path, request: Any, settings: Settings) -> Iterator[Point]:
    """Yield the points of the hard suite whose episodes are there."""
    found = list(points(request, settings))
    episodes = {point.file: _read_episodes(folder / point.file) for point in found}
    for point in found:
        there, allowed = episodes[point.file], None
        if point.budget is not None:  # as a multiple of the steps that the expert takes on the same task
            same = [
                episodes[other.file]
                for other in found
                if (other.axis, other.value, other.cell.task, other.objects, other.cell.row)
                == (point.axis, point.value, point.cell.task, point.objects, EXPERT)
            ]
            steps = [one.steps for part in same for one in part if one.success]
            allowed = point.budget * fmean(steps) if steps else 0.0
        if there:
            cell, seconds = point.cell, [one.seconds for one in there if "longest" in one.seconds]
            yield Point(
                axis=point.axis.name,
                value=float(point.value),
                place=point.objects,
                task=cell.task,
                row=cell.row,
                seed=cell.seed,
                objects=cell.objects,
                pause_seconds=round(fmean(one["longest"] for one in seconds), 4) if seconds else None,
                seconds=round(fmean(one["policy"] for one in seconds), 4) if seconds else None,
                **_counts(there, allowed),
            )
