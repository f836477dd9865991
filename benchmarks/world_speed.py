"""Steps per second of the worlds, physics, observation and labels together, beside MetaWorld's own pick-place.

    python benchmarks/world_speed.py                                  # two minutes
    python benchmarks/world_speed.py --tasks blocks gacha --objects 3

Both run on one core, without pictures, on controls that were computed before the clock starts: ours are an expert's,
MetaWorld's are its scripted policy's. They take turns, so that a machine that slows down slows both; what counts is the
median over all turns of CPU time. Prints a table and writes a line for each row to results/world-speed.jsonl.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from metaworld.envs.sawyer_pick_place_v3 import SawyerPickPlaceEnvV3
from metaworld.policies import SawyerPickPlaceV3Policy

from bilevel.experiments.machines import machine
from bilevel.files import write_atomically
from bilevel.policies.rollout import Moment, rollout
from bilevel.tabletop.tasks import TASKS, find_task

SEED = 1
STEPS = 1000  # of an episode, at most
METAWORLD_STEPS = 499  # its episodes end after 500
SIZES = (3, 10, 20)  # as far as a world goes
REQUIRED = {3: 2.5, 10: 2.0}  # times MetaWorld's steps per second
PACKAGES = ("bilevel", "gymnasium", "metaworld", "mujoco", "numpy")

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
    task = find_task(task_name)
    environment = task.make(objects)
    expert = task.expert(environment.slots)
    moments: list[Moment] = []
    rollout(environment, expert, SEED, watch=moments.append)
    controls = [moment.executed for moment in moments[:STEPS]]

    def run() -> None:
        labels = task.labels(environment.slots)  # anew, so that they remember nothing of the last turn
        for control in controls:
            observation, *_ = environment.step(control)
            labels.state(observation)
            labels.goal(observation)

    def turn() -> float:
        environment.reset(seed=SEED)
        return rate(len(controls), run)

    return turn


def compare(tasks: Sequence[str], sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    metaworld = metaworld_turn()
    for task in tasks:
        for objects in sizes:
            if objects > find_task(task).most_objects:
                continue
            world = world_turn(task, objects)
            world(), metaworld()  # warm up
            turns = [(world(), metaworld()) for _ in range(rounds)]
            ours, theirs = (statistics.median(rates) for rates in zip(*turns, strict=True))
            yield Row(task, objects, round(ours), round(theirs), round(statistics.median(a / b for a, b in turns), 2))


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}


def record(row: Row, rounds: int, command: str) -> dict[str, Any]:
    return {**row._asdict(), "rounds": rounds, "command": command, "versions": versions(), "machine": machine()}


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
    lines = []
    for row in compare(options.tasks, options.objects, options.rounds):
        required = REQUIRED.get(row.objects, "")
        numbers = f"{row.objects:8}{row.steps_per_second:9}{row.metaworld_steps_per_second:11}{row.ratio:8.2f}"
        print(f"{row.task:15}{numbers}{required!s:>10}", flush=True)
        lines.append(json.dumps(record(row, options.rounds, f"python benchmarks/{Path(sys.argv[0]).name}")))
    write_atomically(options.output, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
