"""How often learned policies succeed: for each task, preset and seed, over sizes, at larger ones, and perturbed.

    python benchmarks/policy_success.py                                          # everything: hours on 2 cores
    python benchmarks/policy_success.py --tasks blocks --presets best            # minutes
    python benchmarks/policy_success.py --sizes 1 3 10 --episodes 20 --kinds sizes

Collects 200 three-object demonstrations of each task, learns a policy from them for each preset and seed, and runs it
in episodes that it has not seen. Everything is kept in a folder, and what is there already is not made again, so an
interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from result_files import Row, origin, write_rows

from bilevel.demonstrations.collection import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.experiments.evaluation import Evaluation, open_results, read_results
from bilevel.experiments.methods import find_policy
from bilevel.experiments.records import EpisodeRecord, make_row, rows_by_objects
from bilevel.experiments.timings import microseconds_per_step
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.learn import learn
from bilevel.learning.networks import PRESETS, LearningConfig
from bilevel.policies.policy_folder import POLICY, read_card
from bilevel.policies.rollout import Perturbation
from bilevel.tabletop import TASKS
from bilevel.tasks.registry import find_task

LARGE_SIZES = (15, 20)
PERTURBED = 3  # objects
KINDS = ("sizes", "perturbed", "large")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to measure, and where to keep it."""

    folder: Path
    demonstrations: int
    sizes: tuple[int, ...]
    episodes: int  # for each number of objects
    perturbed_episodes: int

    def data_set(self, task: str) -> Path:
        return self.folder / "demonstrations" / task


@dataclass(frozen=True)
class Candidate:
    """A policy to be learned; its seed is also that of the episodes it is run in, so each policy is run in others."""

    task: str
    preset: str
    seed: int
    epochs: int | None = None  # instead of those of the preset, and without DAgger

    @property
    def name(self) -> str:
        return f"{self.task}-{self.preset}-{self.seed}" + (f"-{self.epochs}" if self.epochs else "")

    @property
    def config(self) -> LearningConfig:
        usual = PRESETS[self.preset]
        if self.epochs is None:
            return usual
        training = replace(usual.training, epochs=self.epochs, updates=0)
        return replace(usual, training=training, dagger=DaggerConfig(rounds=0))

    def folder(self, settings: Settings) -> Path:
        return settings.folder / "policies" / self.name

    def results(self, settings: Settings, kind: str) -> Path:
        return settings.folder / "episodes" / f"{self.name}-{kind}.jsonl"

    def evaluation(self, settings: Settings, kind: str) -> Evaluation:
        policy, task = find_policy("bison", self.folder(settings)), find_task(self.task)
        if kind == "perturbed":
            noise = Perturbation().amplitude
            return Evaluation(policy, task, (PERTURBED,), settings.perturbed_episodes, self.seed, noise)
        return Evaluation(
            policy, task, settings.sizes if kind == "sizes" else LARGE_SIZES, settings.episodes, self.seed
        )


def make_data_set(settings: Settings, task: str, workers: int) -> str:
    collect(find_task(task), settings.data_set(task), objects=3, episodes=settings.demonstrations, workers=workers)
    return f"{task}: {settings.demonstrations} demonstrations"


def make_policy(settings: Settings, candidate: Candidate) -> Candidate:
    """Learn the policy, unless it is there."""
    folder = candidate.folder(settings)
    if not (folder / POLICY).exists():
        unfinished = settings.folder / "unfinished" / candidate.name
        unfinished.mkdir(parents=True, exist_ok=True)
        learn(
            Demonstrations.read(settings.data_set(candidate.task)),
            folder,
            task=find_task(candidate.task),
            preset=candidate.preset,
            config=candidate.config,
            seed=candidate.seed,
            checkpoints=unfinished,
        )
        shutil.rmtree(unfinished)
    return candidate


