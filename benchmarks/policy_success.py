"""How often learned policies succeed: for each task, recipe and seed, over all sizes, at larger ones, and jostled.

    python benchmarks/policy_success.py                                   # everything: hours on 2 cores
    python benchmarks/policy_success.py --tasks blocks --recipes best     # minutes
    python benchmarks/policy_success.py --seeds 1 --episodes 2 --demonstrations 20 --epochs 30      # to try it out

Collects 200 three-object demonstrations of each task, learns a policy from them for each recipe and seed (those of the
paper's recipe together, on a GPU if there is one), and runs it in worlds that it has not seen. Everything is kept in a
folder, and what is there already is not made again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from typing import Any

from learning_speed import write

from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.dataset import read_dataset
from bilevel.demonstrations.manifest import versions
from bilevel.demonstrations.recording import make_recipe
from bilevel.experiments.machines import machine
from bilevel.experiments.methods import find_contender
from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.summary import make_row, rows_by_objects
from bilevel.experiments.sweep import Evaluation, open_results, read_results
from bilevel.learning.bilevel import RECIPES, LearningConfig, learn_policies
from bilevel.lowlevel.dagger import DaggerConfig
from bilevel.policies.policy_folder import POLICY, read_policy, saved_policy, write_policy
from bilevel.tabletop.noise import Bursts
from bilevel.tabletop.tasks import TASKS

SIZES = tuple(range(1, 11))
LARGE_SIZES = (15, 20)
JOSTLED = 3  # objects
KINDS = ("sizes", "jostled", "large")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to measure, and where to keep it."""

    folder: Path
    demonstrations: int
    episodes: int  # for each number of objects
    jostled_episodes: int
    epochs: int | None = None  # instead of those of the recipes, and without practice

    def config(self, recipe: str) -> LearningConfig:
        usual = RECIPES[recipe]
        if self.epochs is None:
            return usual
        return replace(usual, training=replace(usual.training, epochs=self.epochs), dagger=DaggerConfig(rounds=0))

    def dataset(self, task: str) -> Path:
        return self.folder / "demonstrations" / task

    def policy(self, task: str, recipe: str, seed: int) -> Path:
        return self.folder / "policies" / f"{task}-{recipe}-{seed}"


@dataclass(frozen=True)
class Trials:
    """Episodes that are measured together: sizes from 1 to 10, larger ones, or a jostled hand."""

    kind: str
    task: str
    recipe: str
    seed: int  # of the policy, and of the worlds: each policy is run in others

    def evaluation(self, settings: Settings) -> Evaluation:
        contender = find_contender("bison", settings.policy(self.task, self.recipe, self.seed))
        if self.kind == "jostled":
            noise, episodes = Bursts().amplitude, settings.jostled_episodes
            return Evaluation(contender, self.task, (JOSTLED,), episodes, self.seed, noise)
        sizes = SIZES if self.kind == "sizes" else LARGE_SIZES
        return Evaluation(contender, self.task, sizes, settings.episodes, self.seed)

    def results(self, settings: Settings) -> Path:
        return settings.folder / "episodes" / f"{self.task}-{self.recipe}-{self.seed}-{self.kind}.jsonl"


def has(task: str, kind: str) -> bool:
    return kind != "large" or TASKS[task].most_objects >= max(LARGE_SIZES)


def collect(settings: Settings, task: str, workers: int) -> None:
    recipe, slots = make_recipe(task, 3)
    with open_collection(settings.dataset(task), recipe, slots, settings.demonstrations) as collection:
        list(collection.collect(workers))
    print(f"{task}: {settings.demonstrations} demonstrations", flush=True)


def learn(settings: Settings, task: str, recipe: str, seeds: Sequence[int]) -> None:
    """A policy for each seed, unless it is there."""
    missing = [seed for seed in seeds if not (settings.policy(task, recipe, seed) / POLICY).exists()]
    if not missing:
        return
    started = time.perf_counter()
    dataset, config = read_dataset(settings.dataset(task)), settings.config(recipe)
    for learned in learn_policies(dataset, missing, config, checkpoints=settings.folder / "unfinished"):
        seconds = (time.perf_counter() - started) / len(missing)
        saved = saved_policy(dataset, learned, config, recipe=recipe, seconds=seconds)
        write_policy(settings.policy(task, recipe, learned.network.seed), saved)


