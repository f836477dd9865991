"""Files a person can rely on: written whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bilevel.symbolic.domain import BadInput


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Turn what the file system refuses into `BadInput` that says what cannot be written."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None


def write_atomically(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write beside the target and move it there; `BadInput` where the place cannot be written to.

    Links are followed. What is there and is not a plain file, such as /dev/stdout, is written to as it is. Content that
    comes in blocks is written block by block. What an earlier writer left when it was killed is removed.
    """
    data = content.encode() if isinstance(content, str) else content
    blocks = (data,) if isinstance(data, bytes) else data
    with writing(path):
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                file.writelines(blocks)
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        for leftover in target.parent.glob(f".{glob.escape(target.name)}.{8 * '[0-9a-f]'}.part"):
            leftover.unlink(missing_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            with open(temporary, "xb") as file:
                if target.exists():
                    temporary.chmod(target.stat().st_mode & 0o777)
                file.writelines(blocks)
                file.flush()
                os.fsync(file.fileno())  # else a power failure may leave the new name with nothing behind it
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def require_writable(path: Path) -> None:
    """`BadInput` at once where writing would fail after long work; folders that are missing are made."""
    with writing(path):
        if path.is_dir():
            raise BadInput(f"{path}: cannot be written: Is a directory")
        if path.is_file() or not path.exists():
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=target.parent).close()


def folder_lock(folder: Path, doing: str, patience: float = 0.0) -> AbstractContextManager[object]:
    """Keep other processes from doing the same in a folder, which is made if need be; the lock goes with this process.

    Wait some seconds for another that is about to end; `BadInput` where it does not.
    """
    from filelock import FileLock, Timeout

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return FileLock(folder / ".lock").acquire(timeout=patience)
        except Timeout:
            others = "wait for it or choose another --output"
            raise BadInput(f"{folder}: another process is {doing} here; {others}") from None


@contextmanager
def new_folder(output: Path) -> Iterator[Path]:
    """Give a folder to write into that becomes the output if all goes well, and is removed otherwise.

    `BadInput` where there is something already, but for an empty folder.
    """
    if output.is_symlink() or (output.exists() and not (output.is_dir() and not any(output.iterdir()))):
        raise BadInput(f"{output}: there is something already; choose another --output or remove it")
    unfinished = output.with_name(f".{output.name}.{secrets.token_hex(4)}")
    with writing(output):
        unfinished.mkdir(parents=True)
    try:
        yield unfinished
        os.replace(unfinished, output)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def read_bytes(path: Path) -> bytes:
    """The content of a file; `BadInput` where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
