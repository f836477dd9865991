"""How long each method thinks for each step, with 10 objects: all of them in one process, in turn.

    python benchmarks/comparison.py --tasks blocks colour --recipes paper    # makes the policies
    python benchmarks/inference_speed.py

Planning counts: a plan at the beginning, and every other one. The median over episodes is told, and what one step of
the world takes on the same machine at the same time, as a measure.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from comparison import COMPARED, Settings, Trials
from learning_speed import write
from rule_scaling import machine

from bilevel.demonstrations.manifest import versions
from bilevel.environments.tabletop import Tabletop
from bilevel.execution.policies import BilevelPolicy, WatchedPolicy
from bilevel.experiments.evaluation import Run, run_episode
from bilevel.experiments.methods import METHODS, find_contender
from bilevel.planning.plan_policies import PlannedPolicy
from bilevel.seeds import evaluation_seed
from bilevel.tasks import TASKS, Task


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


def make_policy(method: str, task: Task, environment: Tabletop, settings: Settings, recipe: str) -> WatchedPolicy:
    trials = Trials(method, task.name, recipe if METHODS[method].training else None, 0, environment.count)
    contender = find_contender(method, trials.needed.folder(settings) if trials.needed else None)
    assert contender.make is not None
    return contender.make(task, environment)


def summary(method: str, task: str, objects: int, recipe: str, thoughts: list[Thought]) -> dict[str, Any]:
    parts = [thought.microseconds() for thought in thoughts]
    return {
        "method": method,
        "task": task,
        "objects": objects,
        "recipe": recipe if METHODS[method].training else None,
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
    parser.add_argument("--methods", nargs="+", choices=COMPARED, default=list(COMPARED))
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=["blocks", "colour"])
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=3)
    parser.add_argument("--recipe", default="paper")
    parser.add_argument("--folder", type=Path, default=Path("build/comparison"), help="of `comparison.py`")
    parser.add_argument("--output", type=Path, default=Path("results/inference.jsonl"))
    given = parser.parse_args()
    settings = Settings(folder=given.folder, demonstrations=0, episodes=given.episodes, objects=(given.objects,))
    for name in given.tasks:
        task = TASKS[name]
        environment = task.make(given.objects)
        policies = {m: make_policy(m, task, environment, settings, given.recipe) for m in given.methods}
        thoughts: dict[str, list[Thought]] = {method: [] for method in policies}
        for episode in range(given.episodes):
            for method, policy in policies.items():  # in turn, so that a busy machine is busy for all
                thoughts[method].append(think(environment, policy, evaluation_seed(0, episode)))
        for method in policies:
            found = summary(method, name, given.objects, given.recipe, thoughts[method])
            write(given.output, found, ("task", "method", "objects", "recipe"))
            print(f"{name:8} {method:11} {found['microseconds_per_step']} plans {found['plans']}", flush=True)


if __name__ == "__main__":
    main()
