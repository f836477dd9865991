"""How often the experts succeed, and how many steps their skills take: every task, several sizes, calm and perturbed.

    python benchmarks/expert_success.py [--episodes 100] [--workers 2] [--tasks blocks gacha-noisy]
    python benchmarks/expert_success.py --options [--sizes 1 3]      # what the arguments of the worlds with trays cost

Prints a line for each row and writes it at once to results/experts.jsonl, in place of the same row of an earlier run;
with --options, to results/world-options.jsonl.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from math import comb
from pathlib import Path
from typing import NamedTuple

from result_files import Row, origin, replace_row

from bilevel.experiments.evaluation import EpisodeRunner
from bilevel.experiments.methods import find_policy
from bilevel.experiments.records import wilson_interval
from bilevel.policies.episode_run import EpisodeRun
from bilevel.policies.rollout import Perturbation
from bilevel.processes import Work, in_order, spread
from bilevel.seeds import evaluation_seed
from bilevel.tabletop import TASKS
from bilevel.tabletop.trays import TRAY_POSITIONS
from bilevel.tabletop.worlds.gacha import DRAWS, SPARE_COLOURS
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene_env import SUCCESS
from bilevel.tasks.task import STEPS_PER_OBJECT

SIZES = (1, 3, 10)
PERTURBED = 3  # objects, in the rows with control noise
SEED = 0

OPTION_SIZES = (1, 3, 5, 10)
_DRAWS = [{"draw": draw} for draw in DRAWS]
_POSITIONS = [{"tray_position": position} for position in TRAY_POSITIONS]
OPTIONS: Mapping[str, Sequence[Mapping[str, str]]] = {
    "colour": _POSITIONS,
    "gacha": [*_DRAWS, *_POSITIONS[1:]],  # the first is what the draws are measured with
    "gacha-noisy": _DRAWS,
}


class Trial(NamedTuple):
    """The episodes of one row."""

    task: str
    objects: int
    noise: float = 0.0
    arguments: Mapping[str, str] | None = None  # of the environment, where they are what is measured


def trials(tasks: Sequence[str]) -> list[Trial]:
    rows = [Trial(name, objects) for name in tasks for objects in SIZES]
    rows += [Trial(name, most) for name in tasks if (most := TASKS[name].max_objects or 0) > max(SIZES)]
    return rows + [Trial(name, PERTURBED, Perturbation().amplitude) for name in tasks]


def option_trials(tasks: Sequence[str], sizes: Sequence[int]) -> list[Trial]:
    return [
        Trial(name, objects, arguments=arguments)
        for name in tasks
        for arguments in OPTIONS.get(name, ())
        for objects in sizes
    ]


def start(trial: Trial) -> Work[tuple[int, EpisodeRun]]:
    """Return what runs the episode of a number."""
    runner = EpisodeRunner(find_policy("expert"), find_task(trial.task), dict(trial.arguments or {}))

    def run(episode: int) -> tuple[int, EpisodeRun]:
        return episode, runner.run(trial.objects, evaluation_seed(SEED, trial.objects, episode), trial.noise)

    return run


def make_row(trial: Trial, runs: Sequence[EpisodeRun]) -> Row:
    successes = sum(run.outcome == SUCCESS for run in runs)
    schemas = sorted({schema for run in runs for schema in run.durations})
    durations = {schema: [steps for run in runs for steps in run.durations.get(schema, ())] for schema in schemas}
    return {
        **trial._asdict(),
        "episodes": len(runs),
        "seed": SEED,
        "successes": successes,
        "interval": [round(bound, 4) for bound in wilson_interval(successes, len(runs))],
        "mean_steps": round(sum(run.steps for run in runs) / len(runs), 1),
        "mean_steps_per_schema": {schema: round(sum(all_) / len(all_), 1) for schema, all_ in durations.items()},
        "events": dict(sum((Counter(run.events) for run in runs), Counter())),
        "failures": [{"seed": run.seed, "outcome": run.outcome} for run in runs if run.outcome != SUCCESS],
        **({"bad_luck": bad_luck(trial, durations)} if trial.arguments == {"draw": "uniform"} else {}),
        **origin(TASKS[trial.task].packages),
    }


def bad_luck(trial: Trial, durations: Mapping[str, Sequence[int]]) -> float:
    """How likely it is that the wanted colours do not all come up, in as many rolls as the step limit has room for.

    A roll and all that it leads to takes the mean steps of each action. That some of so many wanted colours among all
    are missing after so many draws follows by inclusion and exclusion.
    """
    steps = sum(sum(all_) / len(all_) for all_ in durations.values())
    rolls, colours = int(STEPS_PER_OBJECT * trial.objects / steps), trial.objects + SPARE_COLOURS
    missing: list[float] = [
        -((-1) ** several) * comb(trial.objects, several) * (1 - several / colours) ** rolls
        for several in range(1, trial.objects + 1)
    ]
    return round(sum(missing), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--options", action="store_true", help="measure what the arguments of worlds with trays cost")
    parser.add_argument("--sizes", type=int, nargs="+", default=OPTION_SIZES, help="objects, with --options")
    parser.add_argument("--output", type=Path, help="(default: results/experts.jsonl or results/world-options.jsonl)")
    given = parser.parse_args()
    output = given.output or Path("results") / ("world-options.jsonl" if given.options else "experts.jsonl")
    for trial in option_trials(given.tasks, given.sizes) if given.options else trials(given.tasks):
        row = make_row(trial, list(in_order(spread(partial(start, trial), range(given.episodes), given.workers))))
        replace_row(output, row, Trial._fields)
        print(
            f"{trial.task:14} n={trial.objects:<3} noise={trial.noise:<4} {trial.arguments or ''}"
            f" {row['successes']}/{row['episodes']} {row['interval']}  {row['mean_steps']} steps"
            f"  {row['mean_steps_per_schema']}  {row['events']} {row['failures'] or ''}",
            flush=True,
        )


if __name__ == "__main__":
    main()
