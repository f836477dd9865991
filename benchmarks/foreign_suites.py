"""Environments that others wrote, from nothing to an evaluation of every task and size that they register.

    python benchmarks/foreign_suites.py ogbench                  # hours on 2 cores; --workers 16 where there are more
    python benchmarks/foreign_suites.py ogbench --family puzzle --seeds 1 --episodes 2       # a first impression

For each family of tasks and each training seed it collects demonstrations with few objects, learns a policy, and runs
it in episodes that it has not seen; the expert's are the ceiling. The results are one line an episode. Everything is
kept in a folder, and what is there already is not made again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from domain_cases import EXAMPLES, Setting
from result_files import Row, origin, write_rows

import bilevel
from bilevel.experiments.evaluation import Evaluation, open_results, read_results
from bilevel.experiments.methods import find_policy
from bilevel.learning.networks import PRESETS
from bilevel.policies.policy_folder import POLICY
from bilevel.tasks.task import Task

EXPERT, BISON, REPLANNING = "expert", "bison", "det-replan"
EXPERT_EPISODES = 10


@dataclass(frozen=True)
class Family:
    """Tasks that one policy serves: how it is learned, and where it is run."""

    task: str  # where it is, below `examples`
    objects: int  # in the demonstrations
    settings: tuple[Setting, ...]
    demonstrations: int = 100
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the environment of the demonstrations
    noise: float | None = None  # in the demonstrations
    epochs: int | None = None  # instead of those of the preset
    method: str = BISON
    planner: str | None = None

    def find(self) -> Task:
        return bilevel.find_task(f"{EXAMPLES / self.task}:task")


def _official(environment: str, objects: int) -> tuple[Setting, ...]:
    """The five tasks with which OGBench evaluates an environment."""
    return tuple(Setting(f"{environment}-task{task}", objects, {"task_id": task}) for task in range(1, 6))


def _sizes(name: str, *sizes: int) -> tuple[Setting, ...]:
    """An environment in all sizes in which it is registered."""
    return tuple(Setting(name, size) for size in sizes)


CUBES = {"cube-single": 1, "cube-double": 2, "cube-triple": 3, "cube-quadruple": 4, "cube-octuple": 8}
PUZZLES = {"puzzle-3x3": 9, "puzzle-4x4": 16, "puzzle-4x5": 20, "puzzle-4x6": 24}

SUITES: Mapping[str, Mapping[str, Family]] = {
    "ogbench": {
        "cubes": Family("ogbench/cubes.py", 3, sum((_official(*each) for each in CUBES.items()), ()), 200),
        "scene": Family("ogbench/scene.py", 1, _official("scene", 1), 300),
        "puzzle": Family(
            "ogbench/puzzle.py",
            9,
            sum((_official(*each) for each in PUZZLES.items()), ()),
            demonstrations=60,
            noise=0.5,
            epochs=60,
            method=REPLANNING,
            planner="search",
        ),
    },
    "kinder": {
        "stick-button": Family("kinder/stick_button.py", 3, _sizes("StickButton2D", 1, 2, 3, 5, 10), 200, epochs=60),
        "shelf": Family("kinder/shelf.py", 3, _sizes("KinematicShelf3D", 1, 2, 3, 5, 10), 60, epochs=30),
        "motion": Family("kinder/motion.py", 3, _sizes("Motion2D", 1, 2, 3, 4, 5), 60, epochs=60),
    },
    "robosuite": {
        "two-of-four": Family("robosuite_bins/pick_place.py", 2, _sizes("PickPlace", 2, 4), 60, epochs=40),
        "two-kinds": Family(  # the other two kinds are in no demonstration
            "robosuite_bins/pick_place.py",
            2,
            _sizes("PickPlace, two kinds never shown", 4),
            60,
            {"kinds": "Cereal,Bread"},
            epochs=40,
        ),
    },
}


@dataclass(frozen=True)
class Run:
    """One policy of a family, or its expert, in one setting."""

    suite: str
    family: str
    setting: Setting
    method: str
    seed: int  # of demonstrations and learning; of the episodes, too, but these are drawn from others
    episodes: int

    @property
    def name(self) -> str:
        name = self.setting.name.replace(", ", "-").replace(" ", "-")
        return f"{name}-{self.setting.objects}-{self.method}-{self.seed}"

    def path(self, folder: Path) -> Path:
        return folder / self.suite / "episodes" / f"{self.name}.jsonl"


def policy_folder(folder: Path, suite: str, family: str, seed: int) -> Path:
    return folder / suite / f"{family}-{seed}"


def learn(
    suite: str, name: str, seed: int, demonstrations: int | None, epochs: int | None, folder: Path, workers: int
) -> str:
    """Collect demonstrations and learn a policy, if there is none."""
    family, target = SUITES[suite][name], policy_folder(folder, suite, name, seed)
    if not (target / "policy" / POLICY).exists():
        task = family.find()
        data = bilevel.collect(
            task,
            target / "demonstrations",
            objects=family.objects,
            episodes=demonstrations or family.demonstrations,
            seed=seed,
            noise=family.noise,
            workers=workers,
            **family.arguments,
        )
        config = PRESETS["best"]
        if epochs or family.epochs:
            training = msgspec.structs.replace(config.training, epochs=epochs or family.epochs, updates=0)
            config = msgspec.structs.replace(config, training=training)
        bilevel.learn(data, target / "policy", task=task, config=config, seed=seed, workers=workers)
    return f"{name}, seed {seed}: learned"


def measure(run: Run, folder: Path) -> str:
    """Run the episodes that are not there yet."""
    family, path = SUITES[run.suite][run.family], run.path(folder)
    policy = None if run.method == EXPERT else policy_folder(folder, run.suite, run.family, run.seed) / "policy"
    evaluated = find_policy(run.method, policy, planner=None if run.method == EXPERT else family.planner)
    about = (run.setting.objects,), run.episodes, run.seed, 0.0, dict(run.setting.arguments)
    if (
        not path.exists() or len(path.read_bytes().splitlines()) != run.episodes
    ):  # else made on another machine, perhaps
        with open_results(path, Evaluation(evaluated, family.find(), *about)) as results:
            list(results.collect())
    records = list(read_results(path))
    return f"{run.name}: {sum(record.success for record in records)}/{len(records)}"


def lines(run: Run, folder: Path) -> Iterator[Row]:
    """One line for each episode."""
    for record in read_results(run.path(folder)):
        yield {
            "suite": run.suite,
            "family": run.family,
            "task": run.setting.name,
            "objects": record.objects,
            "method": run.method,
            "training_seed": None if run.method == EXPERT else run.seed,
            "seed": record.seed,
            "success": record.success,
            "steps": record.steps,
            "reason": record.reason,
            "recovery": {name: count for name, count in record.recovery.items() if count},
            **origin(),
            "command": f"python benchmarks/foreign_suites.py {run.suite}",
            "versions": record.versions,
        }


def runs(suite: str, families: Sequence[str], seeds: int, episodes: int) -> Iterator[Run]:
    """What is to be measured, the longest first; the expert with one seed."""
    for name in families:
        family = SUITES[suite][name]
        for setting in sorted(family.settings, key=lambda setting: -setting.objects):
            yield from (Run(suite, name, setting, family.method, seed, episodes) for seed in range(seeds))
            yield Run(suite, name, setting, EXPERT, 0, min(episodes, EXPERT_EPISODES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--family", nargs="+", help="only these families of its tasks")
    parser.add_argument("--seeds", type=int, default=3, help="of training")
    parser.add_argument("--episodes", type=int, default=20, help="for each task and seed")
    parser.add_argument("--demonstrations", type=int, help="instead of those that a family wants")
    parser.add_argument("--epochs", type=int, help="of training, instead of those of the preset")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/suites"))
    parser.add_argument("--output", type=Path, help="results/SUITE.jsonl unless told")
    parser.add_argument("--only-learn", action="store_true", help="evaluate nothing")
    parser.add_argument("--without-expert", action="store_true", help="evaluate the learned policies alone")
    given = parser.parse_args()
    families = given.family or list(SUITES[given.suite])
    for family in families:
        if family not in SUITES[given.suite]:
            parser.error(f"{given.suite} has no family '{family}'; it has: {', '.join(SUITES[given.suite])}")
    with ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as pool:
        each = max(1, given.workers // (given.seeds * len(families)))
        about = given.demonstrations, given.epochs, given.folder, each
        jobs = [(given.suite, family, seed, *about) for seed in range(given.seeds) for family in families]
        for learned in as_completed([pool.submit(learn, *job) for job in jobs]):
            print(learned.result(), flush=True)
        wanted = [] if given.only_learn else list(runs(given.suite, families, given.seeds, given.episodes))
        wanted = [run for run in wanted if run.method != EXPERT or not given.without_expert]
        for measured in as_completed([pool.submit(measure, run, given.folder) for run in wanted]):
            print(measured.result(), flush=True)
    if wanted:
        rows = [line for run in wanted for line in lines(run, given.folder)]
        write_rows(given.output or Path("results") / f"{given.suite}.jsonl", rows)


if __name__ == "__main__":
    main()
