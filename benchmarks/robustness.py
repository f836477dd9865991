"""How often policies succeed when the hand is perturbed, and when blocks stand on each other's places at first.

    python benchmarks/robustness.py                                     # everything: many hours on 2 cores
    python benchmarks/robustness.py --tasks blocks --episodes 20        # a first impression

For each task a policy is learned from 200 three-object demonstrations. It is measured with ten objects at three
amplitudes of control noise, beside the expert and beside the same policy with the rules of its demonstrations alone,
which stops where none applies. The worlds in which blocks may begin in a circle are measured undisturbed as well.
Everything is kept in a folder, and what is there already is not made again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from policy_success import Candidate, Settings, make_data_set, make_policy
from result_files import Row, origin, write_rows

from bilevel.experiments.evaluation import Evaluation, open_results, read_results
from bilevel.experiments.methods import find_policy
from bilevel.experiments.records import EpisodeRecord, make_row
from bilevel.policies.policy_folder import POLICY, read_policy
from bilevel.policies.recovery import NO_RECOVERY
from bilevel.tabletop import TASKS
from bilevel.tasks.registry import find_task

AMPLITUDES = (0.7, 1.0, 1.5)
OBJECTS = 10
OUTRUN = ("factory-noisy", "gacha-noisy")  # where teleports come faster than anybody can put things back
PART = 10  # episodes that one process runs at a time
FIRST_SEED = 100  # of the evaluations; those of other benchmarks are lower

COMPLETE, SHOWN, EXPERT = METHODS = "bison", "bison, rules shown", "expert"


@dataclass(frozen=True)
class Cell:
    """So many episodes of one method on one task."""

    task: str
    method: str
    objects: int
    episodes: int
    noise: float = 0.0
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        about = "".join(f"-{value}" for value in self.arguments.values())
        return f"{self.task}{about}-{self.method.replace(', ', '-').replace(' ', '-')}-{self.objects}-{self.noise}"

    def part(self, number: int, folder: Path) -> tuple[Path, Evaluation]:
        """Return where the episodes of a part are kept, and what they are."""
        policies = folder / "policies"
        known = {COMPLETE: policies / f"{self.task}-best-0", SHOWN: policies / f"{self.task}-best-0-shown"}
        evaluated = find_policy("expert") if self.method == EXPERT else find_policy("bison", known[self.method])
        count = min(PART, self.episodes - PART * number)
        evaluation = Evaluation(
            evaluated,
            find_task(self.task),
            (self.objects,),
            count,
            FIRST_SEED + number,
            self.noise,
            self.arguments,
        )
        return folder / "episodes" / f"{self.name}-{number}.jsonl", evaluation


def cells(tasks: Sequence[str], episodes: int, few: int) -> Iterator[Cell]:
    """Yield what is to be measured, what matters most first; `few` episodes where hardly any can succeed or many do."""
    for noise in AMPLITUDES:
        for method in (COMPLETE, EXPERT, SHOWN):
            for task in tasks:
                number = few if task in OUTRUN or method == SHOWN else episodes
                yield Cell(task, method, OBJECTS, number, noise)
    for method in (COMPLETE, EXPERT):
        for objects in (3, OBJECTS):
            if "swap" in tasks:
                yield Cell("swap", method, objects, episodes)
            if "blocks" in tasks:
                yield Cell("blocks", method, objects, episodes, arguments={"start": "circle"})


def make_shown(folder: Path) -> None:
    """Write beside a policy the same with the rules of its demonstrations alone."""
    shown = folder.with_name(f"{folder.name}-shown")
    if not (shown / POLICY).exists():
        policy = read_policy(folder)
        summary = {**policy.card.summary, "completion": ""}
        card = msgspec.structs.replace(policy.card, recovery=NO_RECOVERY, commit=False, summary=summary)
        replace(policy, card=card, rules=policy.rules[: policy.card.summary["rules_shown"]]).write(shown)


def measure(cell: Cell, number: int, folder: Path) -> Cell:
    path, evaluation = cell.part(number, folder)
    if path.exists() and len(path.read_bytes().splitlines()) == evaluation.episodes:  # on another machine, perhaps
        return cell
    with open_results(path, evaluation) as results:
        list(results.collect())
    return cell


def summary(cell: Cell, folder: Path) -> Row | None:
    """Return one line: how a method did in the episodes that are there."""
    records: list[EpisodeRecord] = []
    for path in sorted(folder.glob(f"episodes/{cell.name}-*[0-9].jsonl")):
        records += read_results(path)
    if not records:
        return None
    return {
        "task": cell.task,
        "method": cell.method,
        "objects": cell.objects,
        "noise": cell.noise,
        "arguments": cell.arguments,
        **make_row(records).as_json(),
        "failures": [[record.seed, record.reason] for record in records if not record.success],
        **origin(),
        "versions": records[0].versions,
    }


def learn_all(settings: Settings, tasks: Sequence[str], workers: int) -> None:
    """Collect demonstrations and learn a policy for each task that has none."""
    tasks = [task for task in tasks if not (Candidate(task, "best", 0).folder(settings) / POLICY).exists()]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        each = max(1, workers // max(1, len(tasks)))
        for made in as_completed([pool.submit(make_data_set, settings, task, each) for task in tasks]):
            print(made.result(), flush=True)
        for learned in as_completed([pool.submit(make_policy, settings, Candidate(t, "best", 0)) for t in tasks]):
            make_shown(learned.result().folder(settings))
            print(f"learned {learned.result().name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=[t for t in TASKS if t != "swap-noisy"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--few", type=int, default=30, help="episodes of what nobody can solve, or of fewer interest")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no more parts after this time")
    parser.add_argument("--folder", type=Path, default=Path("build/robustness"))
    parser.add_argument("--output", type=Path, default=Path("results/robustness.jsonl"))
    given = parser.parse_args()
    began = time.monotonic()
    settings = Settings(
        folder=given.folder, demonstrations=given.demonstrations, sizes=(), episodes=0, perturbed_episodes=0
    )
    learn_all(settings, given.tasks, given.workers)
    wanted = list(cells(given.tasks, given.episodes, given.few))
    with ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as pool:
        chosen = [cell for cell in wanted if cell.method in given.methods]
        parts = [(cell, number) for cell in chosen for number in range(-(-cell.episodes // PART))]
        waiting = {pool.submit(measure, *part, given.folder) for part in parts[: 2 * given.workers]}
        rest = parts[2 * given.workers :]
        done = 0
        while waiting:
            finished = next(as_completed(waiting))
            waiting.remove(finished)
            done += 1
            print(f"{done}/{len(parts)} {finished.result().name} {time.monotonic() - began:.0f} s", flush=True)
            if rest and time.monotonic() - began < given.seconds:
                waiting.add(pool.submit(measure, *rest.pop(0), given.folder))
    write_rows(given.output, [row for cell in wanted if (row := summary(cell, given.folder))])


if __name__ == "__main__":
    main()
