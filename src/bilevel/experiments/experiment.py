"""The folder of an experiment: its settings, and the cells of which it consists.

All that is measured is a list of cells, each of which is a file. What is in a file depends on its cell and the settings
alone, so it does not matter who makes it, or when: a run makes what is missing, one that was stopped or killed goes on,
and several may share a folder, on one machine or on many.

| in the folder | what |
|---|---|
| experiment.json | the settings, which all that is in the folder has in common |
| runs/… | what was asked for, when, and on which machine |
| demonstrations/TASK | data sets |
| policies/TASK/ROW-SEED | learned policies |
| episodes/TASK/ROW-SEED/NN.jsonl, symbols/… | records of episodes with NN objects, and of symbols alone |
| films/TASK.mp4, films/TASK.json | an episode to look at |
| findings.jsonl, report.html | what was found, in a line each, and the page about it |
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from bilevel.experiments.rows import ROWS, Row
from bilevel.files import folder_lock, read_bytes, write_atomically
from bilevel.json_files import Count, decode, encode
from bilevel.methods.methods import METHODS
from bilevel.policies.folder import POLICY
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS

EXPERIMENT, FINDINGS, REPORT = "experiment.json", "findings.jsonl", "report.html"

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
    tray_position: Literal["fixed", "free-spot"] = "fixed"  # what is seen of a tray, in worlds that have some
    quick: bool = False  # a smaller version, to be labelled as such

    def arguments(self, task: str) -> dict[str, Any]:
        """Return what the worlds of a task are made with."""
        return {"tray_position": self.tray_position} if "tray_position" in TASKS[task].arguments else {}


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
    options: dict[str, Any] = {}  # of evaluating it, with arguments of the environment
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
        """The folder of that policy, below that of policies."""
        return f"{self.task}/{self._seeded(self.learned.name if self.learned else self.row)}"

    @property
    def policy_file(self) -> str:
        """The file that such a policy has when it is whole."""
        return f"policies/{self.policy}/{POLICY}"

    @property
    def data(self) -> str:
        """The folder of the data set that the policy is learned from."""
        return f"demonstrations/{self.task}{f'-shown{self.shown}' if self.shown else ''}"

    @property
    def file(self) -> str:
        """The file of its records, or of its film's timeline."""
        if self.kind == "films":
            return f"films/{self.task}.json"
        condition = f"-{self.axis}-{self.value:g}" if self.options else ""
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


@dataclass
class ExperimentSummary:
    """How a run of an experiment went."""

    done: int = 0  # files that were made
    there: int = 0  # files that were there
    failed: dict[str, str] = field(default_factory=dict)  # files that could not be made, with the reasons
    left_out: Sequence[str] = ()  # what was asked for and cannot be measured, a line each
    report: Path | None = None


# The folder


def choose_settings(folder: Path, quick: bool, given: Mapping[str, float | str | None]) -> Settings:
    """Return the settings of the folder, or the usual ones, with those that are given; `BadInput` for nonsense."""
    usual = QUICK if quick else read_settings(folder) if (folder / EXPERIMENT).is_file() else Settings()
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
    machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "system": platform.system()}
    run = Run(command, date, machine, cells)
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
