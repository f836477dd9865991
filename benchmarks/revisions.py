"""The project as it was at a commit, for programs that compare it with what is here."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEFORE = "4305392"  # the last commit at which the eight tasks were wired through every layer


@contextmanager
def checked_out(revision: str, *folders: str) -> Iterator[Path]:
    """Give these folders of a commit, in a temporary one."""
    command = ["git", "archive", "--format=tar", revision, *folders]
    data = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as name, tarfile.open(fileobj=io.BytesIO(data)) as archive:
        if hasattr(tarfile, "data_filter"):  # not yet in Python 3.11.2, as Debian has it
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(name)
        yield Path(name)
