"""How often each method succeeds, in one table: BISON, its rivals and the expert, on the same worlds.

    python benchmarks/comparison.py                                              # everything: hours on 2 cores
    python benchmarks/comparison.py --tasks blocks --methods bison det-replan    # minutes
    python benchmarks/comparison.py --tasks blocks --epochs 2 --demonstrations 10 --episodes 2    # to try it out

Collects 200 three-object demonstrations of each task and learns from them what the methods need: a bilevel policy,
which BISON and the planning methods share, and an end-to-end network for each of the others. The paper's recipe is
trained on a GPU if there is one. All methods meet the same episodes. Everything is kept in a folder, and what is there
already is not made again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kept_work import KeptWork, collect, evaluate, has_gpu, hide_gpu
from learning_speed import write
from rule_scaling import machine

from bilevel.demonstrations.dataset import read_dataset
from bilevel.demonstrations.manifest import versions
from bilevel.execution.policy_folder import POLICY
from bilevel.experiments.methods import METHODS, find_contender
from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.summary import make_row, rows_by_objects
from bilevel.experiments.sweep import Evaluation, read_results
from bilevel.experiments.training import train
from bilevel.learning import RECIPES
from bilevel.tasks import TASKS

COMPARED = ("bison", "expert", "det-plan", "det-replan", "ndt-plan", "ndt-replan", "pddl-nn", "pure-nn")
SIZES = (1, 3, 6, 10)
USUAL = {"demonstrations": 200, "episodes": 10, "objects": " ".join(map(str, SIZES))}


@dataclass(frozen=True, kw_only=True)
class Settings(KeptWork):
    """What to measure, and where to keep it."""

    objects: tuple[int, ...]

    @property
    def command(self) -> str:
        """What gives these figures again."""
        objects = " ".join(map(str, self.objects))
        given = {"demonstrations": self.demonstrations, "episodes": self.episodes, "objects": objects}
        given |= {} if self.epochs is None else {"epochs": self.epochs}
        unusual = [f" --{name} {value}" for name, value in given.items() if value != USUAL.get(name)]
        return f"python benchmarks/comparison.py{''.join(unusual)}"


@dataclass(frozen=True)
class Learnable:
    """A policy that several methods may share."""

    task: str
    learner: str  # the method that it is learned for
    recipe: str
    seed: int

    def folder(self, settings: Settings) -> Path:
        return settings.folder / "policies" / f"{self.task}-{self.learner}-{self.recipe}-{self.seed}"


@dataclass(frozen=True)
class Trials:
    """Episodes that are measured together."""

    method: str
    task: str
    recipe: str | None
    seed: int  # of the policy, and of the worlds
    objects: int

    @property
    def needed(self) -> Learnable | None:
        if self.recipe is None:
            return None
        learner = self.method if METHODS[self.method].training == "end-to-end" else "bison"
        return Learnable(self.task, learner, self.recipe, self.seed)

    def evaluation(self, settings: Settings) -> Evaluation:
        policy = self.needed.folder(settings) if self.needed else None
        contender = find_contender(self.method, policy)
        return Evaluation(contender, self.task, (self.objects,), settings.episodes, self.seed)

    def results(self, settings: Settings) -> Path:
        name = f"{self.task}-{self.method}-{self.recipe or 'as-it-is'}-{self.seed}-{self.objects}.jsonl"
        return settings.folder / "episodes" / name


def learn(settings: Settings, wanted: Learnable) -> Learnable:
    folder = wanted.folder(settings)
    if not (folder / POLICY).exists():
        dataset, config = read_dataset(settings.dataset(wanted.task)), settings.config(wanted.recipe)
        unfinished = settings.folder / "unfinished"
        train(dataset, folder, wanted.learner, config, seed=wanted.seed, recipe=wanted.recipe, checkpoints=unfinished)
    return wanted


def row(settings: Settings, kind: Trials, records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """All that was measured of a method on a task."""
    details = sorted({record.detail for record in records if record.detail})
    return {
        "method": kind.method,
        "task": kind.task,
        "recipe": kind.recipe,
        "seed": kind.seed,
        "epochs": settings.config(kind.recipe).training.epochs if kind.recipe else None,
        "demonstrations": settings.demonstrations,
        **make_row(records).as_json(),
        "by_objects": {
            str(size): {
                "successes": found.successes,
                "episodes": found.episodes,
                "interval": found.as_json()["interval"],
                "reasons": dict(found.reasons),
                "microseconds_per_step": _microseconds([r for r in records if r.objects == size]),
            }
            for size, found in rows_by_objects(records).items()
        },
        "details": details[:3],
        "settings": dict(records[0].settings),
        "command": settings.command,
        "versions": versions(),
        "machine": machine(),
    }


def _microseconds(records: Sequence[EpisodeRecord]) -> int | None:
    """Of the policy, with all planning, for each step."""
    steps = sum(record.steps for record in records)
    return round(1e6 * sum(record.seconds["policy"] for record in records) / steps) if steps else None


class Comparison:
    """Learns, runs each method once what it needs is there, and reports a method on a task when all of it has run."""

    def __init__(self, given: argparse.Namespace, settings: Settings) -> None:
        self.settings, self.output = settings, given.output
        self.waiting = [
            Trials(method, task, recipe, seed, objects)
            for seed in range(given.seeds)
            for task in given.tasks
            for method in given.methods
            for recipe in (given.recipes if METHODS[method].training else [None])
            for objects in settings.objects
        ]
        self.left = {self.kind(trials): len(settings.objects) for trials in self.waiting}

    def kind(self, trials: Trials) -> Trials:
        return replace(trials, objects=0)

    def learnables(self) -> list[Learnable]:
        """What the methods need, the slowest to learn first."""
        needed = {trials.needed for trials in self.waiting if trials.needed}
        return sorted(needed, key=lambda wanted: (wanted.learner == "bison", wanted.task, wanted.recipe, wanted.seed))

    def begin(self, known: set[Learnable | None]) -> Iterator[Trials]:
        """Those that can be run now, the longest first."""
        ready = [trials for trials in self.waiting if trials.needed in known]
        self.waiting = [trials for trials in self.waiting if trials.needed not in known]
        yield from sorted(ready, key=lambda trials: -trials.objects)

    def finish(self, trials: Trials) -> None:
        kind = self.kind(trials)
        self.left[kind] -= 1
        if self.left[kind]:
            return
        files = [replace(kind, objects=size).results(self.settings) for size in self.settings.objects]
        found = row(self.settings, kind, [record for file in files for record in read_results(file)])
        write(self.output, found, ("task", "method", "recipe", "seed"))
        rates = " ".join(
            f"{size}: {part['successes']}/{part['episodes']}" for size, part in found["by_objects"].items()
        )
        print(f"{kind.task:14} {kind.method:11} {kind.recipe or '':6} {rates}  {found['reasons'] or ''}", flush=True)


def measure(given: argparse.Namespace, settings: Settings) -> None:
    comparison = Comparison(given, settings)
    learnables = comparison.learnables()
    missing = {wanted.task for wanted in learnables if not (wanted.folder(settings) / POLICY).exists()}
    for task in [task for task in given.tasks if task in missing]:
        collect(settings, task, given.workers)
    context = multiprocessing.get_context("spawn")
    gpu = bool(missing) and has_gpu()
    with (
        ProcessPoolExecutor(given.workers, context, hide_gpu) as pool,
        ProcessPoolExecutor(given.gpu_processes if gpu else 1, context) as gpu_pool,
    ):
        learning = [
            (gpu_pool if gpu and wanted.recipe == "paper" else pool).submit(learn, settings, wanted)
            for wanted in learnables
        ]
        running = _run(pool, settings, comparison.begin({None}))
        while learning or running:
            for learned in [result for result in learning if result.done()]:
                learning.remove(learned)
                wanted = learned.result()
                print(f"{wanted.task}, {wanted.learner}, {wanted.recipe}: learned", flush=True)
                running += _run(pool, settings, comparison.begin({wanted}))
            for finished in [result for result in running if result.done()]:
                running.remove(finished)
                comparison.finish(finished.result())
            time.sleep(0.2)


def _run(pool: ProcessPoolExecutor, settings: Settings, ready: Iterator[Trials]) -> list[Future[Trials]]:
    return [pool.submit(evaluate, settings, trials) for trials in ready]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=COMPARED, default=list(COMPARED))
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--objects", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--episodes", type=int, default=USUAL["episodes"], help="for each number of objects")
    parser.add_argument("--seeds", type=int, default=1, help="how many policies of each kind")
    parser.add_argument("--demonstrations", type=int, default=USUAL["demonstrations"])
    parser.add_argument("--epochs", type=int, help="train for so long and do not practise, to try this out")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--gpu-processes", type=int, default=4, help="that train at the same time on a GPU")
    parser.add_argument("--folder", type=Path, default=Path("build/comparison"))
    parser.add_argument("--output", type=Path, default=Path("results/comparison.jsonl"))
    given = parser.parse_args()
    settings = Settings(
        folder=given.folder,
        demonstrations=given.demonstrations,
        episodes=given.episodes,
        objects=tuple(given.objects),
        epochs=given.epochs,
    )
    measure(given, settings)


if __name__ == "__main__":
    main()
