"""Learn and measure the policies that come with the package, one for each of its tasks:

    python benchmarks/pretrained.py                                      # an hour on 2 cores, 8 minutes on 16
    python benchmarks/pretrained.py --tasks blocks --episodes 10         # a first impression
    python benchmarks/pretrained.py --install                            # then put them into the package

Each policy is learned from 200 demonstrations with three objects, and measured with 3, 5 and 10 objects, 100 episodes
each. Nothing else uses this seed, so no other program has seen these episodes. How often a policy succeeded is written
into its policy.json. Everything is kept in a folder, and what is there already is not made again, so an interrupted run
can be taken up.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from result_files import Row, origin, read_rows, replace_row

from bilevel.demonstrations.collection import collect
from bilevel.experiments.evaluation import Evaluation, open_results, read_results
from bilevel.experiments.methods import find_policy
from bilevel.experiments.records import make_row, rows_by_objects
from bilevel.learning.learn import CURVES, learn
from bilevel.learning.networks import PRESETS, LearningConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.policies.policy_folder import (
    BISON,
    POLICY,
    UNFINISHED,
    Measured,
    keep_measured,
    read_policy,
)
from bilevel.processes import usable_cores
from bilevel.tabletop import TASKS
from bilevel.tasks.registry import find_task

SEED = 2605  # of demonstrations, learning and evaluation; other programs use lower ones
SHOWN = 3  # objects in the demonstrations
PRESET = "best"
PACKAGE = Path("src/bilevel/tabletop/pretrained")


@dataclass(frozen=True)
class Settings:
    """What to make, and where to keep it."""

    folder: Path
    demonstrations: int
    sizes: tuple[int, ...]
    episodes: int  # with each number of objects
    quick: bool

    @property
    def config(self) -> LearningConfig:
        return LearningConfig(training=TrainingConfig(epochs=1)) if self.quick else PRESETS[PRESET]

    def data_set(self, task: str) -> Path:
        return self.folder / "demonstrations" / task

    def policy(self, task: str) -> Path:
        return self.folder / "policies" / task

    def results(self, task: str) -> Path:
        return self.folder / "episodes" / f"{task}.jsonl"


def make(settings: Settings, name: str, workers: int) -> str:
    """Collect demonstrations of a task and learn its policy."""
    folder, task = settings.policy(name), find_task(name)
    shown = collect(
        task,
        settings.data_set(name),
        objects=SHOWN,
        episodes=settings.demonstrations,
        seed=SEED,
        workers=workers,
    )
    checkpoints = folder / UNFINISHED
    checkpoints.mkdir(parents=True, exist_ok=True)
    learn(
        shown,
        folder,
        task=task,
        preset=PRESET,
        config=settings.config,
        seed=SEED,
        workers=workers,
        checkpoints=checkpoints,
    )
    shutil.rmtree(checkpoints)
    return name


def measure(settings: Settings, name: str, workers: int) -> bool:
    """Run what is missing of the episodes of a policy; return whether anything was."""
    path = settings.results(name)
    if path.exists() and len(path.read_bytes().splitlines()) == len(settings.sizes) * settings.episodes:
        return False  # on another machine, perhaps
    policy = find_policy(BISON, settings.policy(name))
    evaluation = Evaluation(policy, find_task(name), settings.sizes, settings.episodes, SEED)
    with open_results(path, evaluation) as results:
        return len(list(results.collect(workers))) > 0


def keep(settings: Settings, name: str) -> Row:
    """Note in the folder of a policy how often it succeeds, and return its row."""
    folder, records = settings.policy(name), list(read_results(settings.results(name)))
    policy, rows = read_policy(folder), rows_by_objects(records)
    successes = {size: (row.successes, row.episodes) for size, row in rows.items()}
    sizes = ",".join(map(str, settings.sizes))
    command = f"bilevel evaluate --policy {name} --objects {sizes} --episodes {settings.episodes} --seed {SEED}"
    keep_measured(folder, Measured(successes, SEED, f"{command} --output build/{name}.jsonl", records[0].versions))
    return {
        "task": name,
        "preset": PRESET,
        "seed": SEED,
        "demonstrations": settings.demonstrations,
        "demonstrated_objects": SHOWN,
        "rules": len(policy.rules),
        "parameters": policy.parameters,
        "bytes": sum(file.stat().st_size for file in folder.iterdir() if file.name != CURVES),
        "digest": policy.digest,
        "learning": policy.card.summary,
        "settings": policy.card.settings,
        **make_row(records).as_json(),
        "by_objects": {str(size): row.as_json() for size, row in rows.items()},
        "failures": [[record.objects, record.seed, record.reason] for record in records if not record.success],
        **origin(),
        "versions": records[0].versions,
    }


def run(settings: Settings, tasks: Sequence[str], workers: int, output: Path) -> None:
    """Learn the policies of all tasks at the same time, then measure one after the other, with all workers."""
    missing = [task for task in tasks if not (settings.policy(task) / POLICY).exists()]
    if missing:
        each = -(-workers // len(missing))
        with ProcessPoolExecutor(min(workers, len(missing)), multiprocessing.get_context("spawn")) as pool:
            for made in as_completed([pool.submit(make, settings, task, each) for task in missing]):
                print(f"learned {made.result()}", flush=True)
    for task in tasks:
        is_new, row = measure(settings, task, workers), keep(settings, task)
        known = {(before["task"], before["digest"]): before["machine"] for before in read_rows(output)}
        if not is_new:  # then the machine is that which measured it
            row["machine"] = known.get((task, row["digest"]), row["machine"])
        replace_row(output, row, ["task"])
        counts = {size: f"{found['successes']}/{found['episodes']}" for size, found in row["by_objects"].items()}
        print(f"{task}: {counts}", flush=True)


def install(settings: Settings, tasks: Sequence[str], package: Path) -> None:
    """Put the policies into the package, without the curves of their training."""
    for task in tasks:
        shutil.rmtree(package / task, ignore_errors=True)
        shutil.copytree(settings.policy(task), package / task, ignore=shutil.ignore_patterns(CURVES, UNFINISHED))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--episodes", type=int, default=100, help="with each number of objects")
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="train for one epoch, to try the program")
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--folder", type=Path, default=Path("build/pretrained"))
    parser.add_argument("--output", type=Path, default=Path("results/pretrained.jsonl"))
    parser.add_argument("--install", action="store_true", help=f"put the policies into {PACKAGE}")
    given = parser.parse_args()
    settings = Settings(given.folder, given.demonstrations, tuple(given.sizes), given.episodes, given.quick)
    run(settings, given.tasks, given.workers, given.output)
    if given.install:
        install(settings, given.tasks, PACKAGE)


if __name__ == "__main__":
    main()
