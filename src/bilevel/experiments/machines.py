"""What machine this is, how fast, and how much memory a process has needed."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bilevel.json_files import Plain

Machine = Mapping[str, Plain]  # what is known of one


def machine() -> Machine:
    """Return what there is to say about this machine."""
    return {"cpu": _cpu(), "cores": os.cpu_count(), "system": platform.system()}


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def forget_peak() -> None:
    """Measure the memory of this process from here on, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def own_peak() -> float:
    """The most memory that this process has held since then, else since it began, in mebibytes."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 2**10, 1)
    return _peak(resource.RUSAGE_SELF)


def programs_peak() -> float:
    """The most memory of the largest program that this process has run, in mebibytes.

    At least as much as this process held when it began the program: for a moment the new process is a copy of ours.
    """
    return _peak(resource.RUSAGE_CHILDREN)


def _peak(whose: int) -> float:
    return round(resource.getrusage(whose).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10), 1)
