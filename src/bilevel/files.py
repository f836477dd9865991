"""Files a person can rely on: either the old one or the whole new one, never half of it."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bilevel.symbolic.domain import BadInput

if sys.platform != "win32":
    import fcntl


def write_atomically(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write beside the target and move it there; `BadInput` where the place cannot be written to.

    Links are followed. What is there and is not a plain file, such as /dev/stdout, is written to as it is. Content that
    comes in blocks is written block by block.
    """
    data = content.encode() if isinstance(content, str) else content
    blocks = (data,) if isinstance(data, bytes) else data
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                file.writelines(blocks)
        else:
            _replace(Path(os.path.realpath(path)), blocks)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None


def require_writable(path: Path) -> None:
    """`BadInput` at once where writing would fail after long work; folders that are missing are made."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file() or not path.exists():
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None


def taken_by_another(handle: int) -> bool:
    """Return whether another process has locked this open file or folder; if none has, we have, until it is closed."""
    if sys.platform == "win32":  # which knows no such locks
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # neither do some file systems
        return False
    return False


@contextmanager
def alone_in(folder: Path, doing: str, patience: float = 0.0) -> Iterator[None]:
    """Keep other processes from doing the same in a folder, made if need be; the lock goes with this process.

    For some seconds, wait for another who is about to end, as workers of a killed process are.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be used as a folder: {error.strerror}") from None
    end = time.monotonic() + patience
    try:
        while taken_by_another(handle):
            if time.monotonic() > end:
                raise BadInput(f"{folder}: another process is {doing} here; wait for it or choose another --output")
            time.sleep(0.2)
        yield
    finally:
        os.close(handle)


def remove_leftovers(path: Path) -> None:
    """Remove what writing left beside a target where it was killed."""
    for leftover in path.parent.glob(f".{path.name}.*"):
        leftover.unlink(missing_ok=True)


def _replace(path: Path, blocks: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            if path.exists():
                temporary.chmod(path.stat().st_mode & 0o777)
            file.writelines(blocks)
            file.flush()
            os.fsync(file.fileno())  # else a power failure may leave the new name with nothing behind it
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
