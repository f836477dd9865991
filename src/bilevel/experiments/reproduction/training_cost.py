"""What training takes: seconds and memory."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bilevel.experiments.machines import forget_peak, machine, own_peak
from bilevel.experiments.reproduction.folder import read_json
from bilevel.files import write_atomically

if TYPE_CHECKING:  # it needs torch, which only training does
    from bilevel.learning.bilevel import Progress

SAVED_EVERY = 2.0  # seconds


class Cost:
    """What training takes, over all the times that it was begun, in a file for each network."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        known = read_json(paths[0]) or {}
        self._seconds, self._peak = float(known.get("seconds", 0.0)), float(known.get("peak_mebibytes", 0.0))
        self._began, self._saved = time.monotonic(), 0.0
        forget_peak()

    def note(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._saved > SAVED_EVERY or progress.done == progress.total:
            self._saved = now
            self._write(self._seconds + now - self._began)

    def _write(self, seconds: float) -> None:
        from bilevel.lowlevel.training import usual_device

        content = {
            "seconds": round(seconds, 1),
            "peak_mebibytes": round(max(self._peak, own_peak()), 1),
            "device": usual_device().type,
            "networks": len(self._paths),
            "machine": machine(),
        }
        for path in self._paths:
            write_atomically(path, json.dumps(content) + "\n")
