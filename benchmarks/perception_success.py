"""How often policies succeed whose eyes are not perfect: with state estimation, without, and beside the expert with it.

    python benchmarks/perception_success.py                                          # everything: hours on 16 cores
    python benchmarks/perception_success.py --tasks blocks --sizes 3 --episodes 10 --conditions noise=0.01 missed=0.05

For each task a policy is taken from a folder, as `policy_success.py` makes them there; one that is missing is learned,
and one that was learned without estimation gets it from the demonstrations. Episodes are kept in a folder, and those
that are there already are not run again, so an interrupted run can be taken up. Prints and writes a line for each task,
size, condition and method.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs
from policy_success import Candidate, Settings, make_data_set, make_policy
from result_files import Row, origin, write_rows

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.experiments.evaluation import Evaluation, open_results, read_results
from bilevel.experiments.methods import find_policy
from bilevel.experiments.records import make_row
from bilevel.learning.estimation import fit_estimation
from bilevel.policies.policy_folder import POLICY, read_policy
from bilevel.tabletop import TASKS
from bilevel.tasks.perception import read_perception
from bilevel.tasks.registry import find_task

WORLDS = ("blocks", "factory", "colour", "gacha")
CONDITIONS = (
    "",
    *(f"noise={metres:g}" for metres in (0.005, 0.01, 0.015)),
    *(f"bias={metres:g}" for metres in (0.005, 0.01)),
    *(f"missed={part:g}" for part in (0.01, 0.05, 0.1)),
    "occluded=0.04",
    *(f"delay={steps}" for steps in (3, 6, 10)),
    "every=4",
    "swapped=0.01",
)
METHODS = ("policy", "policy without estimation", "expert with estimation")


@dataclass(frozen=True)
class Job:
    """One line of the results."""

    candidate: Candidate
    size: int
    condition: str
    method: str

    def evaluation(self, settings: Settings) -> Evaluation:
        folder = self.candidate.folder(settings)
        if self.method.startswith("expert"):
            policy = find_policy("expert", estimation=str(folder))
        else:
            policy = find_policy("bison", folder, estimation="on" if self.method == "policy" else "off")
        return Evaluation(
            policy,
            find_task(self.candidate.task),
            (self.size,),
            settings.episodes,
            self.candidate.seed,
            perception=read_perception(self.condition),
        )

    def results(self, settings: Settings) -> Path:
        words = f"{self.candidate.name} {self.size} {self.condition or 'perfect'} {self.method}"
        return settings.folder / "perception" / f"{words.replace(' ', '-')}.jsonl"


def prepare(settings: Settings, candidate: Candidate, workers: int) -> Candidate:
    """Make the policy with its estimation, unless it is there."""
    folder = candidate.folder(settings)
    if not (folder / POLICY).exists():
        make_data_set(settings, candidate.task, workers)
        return make_policy(settings, candidate)
    learned = read_policy(folder)
    if learned.card.estimation is None:
        make_data_set(settings, candidate.task, workers)
        estimation = fit_estimation(Demonstrations.read(settings.data_set(candidate.task)))
        replace(learned, card=structs.replace(learned.card, estimation=estimation)).write(folder)
    return candidate


def measure(settings: Settings, job: Job) -> Job:
    path = job.results(settings)
    if path.exists() and len(path.read_bytes().splitlines()) >= settings.episodes:  # on another machine, perhaps
        return job
    with open_results(job.results(settings), job.evaluation(settings)) as results:
        list(results.collect())
    return job


def summary(settings: Settings, job: Job) -> Row:
    records = list(read_results(job.results(settings)))
    return {
        "task": job.candidate.task,
        "objects": job.size,
        "perception": job.condition,
        "method": job.method,
        "seed": job.candidate.seed,
        **make_row(records).as_json(),
        **origin(TASKS[job.candidate.task].packages),
    }


def run(settings: Settings, jobs: Sequence[Job], workers: int) -> Iterator[Row]:
    """Measure, as much at the same time as there are workers, and give the lines in the order of the jobs."""
    done: dict[Job, Row] = {}
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        candidates = dict.fromkeys(job.candidate for job in jobs)
        each = max(1, workers // len(candidates))
        for made in as_completed([pool.submit(prepare, settings, candidate, each) for candidate in candidates]):
            print(f"the policy {made.result().name} is there", flush=True)
        for measured in as_completed([pool.submit(measure, settings, job) for job in jobs]):
            job = measured.result()
            row = done[job] = summary(settings, job)
            print(f"{job.results(settings).stem}: {row['successes']}/{row['episodes']} {row['reasons']}", flush=True)
    yield from (done[job] for job in jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(WORLDS), metavar="TASK")
    parser.add_argument("--sizes", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--conditions", nargs="+", default=list(CONDITIONS), metavar="PERCEPTION")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--preset", default="best")
    parser.add_argument("--seed", type=int, default=0, help="of the policies, and of the episodes")
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("build/policies"))
    parser.add_argument("--output", type=Path, default=Path("results/perception.jsonl"))
    given = parser.parse_args()
    settings = Settings(
        folder=given.folder,
        demonstrations=given.demonstrations,
        sizes=tuple(given.sizes),
        episodes=given.episodes,
        perturbed_episodes=0,
    )
    jobs = [
        Job(Candidate(task, given.preset, given.seed), size, condition, method)
        for task in given.tasks
        for size in given.sizes
        for condition in given.conditions
        for method in given.methods
    ]
    write_rows(given.output, list(run(settings, jobs, given.workers)))


if __name__ == "__main__":
    main()