def measure(settings: Settings, candidate: Candidate, kind: str) -> tuple[Candidate, str]:
    with open_results(candidate.results(settings, kind), candidate.evaluation(settings, kind)) as results:
        list(results.collect())
    return candidate, kind


def summary(settings: Settings, candidate: Candidate, kind: str) -> Row:
    """One line: how a policy did in the episodes of one kind, and how it was learned."""
    records = list(read_results(candidate.results(settings, kind)))
    rows, card = rows_by_objects(records), read_card(candidate.folder(settings))
    return {
        "kind": kind,
        "task": candidate.task,
        "preset": candidate.preset,
        "seed": candidate.seed,
        "demonstrations": settings.demonstrations,
        "noise": records[0].noise,
        **make_row(records).as_json(),
        "by_objects": {str(size): [row.successes, row.episodes] for size, row in rows.items()},
        "mean_steps_by_objects": {str(size): row.mean_steps for size, row in rows.items()},
        "failures": [_failure(record) for record in records if not record.success],
        "microseconds_per_step": {part: microseconds_per_step(records, part) for part in ("policy", "physics")},
        "learning": {name: value for name, value in card.summary.items() if name != "demonstrations"},
        "settings": card.settings,
        **origin(),
        "versions": records[0].versions,
    }


def _failure(record: EpisodeRecord) -> dict[str, Any]:
    return {"objects": record.objects, "seed": record.seed, "outcome": record.outcome, "reason": record.reason}


def run(settings: Settings, candidates: Sequence[Candidate], kinds: Sequence[str], workers: int) -> list[Row]:
    """Collect, learn and measure, as much at the same time as there are workers."""
    tasks = list(dict.fromkeys(candidate.task for candidate in candidates))
    each = max(1, workers // len(tasks))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        data_sets = {pool.submit(make_data_set, settings, task, each): task for task in tasks}
        learned: dict[Future[Candidate], Candidate] = {}
        for data_set in as_completed(data_sets):
            print(data_set.result(), flush=True)
            here = [candidate for candidate in candidates if candidate.task == data_sets[data_set]]
            learned |= {pool.submit(make_policy, settings, candidate): candidate for candidate in here}
        measured = []
        for policy in as_completed(learned):
            candidate = policy.result()
            print(f"learned {candidate.name}", flush=True)
            measured += [pool.submit(measure, settings, candidate, kind) for kind in kinds if has(candidate.task, kind)]
        lines = []
        for episodes in as_completed(measured):
            lines.append(summary(settings, *episodes.result()))
            print(_told(lines[-1]), flush=True)
    return sorted(lines, key=lambda line: (line["kind"], line["task"], line["preset"], line["seed"]))


def has(task: str, kind: str) -> bool:
    return kind != "large" or (TASKS[task].max_objects or 0) >= max(LARGE_SIZES)


def _told(line: Row) -> str:
    about = f"{line['task']}, {line['preset']}, seed {line['seed']}, {line['kind']}"
    return f"{about}: {line['successes']}/{line['episodes']} {json.dumps(line['by_objects'])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=[name for name in TASKS if name != "swap"])
    parser.add_argument("--presets", nargs="+", choices=list(PRESETS), default=list(PRESETS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(range(1, 11)))
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--perturbed-episodes", type=int, default=30)
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("build/policies"))
    parser.add_argument("--output", type=Path, default=Path("results/policies.jsonl"))
    given = parser.parse_args()
    settings = Settings(
        folder=given.folder,
        demonstrations=given.demonstrations,
        sizes=tuple(given.sizes),
        episodes=given.episodes,
        perturbed_episodes=given.perturbed_episodes,
    )
    candidates = [
        Candidate(task, preset, seed, given.epochs)
        for task in given.tasks
        for preset in given.presets
        for seed in range(given.seeds)
    ]
    lines = run(settings, candidates, given.kinds, given.workers)
    write_rows(given.output, lines)


if __name__ == "__main__":
    main()
