"""How often the experts succeed, and how many steps their skills take: every task, several sizes, calm and jostled.

    python benchmarks/expert_success.py [--episodes 100] [--workers 2] [--tasks blocks gacha-noisy]

Prints a line for each row and writes it at once to results/experts.jsonl, in place of the same row of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bilevel.experiments.evaluation import MapJobs, Run, Trial, evaluate, wilson_interval
from bilevel.experiments.machines import machine
from bilevel.files import write_atomically
from bilevel.policies.policies import BilevelPolicy
from bilevel.tabletop.noise import Bursts
from bilevel.tabletop.tabletop import SUCCESS, Tabletop
from bilevel.tabletop.tasks import TASKS, Task

SIZES = (1, 3, 10)
JOSTLED = 3  # objects, in the rows with bursts of control noise
PACKAGES = ("bilevel", "mujoco", "metaworld", "gymnasium", "numpy")


def expert(task: Task, environment: Tabletop) -> BilevelPolicy:
    return task.expert(environment.slots)


def trials(tasks: Sequence[str], episodes: int) -> list[Trial]:
    rows = [Trial(name, objects, episodes) for name in tasks for objects in SIZES]
    rows += [Trial(name, most, episodes) for name in tasks if (most := TASKS[name].most_objects) > max(SIZES)]
    return rows + [Trial(name, JOSTLED, episodes, noise=Bursts().amplitude) for name in tasks]


def row(trial: Trial, runs: Sequence[Run]) -> dict[str, object]:
    successes = sum(run.outcome == SUCCESS for run in runs)
    schemas = sorted({schema for run in runs for schema in run.durations})
    durations = {schema: [steps for run in runs for steps in run.durations.get(schema, ())] for schema in schemas}
    return {
        "task": trial.task,
        "objects": trial.objects,
        "noise": trial.noise,
        "episodes": trial.episodes,
        "seed": trial.seed,
        "successes": successes,
        "interval": [round(bound, 4) for bound in wilson_interval(successes, trial.episodes)],
        "mean_steps": round(sum(run.steps for run in runs) / len(runs), 1),
        "mean_steps_per_schema": {schema: round(sum(all_) / len(all_), 1) for schema, all_ in durations.items()},
        "events": dict(sum((Counter(run.events) for run in runs), Counter())),
        "failures": [{"seed": run.seed, "outcome": run.outcome} for run in runs if run.outcome != SUCCESS],
        "command": "python benchmarks/expert_success.py",
        "versions": {name: version(name) for name in PACKAGES},
        "machine": machine(),
    }


def same_row(first: dict[str, object], second: dict[str, object]) -> bool:
    return all(first[key] == second[key] for key in ("task", "objects", "noise"))


def write(path: Path, new: dict[str, object]) -> None:
    old = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    kept = [entry for entry in old if not same_row(entry, new)]
    write_atomically(path, "".join(json.dumps(entry) + "\n" for entry in [*kept, new]))


def measure_all(tasks: Sequence[str], episodes: int, output: Path, mapping: MapJobs) -> None:
    for trial in trials(tasks, episodes):
        found = row(trial, list(evaluate(trial, expert, mapping)))
        write(output, found)
        print(
            f"{trial.task:14} n={trial.objects:<3} noise={trial.noise:<4} {found['successes']}/{trial.episodes}"
            f" {found['interval']}  {found['mean_steps']} steps  {found['mean_steps_per_schema']}"
            f"  {found['events']} {found['failures'] or ''}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--output", type=Path, default=Path("results/experts.jsonl"))
    arguments = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        measure_all(arguments.tasks, arguments.episodes, arguments.output, pool.imap)


if __name__ == "__main__":
    main()
