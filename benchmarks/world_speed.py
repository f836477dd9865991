"""Steps per second of the worlds, physics, observation and labels together, beside MetaWorld's own pick-place.

    python benchmarks/world_speed.py                                  # two minutes
    python benchmarks/world_speed.py --tasks blocks gacha --objects 3

Both run on one core, without pictures, on controls that were computed before the clock starts: ours are an expert's,
MetaWorld's are its scripted policy's. They take turns, so that a machine that slows down slows both; what counts is the
median over all turns of CPU time. Prints a table and writes a line for each row to results/world-speed.jsonl.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from metaworld.envs.sawyer_pick_place_v3 import SawyerPickPlaceEnvV3
from metaworld.policies import SawyerPickPlaceV3Policy
from result_files import origin, write_rows

from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv

SEED = 1
STEPS = 1000  # of an episode, at most
METAWORLD_STEPS = 499  # its episodes end after 500
SIZES = (3, 10, 20)  # as far as a world goes
REQUIRED = {3: 2.5, 10: 2.0}  # times MetaWorld's steps per second

Turn = Callable[[], float]  # runs for a while; its steps per second


class Row(NamedTuple):
    task: str
    objects: int
    steps_per_second: float
    metaworld_steps_per_second: float
    ratio: float  # the median of the turns' ratios


class PickPlace(SawyerPickPlaceEnvV3):
    """MetaWorld's environment, which writes to an array that is wider in newer versions of MuJoCo."""

    def reset_mocap_welds(self) -> None:
        self.model.eq_data[:, :11] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 5.0]


def rate(steps: int, run: Callable[[], None]) -> float:
    started = time.process_time()
    run()
    return steps / (time.process_time() - started)


def metaworld_turn() -> Turn:
    environment, policy = PickPlace(), SawyerPickPlaceV3Policy()
    environment._set_task_called = True
    environment._freeze_rand_vec = False
    observation, _ = environment.reset(seed=SEED)
    environment._freeze_rand_vec = True  # from now on the same episode
    controls = []
    for _ in range(METAWORLD_STEPS):
        observation[-3:] = environment._target_pos  # it hides the goal, which the policy needs
        controls.append(policy.get_action(observation).clip(-1, 1))
        observation, _, _, _, info = environment.step(controls[-1])
    assert info["success"], "the scripted policy should have solved MetaWorld's task"

    def run() -> None:
        for control in controls:
            environment.step(control)

    def turn() -> float:
        environment.reset()
        return rate(len(controls), run)

    return turn


def world_turn(task_name: str, objects: int) -> Turn:
    env = SceneEnv(TASKS[task_name], objects)
    steps: list[Transition] = []
    rollout(env, expert_policy(env), SEED, callback=steps.append)
    controls = [step.executed for step in steps[:STEPS]]

    def run() -> None:
        for control in controls:
            scene = env.step(control)
            env.labels.state(scene)
            env.labels.goal(scene)

    def turn() -> float:
        env.reset(seed=SEED)
        return rate(len(controls), run)

    return turn


def compare(tasks: Sequence[str], sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    metaworld = metaworld_turn()
    for task in tasks:
        for objects in sizes:
            if objects > (TASKS[task].max_objects or objects):
                continue
            world = world_turn(task, objects)
            world(), metaworld()  # warm up
            turns = [(world(), metaworld()) for _ in range(rounds)]
            ours, theirs = (statistics.median(rates) for rates in zip(*turns, strict=True))
            yield Row(task, objects, round(ours), round(theirs), round(statistics.median(a / b for a, b in turns), 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--objects", nargs="+", type=int, default=SIZES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path("results/world-speed.jsonl"))
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"{'task':15}{'objects':>8}{'steps/s':>9}{'MetaWorld':>11}{'ratio':>8}{'required':>10}")
    rows = []
    for row in compare(options.tasks, options.objects, options.rounds):
        required = REQUIRED.get(row.objects, "")
        numbers = f"{row.objects:8}{row.steps_per_second:9}{row.metaworld_steps_per_second:11}{row.ratio:8.2f}"
        print(f"{row.task:15}{numbers}{required!s:>10}", flush=True)
        rows.append({**row._asdict(), "rounds": options.rounds, **origin(TASKS[row.task].packages)})
    write_rows(options.output, rows)


if __name__ == "__main__":
    main()
