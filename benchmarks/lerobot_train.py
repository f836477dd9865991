"""LeRobot's own `lerobot-train`, run in LeRobot's environment by `lerobot_policies.py`, for data without pictures:

    python benchmarks/lerobot_train.py --policy.type=act --dataset.root=... --output_dir=...

The data set is kept in memory, so that a core learns and does not read, and each checkpoint says how many CPU seconds
it took. Every item is what LeRobot's data set gives; the first one is compared.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.scripts import lerobot_train

SECONDS = "seconds.txt"
NEEDED = ("observation.", "action", "index", "episode_index", "task_index", "timestamp")


def items(data: Any, numbers: list[int]) -> list[dict[str, Any]]:
    """Return the items of a data set with these numbers."""
    if not hasattr(data, "kept"):
        first = data[numbers[0]]
        whole = data.hf_dataset[:]
        data.kept = {name: torch.stack(list(column)) for name, column in whole.items() if name.startswith(NEEDED)}
        index = data.meta.episodes
        data.bounds = torch.tensor([index["dataset_from_index"], index["dataset_to_index"]])
        (mine,) = items(data, numbers[:1])
        assert all(torch.equal(first[name], value) for name, value in mine.items() if name != "task")
        assert first["task"] == mine["task"]
    chosen = torch.tensor(numbers)
    start, end = data.bounds[:, data.kept["episode_index"][chosen], None]
    found = {name: column[chosen] for name, column in data.kept.items()}
    for name, steps in (data.delta_indices or {}).items():
        wanted = chosen[:, None] + torch.tensor(steps)
        found[name] = data.kept[name][wanted.clamp(start, end - 1)]
        found[f"{name}_is_pad"] = (wanted < start) | (wanted >= end)
    tasks = data.meta.tasks.index[found["task_index"].numpy()]
    columns = {name: column.unbind() for name, column in found.items()}
    return [{**{name: each[row] for name, each in columns.items()}, "task": tasks[row]} for row in range(len(numbers))]


def seconds_before(arguments: list[str]) -> float:
    """Return how many CPU seconds the checkpoint took from which training goes on."""
    config = next((each.partition("=")[2] for each in arguments if each.startswith("--config_path=")), None)
    return float((Path(config).parents[1] / SECONDS).read_text(encoding="utf-8")) if config else 0.0


def main() -> None:
    before, save = seconds_before(sys.argv), lerobot_train.save_checkpoint

    def save_with_seconds(checkpoint_dir: Path, **parts: Any) -> None:
        save(checkpoint_dir=checkpoint_dir, **parts)
        (checkpoint_dir / SECONDS).write_text(f"{before + time.process_time():.1f}\n", encoding="utf-8")

    torch.set_num_threads(1)
    LeRobotDataset.__getitems__ = items
    lerobot_train.save_checkpoint = save_with_seconds
    lerobot_train.main()


if __name__ == "__main__":
    main()
