"""Files a person can rely on: either the old one or the whole new one, never half of it."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
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


# Folders for what nobody needs afterwards


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder for a while; should this process be killed, the next that makes one removes it."""
    folder, handle = make_scratch_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def make_scratch_folder() -> tuple[Path, int]:
    """Make a folder that is this process's for as long as it lives, or until the number beside it is closed.

    Those of processes that were killed are removed.
    """
    shared = _our_folder()
    for folder in shared.iterdir():
        with suppress(FileNotFoundError, NotADirectoryError):  # another process has just removed it
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            if not taken_by_another(handle):
                shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)
    while True:
        folder = Path(tempfile.mkdtemp(dir=shared))
        with suppress(FileNotFoundError):  # another process took it for one that was left, and removed it
            handle = os.open(folder, os.O_RDONLY)
            if not taken_by_another(handle) and folder.exists():
                return folder, handle
            os.close(handle)


def _our_folder() -> Path:
    """Return this user's folder below the system's own; `BadInput` where somebody else could have put things there."""
    folder = Path(tempfile.gettempdir()) / f"bilevel-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError as error:
        raise BadInput(f"{folder}: cannot be used as a folder: {error.strerror}") from None
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
        reason = "it must be a folder that is yours, and that nobody else may write to"
        raise BadInput(f"{folder}: not safe: {reason}; remove it, or set TMPDIR to a folder of your own")
    return folder