def evaluate(settings: Settings, trials: Trials) -> Trials:
    with open_results(trials.results(settings), trials.evaluation(settings)) as results:
        list(results.collect())
    return trials


def row(settings: Settings, trials: Trials, records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    total = make_row(records).as_json()
    policy = read_policy(settings.policy(trials.task, trials.recipe, trials.seed))
    sizes = rows_by_objects(records).items()
    seconds = {part: sum(record.seconds[part] for record in records) for part in ("policy", "physics")}
    steps = sum(record.steps for record in records)
    return {
        **asdict(trials),
        "demonstrations": settings.demonstrations,
        "noise": records[0].noise,
        **total,
        "by_objects": {str(size): [found.successes, found.episodes] for size, found in sizes},
        "mean_steps_by_objects": {str(size): found.as_json()["mean_steps"] for size, found in sizes},
        "failures": [
            {"objects": r.objects, "seed": r.seed, "outcome": r.outcome, "reason": r.reason}
            for r in records
            if not r.success
        ],
        "microseconds_per_step": {part: round(1e6 * total_ / steps) for part, total_ in seconds.items()},
        "learning": {
            name: value for name, value in policy.summary.items() if name not in ("demonstrations", "seconds")
        },
        "settings": dict(policy.settings),
        "command": "python benchmarks/policy_success.py",
        "versions": {**versions(), "torch": policy.versions["torch"]},
        "machine": machine(),
    }


def has_gpu() -> bool:
    """Asked in another process: this one shall not hold a GPU."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return bool(pool.apply(_sees_gpu))


def _sees_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def hide_gpu() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def measure(arguments: argparse.Namespace, settings: Settings) -> None:
    for task in arguments.tasks:
        collect(settings, task, arguments.workers)
    context = multiprocessing.get_context("spawn")
    on_gpu = 2 if "paper" in arguments.recipes and has_gpu() else 0
    with context.Pool(arguments.workers, hide_gpu) as pool, context.Pool(max(1, on_gpu)) as gpu_pool:
        learning = list(_learning(arguments, settings, pool, gpu_pool if on_gpu else pool))
        running: list[AsyncResult[Trials]] = []
        while learning or running:
            for entry in [entry for entry in learning if entry[0].ready()]:
                learning.remove(entry)
                done, task, recipe, seeds = entry
                done.get()
                print(f"{task}, {recipe}, {seeds}: learned", flush=True)
                wanted = [
                    Trials(kind, task, recipe, seed) for seed in seeds for kind in arguments.kinds if has(task, kind)
                ]
                running += [pool.apply_async(evaluate, (settings, trials)) for trials in wanted]
            for finished in [result for result in running if result.ready()]:
                running.remove(finished)
                report(settings, finished.get(), arguments.output)
            time.sleep(0.2)


def _learning(
    arguments: argparse.Namespace, settings: Settings, pool: Pool, paper_pool: Pool
) -> Iterator[tuple[AsyncResult[None], str, str, list[int]]]:
    """All that is to be learned, the longest first."""
    for task in reversed(arguments.tasks):
        for recipe in arguments.recipes:
            seeds = list(range(arguments.seeds))
            for group in [seeds] if recipe == "paper" else [[seed] for seed in seeds]:
                chosen = paper_pool if recipe == "paper" else pool
                yield chosen.apply_async(learn, (settings, task, recipe, group)), task, recipe, group


def report(settings: Settings, trials: Trials, output: Path) -> None:
    found = row(settings, trials, list(read_results(trials.results(settings))))
    write(output, found, ("task", "recipe", "seed", "kind"))
    print(
        f"{trials.task:14} {trials.recipe:6} seed {trials.seed} {trials.kind:8} "
        f"{found['successes']}/{found['episodes']} {found['interval']} {found['reasons'] or ''}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=3, help="how many policies of each kind")
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--epochs", type=int, help="train for so long and do not practise, to try this out")
    parser.add_argument("--episodes", type=int, default=10, help="for each number of objects")
    parser.add_argument("--jostled-episodes", type=int, default=30)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/policy-success"))
    parser.add_argument("--output", type=Path, default=Path("results/policies.jsonl"))
    given = parser.parse_args()
    settings = Settings(
        folder=given.folder,
        demonstrations=given.demonstrations,
        episodes=given.episodes,
        jostled_episodes=given.jostled_episodes,
        epochs=given.epochs,
    )
    measure(given, settings)


if __name__ == "__main__":
    main()
