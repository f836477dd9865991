"""How long learning takes: `bilevel learn` from 200 demonstrations of Blocks, by the paper's settings and by ours.

    python benchmarks/learning_speed.py                        # 5 minutes on 2 cores
    python benchmarks/learning_speed.py --presets best

Writes a line for each to results/learning.jsonl, in place of that of an earlier run on the same device.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import torch
from result_files import Row, origin, replace_row

from bilevel.demonstrations.collection import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.learning.learn import learn
from bilevel.learning.networks import PRESETS
from bilevel.lowlevel.training import find_device
from bilevel.tasks.registry import find_task

TASK = "blocks"


def measure(demonstrations: Demonstrations, preset: str, workers: int) -> Row:
    task = find_task(TASK)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        learned = learn(demonstrations, folder, task=task, preset=preset, workers=workers)
    seconds, found = time.perf_counter() - began, learned.card.summary
    return {
        "task": TASK,
        "preset": preset,
        "device": torch.cuda.get_device_name() if find_device().type == "cuda" else find_device().type,
        "demonstrations": len(demonstrations),
        "parameters": sum(array.size for array in learned.weights.values()),
        "rules": len(learned.rules),
        **{name: found[name] for name in ("samples", "validation_loss")},
        "seconds": round(seconds, 1),
        **origin([*task.packages, "torch"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", choices=list(PRESETS), default=list(PRESETS))
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=Path("results/learning.jsonl"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = collect(find_task(TASK), folder, episodes=given.demonstrations, workers=given.workers)
        for preset in given.presets:
            row = measure(found, preset, given.workers)
            print(json.dumps(row), flush=True)
            replace_row(given.output, row, ("task", "preset", "device"))


if __name__ == "__main__":
    main()
