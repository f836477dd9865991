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
from bilevel.experiments.reproduction.folder import Kept, read_experiment
from bilevel.experiments.reproduction.measurements import contender_of
from bilevel.experiments.reproduction.settings import ENTRANTS, OURS, USUAL, Entrant
from bilevel.planning.plan_policies import PlannedPolicy
from bilevel.policies.policies import BilevelPolicy, WatchedPolicy
from bilevel.seeds import evaluation_seed
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import TASKS, Task

MEASURED = tuple(name for name in USUAL if ENTRANTS[name].recipe != OURS)  # a recipe does not change how long it takes
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


def make_policy(kept: Kept, entrant: Entrant, task: Task, environment: Tabletop) -> WatchedPolicy:
    policy = kept.policy_of(entrant, task.name, SEED)
    if policy and not policy.exists():
        sys.exit(f"{policy}: no such policy; `bilevel reproduce --methods {entrant.name}` learns it")
    contender = contender_of(kept, task.name, entrant, SEED)
    assert contender.make is not None
    return contender.make(task, environment)


def summary(entrant: Entrant, task: str, objects: int, thoughts: list[Thought]) -> dict[str, Any]:
    parts = [thought.microseconds() for thought in thoughts]
    return {
        "method": entrant.method,
        "task": task,
        "objects": objects,
        "recipe": entrant.recipe,
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
    kept = Kept(given.folder, read_experiment(given.folder))
    entrants = [ENTRANTS[name] for name in given.methods]
    for task in (TASKS[name] for name in given.tasks):
        environment = task.make(given.objects)
        policies = {entrant: make_policy(kept, entrant, task, environment) for entrant in entrants}
        thoughts: dict[Entrant, list[Thought]] = {entrant: [] for entrant in entrants}
        for episode in range(given.episodes):
            for entrant, policy in policies.items():  # in turn, so that a busy machine is busy for all
                thoughts[entrant].append(think(environment, policy, evaluation_seed(SEED, episode)))
        for entrant in entrants:
            found = summary(entrant, task.name, given.objects, thoughts[entrant])
            write(given.output, found, ("task", "method", "objects", "recipe"))
            times, plans = found["microseconds_per_step"], found["plans"]
            print(f"{task.name:8} {entrant.name:11} {times} plans {plans}", flush=True)


if __name__ == "__main__":
    main()
