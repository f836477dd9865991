"""Files a person can rely on: either the old one or the whole new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bilevel.symbolic.domain import BadInput


def write_atomically(path: Path, text: str) -> None:
    """Write beside the target and move it there; `BadInput` where the place cannot be written to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
