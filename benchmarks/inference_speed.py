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

from result_files import Row, origin, replace_row

from bilevel.experiments.methods import find_policy
from bilevel.methods.methods import END_TO_END, METHODS
from bilevel.planning.planners import PlannedPolicy
from bilevel.policies.episode_run import EpisodeRun, run_episode
from bilevel.policies.policy import BilevelPolicy, ObservedPolicy
from bilevel.policies.policy_folder import BISON
from bilevel.seeds import evaluation_seed
from bilevel.tabletop import TASKS
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene_env import SceneEnv

PRESET = "paper"  # of the policies: a preset does not change how long a step takes
SEED = 0  # of the policies, and of the episodes


@dataclass(frozen=True)
class Thought:
    """What an episode took."""

    run: EpisodeRun
    plans: int
    planning: float  # seconds

    def microseconds(self) -> dict[str, float]:
        steps = max(self.run.steps, 1)
        seconds = {"policy": self.run.seconds.policy, "planning": self.planning, "physics": self.run.seconds.physics}
        return {part: 1e6 * value / steps for part, value in seconds.items()}


def think(env: SceneEnv, policy: ObservedPolicy, seed: int) -> Thought:
    run = run_episode(env, policy, seed)
    high = policy.high if isinstance(policy, BilevelPolicy) else None
    return Thought(run, high.plans, high.seconds) if isinstance(high, PlannedPolicy) else Thought(run, 0, 0.0)


def make_policy(folder: Path, name: str, env: SceneEnv) -> ObservedPolicy:
    """Return the policy of a method; those that plan run on BISON's network."""
    method, policy = METHODS[name], None
    if method.training:
        policy = folder / f"{name if method.training == END_TO_END else BISON}-{PRESET}-{SEED}"
        if not policy.exists():
            sys.exit(f"{policy}: no such policy; `bilevel reproduce --methods {name}` learns it")
    make = find_policy(name, policy).make
    assert make is not None
    return make(env)


def summary(method: str, env: SceneEnv, thoughts: list[Thought]) -> Row:
    parts = [thought.microseconds() for thought in thoughts]
    return {
        "method": method,
        "task": env.task.name,
        "objects": env.objects,
        "preset": PRESET if METHODS[method].training else None,
        "episodes": len(thoughts),
        "successes": sum(thought.run.reason is None for thought in thoughts),
        "steps": [thought.run.steps for thought in thoughts],
        "plans": [thought.plans for thought in thoughts],
        "microseconds_per_step": {name: round(median(part[name] for part in parts), 1) for name in parts[0]},
        **origin(env.task.packages),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=["blocks", "colour"])
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/reproduction"), help="of `bilevel reproduce`")
    parser.add_argument("--output", type=Path, default=Path("results/inference.jsonl"))
    given = parser.parse_args()
    for task in given.tasks:
        env = SceneEnv(find_task(task), given.objects)
        policies = {name: make_policy(given.folder / "policies" / task, name, env) for name in given.methods}
        thoughts: dict[str, list[Thought]] = {name: [] for name in policies}
        for episode in range(given.episodes):
            for name, policy in policies.items():  # in turn, so that a busy machine is busy for all
                thoughts[name].append(think(env, policy, evaluation_seed(SEED, given.objects, episode)))
        for name, found in thoughts.items():
            row = summary(name, env, found)
            replace_row(given.output, row, ("task", "method", "objects"))
            print(f"{task:8} {name:11} {row['microseconds_per_step']} plans {row['plans']}", flush=True)


if __name__ == "__main__":
    main()
