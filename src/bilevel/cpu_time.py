"""CPU time: how long something takes, whatever else the machine is busy with."""

from __future__ import annotations

import time

try:
    import resource
except ImportError:  # Windows, where the programs that are run are not counted
    resource = None  # type: ignore[assignment]


def cpu_seconds() -> float:
    """Return the CPU seconds of this thread so far, and those of all programs that this process has waited for."""
    if resource is None:
        return time.thread_time()
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + programs.ru_utime + programs.ru_stime
