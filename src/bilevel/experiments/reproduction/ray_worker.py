"""A worker on another machine, which does not see the folder: what a unit reads is sent, and what it writes comes back.

What is written comes file by file, so that little is lost if either side is killed. Nothing here needs Ray.
"""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from bilevel.demonstrations.dataset import MANIFEST
from bilevel.experiments.reproduction.backends import Advanced, Event, Processes
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder
from bilevel.experiments.reproduction.units import Unit
from bilevel.files import make_scratch_folder, write_atomically
from bilevel.policies.folder import POLICY
from bilevel.symbolic.domain import BadInput
from bilevel.versions import versions

COMPLETING = (MANIFEST, POLICY)  # files that are written after all others of their folder
PACKAGES = ("mujoco", "metaworld", "torch", "safetensors", "up-fast-downward")
LISTEN = 1.0  # seconds between messages, unless the unit is over
SEND_EVERY = 3.0  # seconds between files of a unit that goes on

Files = dict[str, bytes]  # by their paths within the folder, in an order in which they can be written
Known = dict[str, tuple[int, int]]  # files as the other side has them; another number for each that takes the place


class OtherVersions(BadInput):
    """What is installed there is not what is installed here, so results would not be the same."""


@dataclass(frozen=True)
class Message:
    """What has happened to a unit since the last one."""

    event: Event | None
    files: Files = field(default_factory=dict)
    removed: Sequence[str] = ()

    @property
    def is_last(self) -> bool:
        """Whether the unit is over."""
        return self.event is not None and not isinstance(self.event, Advanced)


class RemoteWorker:
    """Does units, one at a time, in a process that it starts for them and a folder that nobody else uses."""

    def __init__(self, experiment: Experiment, gpu_share: float, wanted: Mapping[str, str]) -> None:
        """`wanted` are the versions that are to be found here, too."""
        self._wanted = wanted
        self._folder = ExperimentFolder(make_scratch_folder()[0], experiment)
        self._processes = Processes(self._folder, 1, gpu_share)
        self._known: Known = {}
        self._sent = 0.0

    def begin(self, unit: Unit, files: Files) -> Message:
        """Begin a unit with these files; return the first message about it."""
        check_versions(self._wanted)
        # Else the process for the unit would import the program that runs here, which is Ray's, and large.
        sys.modules["__main__"] = ModuleType("__main__")
        for child in self._folder.path.iterdir():
            shutil.rmtree(child)
        write_files(self._folder.path, files)
        self._unit, self._known, self._sent = unit, {}, time.monotonic()
        self._new_files()  # which are those that came from there
        self._processes.start(unit)
        return Message(Advanced(unit, f"beginning on {platform.node()}"))

    def news(self) -> Message:
        """Return what has happened, after a second, or as soon as the unit is over."""
        message, end = Message(None), time.monotonic() + LISTEN
        while (left := end - time.monotonic()) > 0:
            for event in self._processes.events(left):
                message = Message(event)
            if message.is_last:
                files = self._new_files()
                removed = [name for name in self._known if not (self._folder.path / name).exists()]
                return Message(message.event, files, removed)
        if time.monotonic() - self._sent < SEND_EVERY:
            return message
        self._sent = time.monotonic()
        return Message(message.event, self._new_files())

    def stop(self) -> None:
        """End the processes and remove all files."""
        self._processes.close()
        shutil.rmtree(self._folder.path, ignore_errors=True)

    def _new_files(self) -> Files:
        return read_files(self._folder.path, [*self._unit.unfinished, *self._unit.outputs], self._known)


def read_files(folder: Path, names: Sequence[str], known: Known | None = None) -> Files:
    """Read all files at or below these paths within a folder, but for those that are known as they are.

    They may be written meanwhile. Since each is read before those that were written before it, none is there without
    these.
    """
    known = {} if known is None else known
    found: Files = {}
    for file in _last_written_first(folder, names):
        name = file.relative_to(folder).as_posix()
        with suppress(FileNotFoundError):  # it has just been removed
            status = file.stat()
            if known.get(name) != (status.st_ino, status.st_mtime_ns):
                found[name] = file.read_bytes()
                known[name] = status.st_ino, status.st_mtime_ns
    return dict(reversed(found.items()))


def _last_written_first(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    for path in (folder / name for name in reversed(names)):
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        files = [file for file in found if file.is_file() and not file.name.startswith(".")]  # which are being written
        yield from sorted(files, key=lambda file: file.name not in COMPLETING)


def write_files(folder: Path, files: Files, removed: Iterable[str] = ()) -> None:
    """Write files into a folder, and remove others from it."""
    for name, data in files.items():
        write_atomically(folder / name, data)
    for name in removed:
        path = folder / name
        path.unlink(missing_ok=True)
        with suppress(OSError):  # others are still in it
            path.parent.rmdir()


def versions_here() -> dict[str, str]:
    """Return the versions of all that results depend on, as far as it is installed."""
    found = {name: version.partition("+")[0] for name, version in versions(PACKAGES).items()}  # "+": builds for a GPU
    return {**found, "python": found["python"].rpartition(".")[0]}


def check_versions(wanted: Mapping[str, str]) -> None:
    """`OtherVersions` where something else is installed on this machine than there."""
    here = versions_here()
    different = [
        f"{name} {here.get(name, 'is missing')}, not {there}"
        for name, there in wanted.items()
        if here.get(name) != there
    ]
    if different:
        node = f"{platform.node()}, a node of the cluster,"
        raise OtherVersions(f"{node} has {', '.join(different)}; install the same on all nodes")
