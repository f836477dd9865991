"""The examples of worlds of one's own, from nothing to an evaluation: python benchmarks/own_worlds.py

For each world and seed it collects demonstrations with 3 objects, learns a policy, and runs it with 1, 3 and 9 objects
in episodes that it has not seen: a few minutes on 2 cores. The results are one line for each world, seed and size.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from result_files import Row, origin, write_rows

import bilevel
from bilevel.experiments.records import rows_by_objects

EXAMPLES = Path(__file__).parents[1] / "examples"
WORLDS = {"scrapyard": "own_world/own_world.py:task", "minigrid-sorting": "minigrid/minigrid_sorting.py:task"}
OBJECTS, SIZES = 3, (1, 3, 9)


def run(world: str, seed: int, demonstrations: int, episodes: int, folder: Path) -> Iterator[Row]:
    """The lines of one world and seed."""
    task = bilevel.find_task(f"{EXAMPLES / WORLDS[world]}")
    data = bilevel.collect(task, folder / "demonstrations", objects=OBJECTS, episodes=demonstrations, seed=seed)
    began = time.perf_counter()
    learned = bilevel.learn(data, folder / "policy", task=task, seed=seed)
    seconds = time.perf_counter() - began
    records = bilevel.evaluate(folder / "policy", task, objects=SIZES, episodes=episodes, seed=seed)
    for objects, row in rows_by_objects(records).items():
        yield {
            "task": world,
            "seed": seed,
            "demonstrations": demonstrations,
            "objects": objects,
            **row.as_json(),
            "rules": len(learned.rules),
            "learning_seconds": round(seconds, 1),
            **origin(),
            "versions": records[0].versions,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path("build/own-worlds"))
    parser.add_argument("--output", type=Path, default=Path("results/own-worlds.jsonl"))
    arguments = parser.parse_args()
    lines = []
    for world in WORLDS:
        for seed in range(arguments.seeds):
            folder = arguments.folder / f"{world}-{seed}"
            shutil.rmtree(folder, ignore_errors=True)
            for line in run(world, seed, arguments.demonstrations, arguments.episodes, folder):
                print(
                    f"{world}, seed {seed}, {line['objects']} objects: {line['successes']}/{line['episodes']}",
                    flush=True,
                )
                lines.append(line)
    write_rows(arguments.output, lines)


if __name__ == "__main__":
    main()
