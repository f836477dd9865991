"""Runs that share a folder, on one machine or on many, do not do the same work: whoever begins a unit locks it.

A lock is that of the operating system on a file, so it is gone when its process is, however that ended; over NFS, when
the server has not heard of the machine for a while. Should two runs do the same unit where a file system knows no
locks, they write the same files; nothing is lost but time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bilevel.files import taken_by_another


class Locks:
    """The locks that this run holds, by the names of what they are for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}  # open files
        folder.mkdir(parents=True, exist_ok=True)

    def acquire(self, names: Sequence[str]) -> bool:
        """Lock all of these, or none where another run holds one of them."""
        for number, name in enumerate(names):
            if not self._acquire(name):
                self.release(names[:number])
                return False
        return True

    def release(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._held:
                self._path(name).unlink(missing_ok=True)  # before anybody else can hold it
                os.close(self._held.pop(name))

    def close(self) -> None:
        self.release(tuple(self._held))

    def _acquire(self, name: str) -> bool:
        path = self._path(name)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if taken_by_another(handle) or not _is_at(handle, path):  # whoever held it has removed it meanwhile
            os.close(handle)
            return False
        self._held[name] = handle
        return True

    def _path(self, name: str) -> Path:
        return self._folder / name.replace("/", "+")


def _is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is the one that is at a path now."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
