"""Domains learned from demonstrations, beside those that somebody wrote: operators, and how often policies succeed.

    python benchmarks/learned_domains.py                                    # hours on 2 cores
    python benchmarks/learned_domains.py --task blocks --demonstrations 50 --episodes 20        # a first impression

For each task it collects demonstrations, learns the domain from them without looking at the written one, and a policy
with each of the two: from the same data, with the same settings and seeds, evaluated in the same episodes. Everything
is kept in a folder, and what is there already is not made again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from domain_cases import CASES, Plan, Setting, first
from operator_comparison import compare_domains
from result_files import Row, origin, write_rows

import bilevel
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.domain_learning.checking import DomainReport, check_domain, total
from bilevel.domain_learning.episodes import episodes_of
from bilevel.domain_learning.learning import learn_domain
from bilevel.experiments.evaluation import Evaluation, open_results, read_results
from bilevel.experiments.machines import forget_peak, own_peak
from bilevel.experiments.methods import find_policy
from bilevel.experiments.records import wilson_interval
from bilevel.files import write_atomically
from bilevel.policies.policy_folder import POLICY
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.task import Task

LEARNED, WRITTEN = "learned", "written"
STAGES = ("collect", "domains", "learn", "evaluate")
HELD_OUT = 0.2
EPISODES_IN_A_PART = 25  # of an evaluation; its parts are run at the same time


# What is done, each in a process of its own


def collect(plan: Plan, task: str, noise: float | None = None) -> str:
    """Collect as many demonstrations as the largest number asks for."""
    case, began = CASES[task], time.perf_counter()
    bilevel.collect(
        case.find(),
        plan.data(task, noise),
        objects=case.objects,
        episodes=max(plan.demonstrations),
        seed=plan.seed,
        noise=noise,
        workers=plan.workers_for(task),
    )
    return f"{task}: collected in {time.perf_counter() - began:.0f} s"


def study_domain(plan: Plan, task: str, number: int) -> str:
    """Learn the domain with some episodes held out, and note what it took and how well it explains those."""
    path, case = plan.about(task, number), CASES[task].find()
    if not path.exists():
        data = first(Demonstrations.read(plan.data(task)), number)
        forget_peak()
        began = time.perf_counter()
        study = learn_domain(data, case, held_out=HELD_OUT)
        seconds = time.perf_counter() - began
        row = {
            "seconds": round(seconds, 2),
            "peak_mebibytes": round(own_peak()),
            **explained(study.report),
            **operators(case, study.domain, study.learned.counts, shown(data, case)),
            "dropped": [f"{each.count} × {each.text}" for each in study.learned.dropped],
            "pddl": study.text,
        }
        write_atomically(path, json.dumps(row))
    return f"{task}, {number} demonstrations: {_in_short(json.loads(path.read_text(encoding='utf-8')))}"


def shown(demonstrations: Demonstrations, task: Task) -> dict[str, int]:
    """How often each of the written operators was done."""
    return check_domain(task.domain, episodes_of(demonstrations, task)).actions


def operators(task: Task, learned: bilevel.Domain, counts: Mapping[str, Sequence[int]], done: Mapping[str, int]) -> Row:
    """The learned operators beside the written ones, and how often these were done."""
    pairs, others = compare_domains(task.domain, learned)
    return {
        "operators": {
            pair.written: {**pair._asdict(), "same": pair.is_same, "done": done[pair.written]} for pair in pairs
        },
        "others": others,
        "events": list(learned.events),
        "counts": {name: list(numbers) for name, numbers in counts.items()},
    }


def explained(report: DomainReport | None) -> Row:
    """How many of the changes that were held out are explained, in per cent."""
    if report is None:
        return {}
    parts = {
        "explained": total(report.explained) + total(report.by_event),
        "ambiguous": total(report.ambiguous),
        "contradicted": total(report.contradicted),
    }
    shares = {name: round(100 * number / max(1, report.changes), 2) for name, number in parts.items()}
    return {"held_out": {"episodes": report.episodes, "changes": report.changes, **shares}}


def _in_short(row: Row) -> str:
    found = [pair for pair in row["operators"].values() if pair["done"]]
    same = sum(pair["same"] for pair in found)
    held = row["held_out"]
    return (
        f"{same} of {len(found)} operators that were shown the same, {held['explained']}% explained, "
        f"{held['contradicted']}% contradicted"
    )


def learn(plan: Plan, task: str, number: int, domain: str) -> str:
    """Learn a policy in the learned domain or in the written one."""
    target, began = plan.policy(task, number, domain), time.perf_counter()
    if not (target / POLICY).exists():
        data = first(Demonstrations.read(plan.data(task)), number)
        bilevel.learn(
            data,
            target,
            task=CASES[task].find(),
            config=plan.config,
            seed=plan.seed,
            workers=max(1, plan.workers_for(task) // len(plan.domains)),
            learn_domain=domain == LEARNED,
        )
    return f"{target.relative_to(plan.folder)}: learned in {time.perf_counter() - began:.0f} s"


def evaluate(plan: Plan, task: str, number: int, domain: str, setting: Setting, part: int) -> str:
    """Run one part of the episodes of a policy in a setting, as far as they are not there yet."""
    path, folder = plan.part(task, number, domain, setting, part), plan.policy(task, number, domain)
    wanted = _part_sizes(plan.episodes)[part]
    if not path.exists() or len(path.read_bytes().splitlines()) != wanted:
        about = (setting.objects,), wanted, plan.seed + part, 0.0, dict(setting.arguments)
        evaluation = Evaluation(find_policy("bison", folder), CASES[task].find(), *about)
        with open_results(path, evaluation) as results:
            list(results.collect())
    records = list(read_results(path))
    return f"{path.relative_to(plan.folder)}: {sum(record.success for record in records)}/{len(records)}"


def _part_sizes(episodes: int) -> list[int]:
    whole, rest = divmod(episodes, EPISODES_IN_A_PART)
    return [EPISODES_IN_A_PART] * whole + [rest] * bool(rest)


# All of it


def rows(plan: Plan) -> Iterator[Row]:
    """What was measured: a row for each domain that was learned, and one for each policy and setting."""
    for task in plan.tasks:
        for number in plan.demonstrations:
            about = plan.about(task, number)
            if about.exists():
                row = {"part": "domain", "task": task, "demonstrations": number}
                yield {**row, **json.loads(about.read_text(encoding="utf-8")), **origin(CASES[task].find().packages)}
            for domain in plan.domains:
                for setting in plan.settings(task):
                    yield from _success(plan, task, number, domain, setting)


def _success(plan: Plan, task: str, number: int, domain: str, setting: Setting) -> Iterator[Row]:
    paths = [plan.part(task, number, domain, setting, part) for part in range(len(_part_sizes(plan.episodes)))]
    records = [record for path in paths if path.exists() for record in read_results(path)]
    if not records:
        return
    policy, successes = plan.policy(task, number, domain), sum(record.success for record in records)
    yield {
        "part": "success",
        "task": task,
        "demonstrations": number,
        "domain": domain,
        "setting": setting.name,
        "objects": setting.objects,
        "episodes": len(records),
        "successes": successes,
        "interval": [round(bound, 4) for bound in wilson_interval(successes, len(records))],
        "reasons": _counts(record.reason for record in records if record.reason),
        "mean_steps": round(sum(record.steps for record in records) / len(records), 1),
        "actions": sorted(read_domain(policy / "domain.pddl").schemas),
        **origin(CASES[task].find().packages),
    }


def _counts(reasons: Iterator[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for reason in reasons:
        found[reason] = found.get(reason, 0) + 1
    return dict(sorted(found.items()))


Job = tuple[Callable[..., Any], tuple[Any, ...]]


def run_all(plan: Plan, jobs: Sequence[Job]) -> list[Any]:
    """Do all jobs, begun in their order, in processes that are new; say what comes of each."""
    found = []
    for result in _results(plan.workers, jobs):
        print(result, flush=True)
        found.append(result)
    return found


def _results(workers: int, jobs: Sequence[Job]) -> Iterator[Any]:
    if workers == 1:
        yield from (function(*arguments) for function, arguments in jobs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        begun = [pool.submit(function, *arguments) for function, arguments in jobs]
        yield from (done.result() for done in as_completed(begun))


def stage(plan: Plan, name: str) -> list[Job]:
    """The jobs of a stage, the longest first."""
    tasks = sorted(plan.tasks, key=lambda task: -CASES[task].cost)
    numbers = sorted(plan.demonstrations, reverse=True)
    if name == "collect":
        return [(collect, (plan, task)) for task in tasks]
    if name == "domains":
        return [(study_domain, (plan, task, n)) for n in numbers for task in tasks]
    if name == "learn":
        return [(learn, (plan, task, n, kind)) for n in numbers for task in tasks for kind in plan.domains]
    parts = range(len(_part_sizes(plan.episodes)))
    settings = [(task, setting) for task in tasks for setting in plan.settings(task)]
    settings.sort(key=lambda pair: -CASES[pair[0]].cost * pair[1].objects)
    return [
        (evaluate, (plan, task, n, kind, setting, part))
        for task, setting in settings
        for n in numbers
        for kind in plan.domains
        for part in parts
        if (plan.policy(task, n, kind) / POLICY).exists()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--demonstrations", nargs="+", type=int, default=[200, 50, 20])
    parser.add_argument("--domains", nargs="+", choices=[LEARNED, WRITTEN], default=[LEARNED, WRITTEN])
    parser.add_argument("--objects", nargs="+", type=int, help="run policies with these numbers of objects alone")
    parser.add_argument("--episodes", type=int, default=100, help="for each policy and number of objects")
    parser.add_argument("--epochs", type=int, help="of training, instead of those of the preset")
    parser.add_argument("--dagger-rounds", type=int, help="instead of those of the preset")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=STAGES, default=list(STAGES), help="these stages")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/domains"))
    parser.add_argument("--output", type=Path, default=Path("results/learned-domains.jsonl"))
    given = parser.parse_args()
    about = (
        given.objects and tuple(given.objects),
        given.episodes,
        given.epochs,
        given.dagger_rounds,
        given.seed,
        given.workers,
        given.folder,
    )
    plan = Plan(tuple(given.task), tuple(given.demonstrations), tuple(given.domains), *about)
    for each in given.only:
        run_all(plan, stage(plan, each))
    write_rows(given.output, rows(plan))


if __name__ == "__main__":
    main()
