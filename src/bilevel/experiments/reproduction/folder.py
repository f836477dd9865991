"""The folder of an experiment: where everything is kept.

Whatever is in it was written in one piece and depends on its name and the experiment alone, so it does not matter who
made it, or when. Runs that share it, on one machine or many, do not do the same work: whoever begins a unit locks it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bilevel.experiments.machines import Machine, machine
from bilevel.experiments.reproduction.recipes import PAPER, Recipe
from bilevel.files import alone_in, remove_leftovers, taken_by_another, write_atomically
from bilevel.json_files import Amount, Count, Value, decode, encode, read_bytes
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:  # it needs torch, which not all work does
    from bilevel.learning.networks import LearningConfig

EXPERIMENT = "experiment.json"
FINDINGS = "findings.jsonl"
PATIENCE = 10.0  # seconds, for others to begin the folder


class Experiment(msgspec.Struct, frozen=True, rename={"dagger_episodes": "practice"}):
    """What all work in a folder has in common, so that its results go together."""

    demonstrations: Count = 200
    shown: Count = 3  # objects in each of them
    epochs: Count = 200  # of cloning in the paper's setting, whatever is learned
    updates: Count = 0  # the same, over all epochs and however many samples there are; 0 for one pass an epoch
    learning_rate: Amount = 1e-3  # at first, of all networks, whatever is learned
    dagger_episodes: Count = 60  # in each round, whatever is learned with DAgger
    planning_seconds: Amount = 100.0  # for each plan
    lama_seconds: Amount = 50.0  # for a large problem: little is lost when it is killed
    quick: bool = False  # a smaller version, to be labelled as such

    def config(self, recipe: Recipe) -> LearningConfig:
        """Return how a network is learned: BISON's and its rivals' at one rate, as many epochs and rollouts."""
        from bilevel.learning.networks import PRESETS

        config, replace = PRESETS[recipe.preset], msgspec.structs.replace
        for name, value in recipe.settings:
            part, _, setting = name.rpartition(".")
            config = replace(
                config, **({part: replace(getattr(config, part), **{setting: value})} if part else {setting: value})
            )
        training = replace(config.training, learning_rate=self.learning_rate)
        if recipe.preset == PAPER:
            return replace(config, training=replace(training, epochs=self.epochs, updates=self.updates))
        return replace(config, training=training, dagger=replace(config.dagger, episodes=self.dagger_episodes))


class _OfFolder(Experiment, frozen=True, forbid_unknown_fields=True):
    """An experiment as a folder has it: with what it does not know of, work in it would not go together."""


QUICK = Experiment(demonstrations=50, epochs=20, dagger_episodes=20, lama_seconds=10.0, quick=True)


class Run(msgspec.Struct, frozen=True):
    """That a run was started: on which machine, and on which day."""

    machine: Machine
    date: str = ""  # such as 2026-07-31


@dataclass(frozen=True)
class ExperimentFolder:
    """A folder, and the experiment that all in it belongs to."""

    path: Path
    experiment: Experiment

    def note_run(self) -> None:
        """Note that a run was started on this machine, and when."""
        run = Run(machine(), datetime.now(timezone.utc).date().isoformat())
        write_atomically(self.path / "runs" / f"{uuid.uuid4().hex}.json", encode(run, indent=0))


def open_folder(path: Path, experiment: Experiment) -> ExperimentFolder:
    """Begin a folder, or take up one; `BadInput` for one of another experiment, or with other things in it."""
    file = path / EXPERIMENT
    with alone_in(path, "beginning a reproduction", PATIENCE):
        if not file.exists():
            remove_leftovers(file)
            if any(not name.name.startswith(".") for name in path.iterdir()):
                raise BadInput(f"{path}: holds other files; choose a new folder as --output")
            write_atomically(file, encode(experiment, indent=1))
    known = read_experiment(path)
    if known != experiment:
        was, now = msgspec.structs.asdict(known), msgspec.structs.asdict(experiment)
        different = [name for name in was if was[name] != now[name]]
        others = ", ".join(f"{name.replace('_', ' ')} {was[name]}, not {now[name]}" for name in different)
        raise BadInput(f"{path}: was begun with {others}; choose another --output")
    return ExperimentFolder(path, experiment)


def read_experiment(folder: Path) -> Experiment:
    """Return what the work in a folder has in common."""
    path = folder / EXPERIMENT
    if not path.exists():
        raise BadInput(f"{folder}: no reproduction: there is no {EXPERIMENT} in it; `bilevel reproduce` makes one")
    found = decode(read_bytes(path), _OfFolder, f"{path}: not what `bilevel reproduce` wrote there")
    return Experiment(**msgspec.structs.asdict(found))


def read_intact(path: Path, kind: type[Value]) -> Value | None:
    """Return what is in a file, or `None` where there is none or it is damaged: whoever makes it makes it again."""
    try:
        return decode(read_bytes(path), kind, path)
    except BadInput:
        return None


class Locks:
    """The locks that this run holds, by the names of what they are for.

    A lock is that of the operating system on a file, so it is gone when its process is, however that ended; over NFS,
    when the server has not heard of the machine for a while. Files stay, since removing one that somebody else is about
    to lock would make it two. Should two runs do the same unit where a file system knows no locks, they write the same
    files; nothing is lost but time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}  # open files
        folder.mkdir(parents=True, exist_ok=True)

    def acquire(self, names: Sequence[str]) -> bool:
        """Lock all of these, or none where another run holds one of them."""
        for number, name in enumerate(names):
            handle = os.open(self._folder / name.replace("/", "+"), os.O_RDWR | os.O_CREAT, 0o666)
            if taken_by_another(handle):
                os.close(handle)
                self.release(names[:number])
                return False
            self._held[name] = handle
        return True

    def release(self, names: Sequence[str]) -> None:
        """Give back those of these locks that are held."""
        for name in names:
            if name in self._held:
                os.close(self._held.pop(name))

    def close(self) -> None:
        """Give back all locks."""
        self.release(tuple(self._held))
