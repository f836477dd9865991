"""What a shorter schedule costs: how often a network succeeds after 1, 2, 4, … epochs of cloning, without DAgger.

    python benchmarks/schedules.py                       # a quarter of an hour on 2 cores
    python benchmarks/schedules.py --tasks blocks --epochs 1 4

Each schedule is a training of its own, with its own cosine, from 200 three-object demonstrations. Its networks are run
with 10 objects, and with 3 and perturbed controls, in episodes that they have not seen.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from policy_success import Candidate, Settings, run
from result_files import Row, origin, replace_row

from bilevel.experiments.intervals import Counts, rate_interval
from bilevel.tabletop import TASKS

SEEDS = (0, 1, 2)
KINDS = {"sizes": "n = 10", "perturbed": "n = 3, perturbed"}  # as they are called in the results


def successes(lines: Sequence[Row]) -> Row:
    """Return how all policies did together, with the interval over their training seeds."""
    seeds = [Counts(line["successes"], line["episodes"]) for line in lines]
    interval = [round(bound, 4) for bound in rate_interval(seeds)]
    won, episodes = (sum(counts) for counts in zip(*seeds, strict=True))
    return {"successes": won, "episodes": episodes, "interval": interval, "by_seed": [one.successes for one in seeds]}


def make_row(task: str, epochs: int, lines: Sequence[Row]) -> Row:
    """Return what became of the policies of a task and a schedule."""
    lines = [line for line in lines if (line["task"], line["settings"]["training"]["epochs"]) == (task, epochs)]
    found = {kind: [line for line in lines if line["kind"] == kind] for kind in KINDS}
    return {
        "part": "schedule",
        "task": task,
        "epochs": epochs,
        "demonstrations": lines[0]["demonstrations"],
        "seeds": SEEDS,
        "validation_losses": [round(line["learning"]["validation_loss"], 6) for line in found["sizes"]],
        "successes": {name: successes(found[kind]) for kind, name in KINDS.items()},
        **origin(TASKS[task].packages),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=["blocks", "colour", "gacha"])
    parser.add_argument("--epochs", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=Path("results/schedules.jsonl"))
    given = parser.parse_args()
    schedules = [(task, epochs) for task in given.tasks for epochs in given.epochs]
    candidates = [Candidate(task, "paper", seed, epochs) for task, epochs in schedules for seed in SEEDS]
    with tempfile.TemporaryDirectory() as name:
        settings = Settings(
            folder=Path(name),
            demonstrations=200,
            sizes=(10,),
            episodes=10,
            perturbed_episodes=20,
        )
        lines = run(settings, candidates, list(KINDS), given.workers)
    for schedule in schedules:
        replace_row(given.output, make_row(*schedule, lines), ("part", "task", "epochs"))


if __name__ == "__main__":
    main()
