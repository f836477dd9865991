"""Policies from what is seen and the goal alone: predicates are proposed, operators, rules and a network learned.

    python benchmarks/proposed_predicates.py --workers 2                                      # an hour on 2 cores
    python benchmarks/proposed_predicates.py --task blocks --demonstrations 50 --episodes 10  # a first impression

For each task it collects demonstrations with 3 objects, proposes predicates, and learns a policy with them, its domain
included. Of the task itself this uses nothing but what is seen, the expert's controls, and who judges success.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from result_files import Row, origin, write_rows

import bilevel
from bilevel.domain_learning.predicates.proposal import Proposal, propose_predicates
from bilevel.experiments.records import rows_by_objects
from bilevel.learning.networks import LearningConfig
from bilevel.tasks.task import Task

EXAMPLES = Path(__file__).parents[1] / "examples"
OBJECTS = 3
TASK_FILE = """

# The task with these predicates; success is judged by the task's own labels.

from dataclasses import replace
from pathlib import Path

import bilevel

BASE = bilevel.find_task("{source}")


def success(scene, info):
    if BASE.success is not None:
        return BASE.success(scene, info)
    return info["success"] if "success" in info else BASE.labels.goal(scene) <= BASE.labels.state(scene)


frame = bilevel.read_domain(Path(__file__).with_name("labels.pddl"))
task = replace(BASE, domain=frame, label=label, goal=goal, success=success, thresholds={{}})
"""


@dataclass(frozen=True)
class Setting:
    """A task: where it is, and with how many objects it is run."""

    source: str
    sizes: tuple[int, ...] = (3, 10)


SETTINGS = {
    "blocks": Setting("blocks"),
    "swap": Setting("swap"),
    "first-cubes": Setting(f"{EXAMPLES / 'ogbench/first_cubes.py'}:task", (3, 8)),
}


def with_predicates(proposal: Proposal, source: str, folder: Path) -> Task:
    """Write a task with proposed predicates instead of its own into a file, and find it there."""
    proposal.write(folder / "labels.py")
    (folder / "task.py").write_text(proposal.source + TASK_FILE.format(source=source), encoding="utf-8")
    return bilevel.find_task(f"{folder / 'task.py'}:task")


def run(
    name: str, demonstrations: int, episodes: int, workers: int, folder: Path, config: LearningConfig | None = None
) -> Iterator[Row]:
    """Give the lines of one task: one for each number of objects."""
    setting = SETTINGS[name]
    base = bilevel.find_task(setting.source)
    data = bilevel.collect(base, folder / "data", objects=OBJECTS, episodes=demonstrations, workers=workers)
    began = time.perf_counter()
    proposal = propose_predicates(data)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    task = with_predicates(proposal, setting.source, folder)
    policy = bilevel.learn(data, folder / "policy", task=task, config=config, workers=workers, learn_domain=True)
    records = bilevel.evaluate(folder / "policy", task, objects=setting.sizes, episodes=episodes, workers=workers)
    found = proposal.validation
    for objects, row in rows_by_objects(records).items():
        yield {
            "task": name,
            "demonstrations": demonstrations,
            "objects": objects,
            **row.as_json(),
            "predicates": [one.signature for one in proposal.definitions],
            "operators": {schema: sum(counts) for schema, counts in found.learned.counts.items()},
            "rules": len(policy.rules),
            "held_out": {"actions": found.actions, "agreeing": found.agreeing, "solved": found.solved},
            "proposing_seconds": round(seconds, 1),
            "megabytes": memory,
            **origin(base.packages),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=SETTINGS, action="append", help="only this one; may be given several times")
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/proposed-predicates"))
    parser.add_argument("--output", type=Path, default=Path("results/proposed-predicates.jsonl"))
    given = parser.parse_args()
    lines: list[Row] = []
    for name in given.task or SETTINGS:
        folder = given.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        for line in run(name, given.demonstrations, given.episodes, given.workers, folder):
            print(f"{name}, {line['objects']} objects: {line['successes']}/{line['episodes']}", flush=True)
            lines.append(line)
    write_rows(given.output, lines)


if __name__ == "__main__":
    main()
