"""Files a person can rely on: either the old one or the whole new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bilevel.symbolic.domain import BadInput


def write_atomically(path: Path, text: str) -> None:
    """Write beside the target and move it there; `BadInput` where the place cannot be written to.

    Links are followed. What is there and is not a plain file, such as /dev/stdout, is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(Path(os.path.realpath(path)), text)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """What a new file may not be; it can only be asked for by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
