"""What machine this is."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path


def machine() -> dict[str, str | int | None]:
    """Return what there is to say about this machine."""
    cpu = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        cpu = names[0] if names else cpu
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system()}
