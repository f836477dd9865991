"""Units that are done where the folder cannot be seen: what they read is sent there, and what they write comes back.

What is written goes file by file, as it comes, so that little is lost if either side is killed.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType

import bilevel
from bilevel.demonstrations.manifest import MANIFEST, PACKAGES
from bilevel.experiments.reproduction.backends import Event, Told
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.processes import Processes
from bilevel.experiments.reproduction.settings import Experiment
from bilevel.experiments.reproduction.unit import Unit
from bilevel.files import write_atomically
from bilevel.policies.policy_files import LEARNING_PACKAGES, POLICY
from bilevel.symbolic.domain import BadInput

COMPLETING = (MANIFEST, POLICY)  # files that are written after all others of their folder
PLANNER_PACKAGES = ("up-fast-downward",)
LISTEN = 1.0  # seconds between answers, unless the unit is over
SEND_EVERY = 3.0  # seconds between files of a unit that goes on

Files = dict[str, bytes]  # by their paths within the folder, in an order in which they can be written


class Misfit(BadInput):
    """What is installed there is not what is installed here, so results would not be the same."""


@dataclass(frozen=True)
class Parcel:
    """What has happened to a unit since the last one."""

    events: Sequence[Event]
    files: Files
    removed: Sequence[str] = ()

    @property
    def is_last(self) -> bool:
        return any(not isinstance(event, Told) for event in self.events)


def pack(kept: Kept, paths: Sequence[Path]) -> Files:
    """All files that are at or below these paths."""
    backwards = {kept.relative(file): file.read_bytes() for file in _backwards(kept, paths)}
    return dict(reversed(backwards.items()))


def unpack(kept: Kept, files: Files, removed: Iterable[str] = ()) -> None:
    for name, data in files.items():
        write_atomically(kept.folder / name, data)
    for name in removed:
        path = kept.folder / name
        path.unlink(missing_ok=True)
        with suppress(OSError):  # others are still in it
            path.parent.rmdir()


def _backwards(kept: Kept, paths: Sequence[Path]) -> Iterator[Path]:
    """Files, each looked for before those that were written before it.

    Whoever reads them in this order, while they are being written, has none without those that go before it.
    """
    for path in reversed(paths):
        completing = [path / name for name in COMPLETING]
        yield from (file for file in completing if file.is_file())
        yield from (file for file in kept.files(path) if file not in completing)


class Workplace:
    """Does units, one at a time, in a process that it starts for them and a folder that nobody else uses."""

    def __init__(self, experiment: Experiment, gpu_share: float, versions: Mapping[str, str]) -> None:
        """Versions are those that are to be found here, too."""
        self._versions = versions
        self._kept = Kept(_private_folder(), experiment)
        self._team = Processes(self._kept, 1, gpu_share)
        self._unit: Unit | None = None
        self._sent: dict[str, tuple[int, int]] = {}  # by file, what is known to the other side
        self._sent_at = 0.0

    def begin(self, unit: Unit, *inputs: Files) -> Parcel:
        check_versions(self._versions)
        for child in self._kept.folder.iterdir():
            shutil.rmtree(child)
        for files in inputs:
            unpack(self._kept, files)
        self._unit, self._sent, self._sent_at = unit, {}, time.monotonic()
        self._new_files()  # which are those that came from there
        with _another_main_module():
            self._team.start(unit)
        return Parcel([Told(unit, f"beginning on {platform.node()}")], {})

    def news(self) -> Parcel:
        """What has happened, after a second, or as soon as the unit is over."""
        events: list[Event] = []
        end = time.monotonic() + LISTEN
        while (left := end - time.monotonic()) > 0:
            events = [*events, *self._team.events(left)][-1:]
            if not Parcel(events, {}).is_last:
                continue
            files = self._new_files()
            return Parcel(events, files, self._gone())
        if time.monotonic() - self._sent_at < SEND_EVERY:
            return Parcel(events, {})
        self._sent_at = time.monotonic()
        return Parcel(events, self._new_files())

    def leave(self) -> None:
        self._team.close()
        shutil.rmtree(self._kept.folder, ignore_errors=True)

    def _new_files(self) -> Files:
        """Those that the other side does not know yet, or not as they are now."""
        assert self._unit is not None
        found: Files = {}
        for file in _backwards(self._kept, self._unit.products(self._kept)):
            name = self._kept.relative(file)
            with suppress(FileNotFoundError):  # it has just been removed
                stamp = _stamp(file)
                if self._sent.get(name) != stamp:
                    found[name] = file.read_bytes()
                    self._sent[name] = stamp
        return dict(reversed(found.items()))

    def _gone(self) -> list[str]:
        return [name for name in self._sent if not (self._kept.folder / name).exists()]


def _stamp(file: Path) -> tuple[int, int]:
    """Another one for each file that takes the place."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


@contextmanager
def _another_main_module() -> Iterator[None]:
    """For processes that are started: they would import the program that runs here, which is not ours, and large."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


def _private_folder() -> Path:
    """A folder that is this process's for as long as it lives; those of processes that were killed are removed."""
    shared = Path(tempfile.gettempdir()) / f"bilevel-{os.getuid()}"
    shared.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(shared, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # so that nobody takes a folder for a left one before it is taken
        for folder in shared.iterdir():
            if (left := _take(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(left)
        folder = Path(tempfile.mkdtemp(dir=shared))
        _take(folder)
        return folder
    finally:
        os.close(handle)


def _take(folder: Path) -> int | None:
    """Lock a folder until this process ends, or what is returned is closed; `None` if another process has it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # that process has just removed it
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def versions_here() -> dict[str, str]:
    """Of all that results depend on, as far as it is installed."""
    found = {"bilevel": bilevel.__version__, "python": ".".join(platform.python_version_tuple()[:2])}
    for package in (*PACKAGES, *LEARNING_PACKAGES, *PLANNER_PACKAGES):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package).partition("+")[0]  # builds for a GPU differ in what follows
    return found


def check_versions(wanted: Mapping[str, str]) -> None:
    """`Misfit` where something else is installed on this machine than there."""
    here = versions_here()
    others = [f"{name} {here.get(name, 'is missing')}, not {there}" for name, there in wanted.items()]
    differences = ", ".join(line for line, name in zip(others, wanted, strict=True) if here.get(name) != wanted[name])
    if differences:
        raise Misfit(f"{platform.node()}, a node of the cluster, has {differences}; install the same on all nodes")
