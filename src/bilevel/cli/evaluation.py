"""Commands that measure: evaluate a policy, compare two evaluations, list the methods."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilevel.cli.options import argument, command, option, required, shared
from bilevel.cli.output import answer, count, listed, progress_line

if TYPE_CHECKING:
    from bilevel.experiments.statistics import Pair
    from bilevel.progress import Progress


@command(
    "evaluate",
    "--policy build/policy --objects 1-10 --episodes 10 --output build/results.jsonl",
    "cubes.py:task --policy build/policy --output build/cubes.jsonl",
)
@argument("task", "TEXT", "A task, or where it is: file.py:task (by default the one of the policy).", required=False)
@required("--output", "FILE", "Where to write the results, a line of JSON per episode; timings go to a file beside it.")
@shared("policy", "method", "planner", "planning-seconds")
@option("--objects", "N-M", "How many objects, as the task counts them: 3, 1-10, or 1-3,10.", "1-10")
@option("--episodes", "N>0", "How many episodes for each number of objects.", 10)
@option("--seed", "SEED", "Decides everything that is random; episodes are others than those of `bilevel collect`.", 0)
@shared("workers", "noise", "recovery")
@option("--keep-incidents", bool, "Keep the states with no applicable rule, for `bilevel learn --from-episodes`.")
@shared("perception", "estimation", "env-args", "log")
def evaluate(task: str | None, policy: str | None, env_args: Iterable[tuple[str, Any]], **options: Any) -> None:
    """Run a policy in many episodes that it has not seen, and say how often it succeeds, and why it fails.

    Stopped or killed, it goes on where it was when the same command is given again. The results are the same for any
    number of workers.
    """
    from bilevel.experiments.evaluate import evaluate
    from bilevel.experiments.statistics import summarise, summarise_by_objects, summary_lines

    begun: list[int] = []  # how many records were there
    with progress_line(resumes=True) as line:

        def callback(progress: Progress) -> None:
            begun.append(progress.done)
            line(progress)

        records = evaluate(policy, task, callback=callback, **options, **dict(env_args))
    first, kept = records[0], begun[0]
    values = {name: getattr(first, name) for name in ("task", "method", "policy")} | {"output": options["output"]}
    there = f", {kept} of them already there" if kept else ""
    usual = " with the pretrained policy" if first.policy and policy is None else ""
    answer(
        {**values, "already_there": kept, "by_objects": summarise_by_objects(records), "total": summarise(records)},
        f"{first.task}, {first.method}{usual}: {count(records, 'episode')}{there}",
        *summary_lines(records),
    )


@command("methods", "")
def methods() -> None:
    """List the methods that can be compared: what each of them is, how it is learned, and what it lacks here."""
    from bilevel.methods.methods import METHODS

    names = ("name", "title", "about", "training", "planners")
    missing = {name: method.missing() for name, method in METHODS.items()}
    rows = [{each: getattr(METHODS[name], each) for each in names} | {"missing": why} for name, why in missing.items()]
    formatter = click.HelpFormatter(max_width=110)
    formatter.write_dl(
        (name, METHODS[name].about + (f"; not here: {why}" if why else "")) for name, why in missing.items()
    )
    answer({"methods": rows}, formatter.getvalue().rstrip())


# Comparing


@command("compare", "build/before.jsonl build/after.jsonl")
@argument("first", "FILE", "Results of `bilevel evaluate`: A.", metavar="A.jsonl")
@argument("second", "FILE", "Other results, of the same task: B.", metavar="B.jsonl")
def compare(first: Path, second: Path) -> None:
    """Compare two results of `bilevel evaluate`, episode by episode: which is better, and which episodes changed.

    Episodes are paired by task, number of objects, seed and number; those that only one has are left out and counted.
    Intervals are Wilson's, for each policy alone; the p value is that of McNemar's exact test for pairs.
    """
    from bilevel.experiments.records import read_records
    from bilevel.experiments.statistics import compare, difference_lines, paired_rates, rate_lines

    found = compare(read_records(first), read_records(second))
    unlike = [pair for pair in found.pairs if pair[0].success != pair[1].success]
    changed = [_changed(pair, first, second) for pair in sorted(unlike, key=lambda pair: not pair[0].success)]
    total, sizes = paired_rates(found.pairs), sorted({one.objects for one, _ in found.pairs})
    by_objects = {str(size): paired_rates([p for p in found.pairs if p[0].objects == size]) for size in sizes}
    values = {name: getattr(found, name) for name in ("only_first", "only_second", "differences")}
    values |= {"first": first, "second": second, "task": found.pairs[0][0].task, "changed": changed}
    answer(
        {**values, "total": total, "by_objects": by_objects},
        f"A: {first}",
        f"B: {second}",
        f"{found.pairs[0][0].task}: {count(found.pairs, 'episode')} in both, {found.only_first} in A alone, "
        f"{found.only_second} in B alone",
        *(f"  {line}" for line in difference_lines(found.differences)),
        *rate_lines({**by_objects, "total": total}),
        f"mean steps where both succeed: {listed(total['mean_steps'] or ())}",
        f"{count(changed, 'episode')} changed",
        *(f"  {each['first']} → {each['second']}: {each['replay']}" for each in changed),
    )


def _changed(pair: Pair, first: Path, second: Path) -> dict[str, object]:
    """Return how an episode that changed ended in both, and the command that shows where it fails."""
    file, record = (first, pair[0]) if pair[1].success else (second, pair[1])
    replay = f"bilevel run --replay {shlex.quote(str(file))} --objects {record.objects} --episode {record.episode}"
    ends = {"first": pair[0].reason or pair[0].outcome, "second": pair[1].reason or pair[1].outcome}
    return {name: getattr(record, name) for name in ("objects", "episode", "seed")} | ends | {"replay": replay}
