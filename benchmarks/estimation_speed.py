"""How long state estimation takes, next to the rest of a policy's step and to the environment's.

    python benchmarks/estimation_speed.py                                   # four tasks: a minute
    python benchmarks/estimation_speed.py --tasks blocks --objects 3

The expert acts, with an estimation that was fitted to a few demonstrations; then the scenes that it saw are estimated
and labelled again, each part alone. CPU microseconds for each step. Prints a line for each task, size and perception.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from result_files import Row, origin, write_rows

from bilevel.demonstrations.collection import collect
from bilevel.learning.estimation import fit_estimation
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.tabletop import TASKS
from bilevel.tasks.estimation import Estimation
from bilevel.tasks.estimator import Estimator
from bilevel.tasks.perception import read_perception
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task

WORLDS = ("blocks", "factory", "colour", "gacha")
CONDITIONS = ("", "noise=0.01", "missed=0.05", "occluded=0.04")
STEPS = 1000  # of an episode, at most
ROUNDS = 3  # of which the quickest counts
SEED = 3


def fitted(task: Task) -> Estimation:
    with tempfile.TemporaryDirectory() as folder:
        return fit_estimation(collect(task, Path(folder), objects=3, episodes=5))


def quickest(steps: int, work: Callable[[], object]) -> float:
    """CPU microseconds of one of so many steps."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return 1e6 * min(times) / steps


def measure(task: Task, estimation: Estimation, objects: int, condition: str) -> Row:
    env = SceneEnv(task, objects, perception=read_perception(condition))
    estimator = Estimator(task.spec, estimation)
    seen: list[Transition] = []
    seed = SEED
    while not seen:  # as an expert ends at once if what it needs is missed at first
        rollout(env, expert_policy(env, estimator), seed, callback=seen.append, stop=lambda: len(seen) >= STEPS)
        seed += 1

    def estimate() -> Sequence[Any]:
        estimator.reset()
        estimates = []
        for step in seen:
            estimates.append(estimator.update(step.scene))
            estimator.act(step.control)
        return estimates

    estimates = estimate()

    def carry_out() -> None:
        env.reset(seed - 1)
        for step in seen:
            env.step(step.executed)

    env.perception = read_perception("")
    row = {
        "estimation": quickest(len(seen), estimate),
        "labels": quickest(len(seen), lambda: [task.labels.state(scene) for scene in estimates]),
        "environment": quickest(len(seen), carry_out),
    }
    env.close()
    return {name: round(value, 1) for name, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(WORLDS), metavar="TASK")
    parser.add_argument("--objects", nargs="+", type=int, default=(3, 10))
    parser.add_argument("--conditions", nargs="+", default=list(CONDITIONS), metavar="PERCEPTION")
    parser.add_argument("--output", type=Path, default=Path("results/estimation-speed.jsonl"))
    given = parser.parse_args()
    rows = []
    for name in given.tasks:
        task = TASKS[name]
        estimation = fitted(task)
        for objects in given.objects:
            for condition in given.conditions:
                times = measure(task, estimation, objects, condition)
                ratio = round(times["estimation"] / times["environment"], 3)
                about = {"task": name, "objects": objects, "perception": condition, "microseconds": times}
                rows.append({**about, "ratio": ratio, **origin(task.packages)})
                print(f"{name:8} n={objects:<3} {condition or 'perfect':14} {times}, {ratio} of the step", flush=True)
    write_rows(given.output, rows)


if __name__ == "__main__":
    main()
