"""What a shorter schedule costs: how often a network succeeds after 1, 2, 4, … epochs of cloning, without DAgger.

    python benchmarks/schedules.py                       # a quarter of an hour on 2 cores
    python benchmarks/schedules.py --tasks blocks --epochs 1 4

Each schedule is a training of its own, with its own cosine, from 200 three-object demonstrations. Its networks are run
with 10 objects, and with 3 and perturbed controls, in worlds that they have not seen.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learning_speed import dataset, write

from bilevel.demonstrations.dataset import read_dataset
from bilevel.demonstrations.manifest import versions
from bilevel.experiments.evaluation import run_episode, wilson_interval
from bilevel.experiments.machines import machine
from bilevel.learning.bilevel import Learned, LearningConfig, learn_policies
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.lowlevel.training import TrainingConfig
from bilevel.policies.policies import BilevelPolicy
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import evaluation_seed
from bilevel.tabletop.noise import Bursts
from bilevel.tabletop.tabletop import SUCCESS
from bilevel.tabletop.tasks import TASKS, Task

DEMONSTRATIONS = 200
TASK_NAMES = ("blocks", "colour", "gacha")
EPOCHS = (1, 2, 4, 8, 16)
SEEDS = (0, 1, 2)
# By their names in the results: objects, control noise, episodes of a seed.
TRIALS = {"n = 10": (10, 0.0, 10), "n = 3, jostled": (3, Bursts().amplitude, 20)}


@dataclass(frozen=True)
class Job:
    folder: Path  # with the demonstrations
    task: str
    epochs: int


def measure(job: Job) -> dict[str, Any]:
    task, data = TASKS[job.task], read_dataset(job.folder / job.task)
    policies = learn_policies(data, SEEDS, LearningConfig(training=TrainingConfig(epochs=job.epochs)))
    return {
        "part": "schedule",
        "task": job.task,
        "epochs": job.epochs,
        "demonstrations": DEMONSTRATIONS,
        "seeds": SEEDS,
        "validation_losses": [round(learned.network.validation_loss, 6) for learned in policies],
        "successes": {name: _successes(task, policies, *trial) for name, trial in TRIALS.items()},
        "command": "python benchmarks/schedules.py",
        "versions": versions(),
        "machine": machine(),
    }


def _successes(task: Task, policies: list[Learned], objects: int, noise: float, episodes: int) -> dict[str, Any]:
    environment = task.make(objects)
    outcomes = []
    for seed, learned in zip(SEEDS, policies, strict=True):
        low = GnnPolicy(learned.architecture, learned.network.weights, environment.slots)
        policy = BilevelPolicy(task.labels(environment.slots), RulePolicy(learned.rules, task.domain), low)
        seeds = [evaluation_seed(seed, episode) for episode in range(episodes)]
        outcomes += [run_episode(environment, policy, seed, noise).outcome for seed in seeds]
    successes = outcomes.count(SUCCESS)
    interval = [round(bound, 4) for bound in wilson_interval(successes, len(outcomes))]
    return {"successes": successes, "episodes": len(outcomes), "interval": interval}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASK_NAMES))
    parser.add_argument("--epochs", nargs="+", type=int, default=list(EPOCHS))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=Path("results/schedules.jsonl"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for task in given.tasks:
            dataset(Path(folder), task, DEMONSTRATIONS)
        jobs = [Job(Path(folder), task, epochs) for task in reversed(given.tasks) for epochs in reversed(given.epochs)]
        with multiprocessing.get_context("spawn").Pool(given.workers, maxtasksperchild=1) as pool:
            for row in pool.imap_unordered(measure, jobs, chunksize=1):
                print(f"{row['task']:8} {row['epochs']:3} epochs  {row['successes']}", flush=True)
                write(given.output, row, ("part", "task", "epochs"))


if __name__ == "__main__":
    main()
