"""Two workers that would sleep for ten minutes, each with a file until it ends: `python sleeping_workers.py DIR`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bilevel.processes import spread


def start(folder: Path) -> Callable[[int], None]:
    def work(number: int) -> None:
        file = folder / str(number)
        file.touch()
        try:
            time.sleep(600)
        finally:
            file.unlink()

    return work


if __name__ == "__main__":
    list(spread(partial(start, Path(sys.argv[1])), range(2), workers=2))
