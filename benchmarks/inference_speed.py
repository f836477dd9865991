"""How long each method thinks for each step, with 10 objects: all of them in one process, in turn.

    bilevel reproduce --tasks blocks colour --parts table --output build/reproduction    # makes the policies
    python benchmarks/inference_speed.py

Planning counts: a plan at the beginning, and every other one. The median over episodes is told, and what one step of
the world takes on the same machine at the same time, as a measure.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from learning_speed import write

from bilevel.demonstrations.manifest import versions
from bilevel.experiments.evaluation import Run, run_episode
from bilevel.experiments.machines import machine
from bilevel.experiments.reproduction.folder import ExperimentFolder, read_experiment
from bilevel.experiments.reproduction.measurements import load_variant
from bilevel.experiments.reproduction.settings import OURS, USUAL, VARIANTS, Variant
from bilevel.planning.plan_policies import PlannedPolicy
from bilevel.policies.policies import BilevelPolicy, WatchedPolicy
from bilevel.seeds import evaluation_seed
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import TASKS, Task

MEASURED = tuple(name for name in USUAL if VARIANTS[name].recipe != OURS)  # a recipe does not change how long it takes
SEED = 0  # of the policies, and of the worlds


@dataclass(frozen=True)
class Thought:
    """What an episode took."""

    run: Run
    plans: int
    planning: float  # seconds

    def microseconds(self) -> dict[str, float]:
        steps = max(self.run.steps, 1)
        seconds = {"policy": self.run.seconds.policy, "planning": self.planning, "physics": self.run.seconds.physics}
        return {part: 1e6 * value / steps for part, value in seconds.items()}


def think(environment: Tabletop, policy: WatchedPolicy, seed: int) -> Thought:
    run = run_episode(environment, policy, seed)
    high = policy.high if isinstance(policy, BilevelPolicy) else None
    return Thought(run, high.plans, high.seconds) if isinstance(high, PlannedPolicy) else Thought(run, 0, 0.0)


def make_policy(folder: ExperimentFolder, variant: Variant, task: Task, environment: Tabletop) -> WatchedPolicy:
    network = variant.network(task.name, SEED)
    if network and not (folder.path / network.policy).exists():
        path = folder.path / network.policy
        sys.exit(f"{path}: no such policy; `bilevel reproduce --methods {variant.name}` learns it")
    contender = load_variant(folder, task.name, variant, SEED)
    assert contender.make is not None
    return contender.make(task, environment)


def summary(variant: Variant, task: str, objects: int, thoughts: list[Thought]) -> dict[str, Any]:
    parts = [thought.microseconds() for thought in thoughts]
    return {
        "method": variant.method,
        "task": task,
        "objects": objects,
        "recipe": variant.recipe,
        "episodes": len(thoughts),
        "successes": sum(thought.run.reason is None for thought in thoughts),
        "steps": [thought.run.steps for thought in thoughts],
        "plans": [thought.plans for thought in thoughts],
        "microseconds_per_step": {name: round(median(part[name] for part in parts), 1) for name in parts[0]},
        "command": "python benchmarks/inference_speed.py",
        "versions": versions(),
        "machine": machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=MEASURED, default=list(MEASURED))
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=["blocks", "colour"])
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/reproduction"), help="of `bilevel reproduce`")
    parser.add_argument("--output", type=Path, default=Path("results/inference.jsonl"))
    given = parser.parse_args()
    folder = ExperimentFolder(given.folder, read_experiment(given.folder))
    variants = [VARIANTS[name] for name in given.methods]
    for task in (TASKS[name] for name in given.tasks):
        environment = task.make(given.objects)
        policies = {variant: make_policy(folder, variant, task, environment) for variant in variants}
        thoughts: dict[Variant, list[Thought]] = {variant: [] for variant in variants}
        for episode in range(given.episodes):
            for variant, policy in policies.items():  # in turn, so that a busy machine is busy for all
                thoughts[variant].append(think(environment, policy, evaluation_seed(SEED, episode)))
        for variant in variants:
            found = summary(variant, task.name, given.objects, thoughts[variant])
            write(given.output, found, ("task", "method", "objects", "recipe"))
            times, plans = found["microseconds_per_step"], found["plans"]
            print(f"{task.name:8} {variant.name:11} {times} plans {plans}", flush=True)


if __name__ == "__main__":
    main()
