"""Commands that measure: evaluate a policy, compare two evaluations, list the methods."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilevel.cli.options import argument, command, option, required, shared
from bilevel.cli.output import answer, count, progress_line

if TYPE_CHECKING:
    from bilevel.experiments.statistics import Pair
    from bilevel.progress import Progress

MAX_SHOWN = 20  # episodes that changed, in words


@command(
    "evaluate",
    "--policy build/policy --objects 1-10 --episodes 10 --output build/results.jsonl",
    "cubes.py:task --policy build/policy --output build/cubes.jsonl",
)
@argument("task", "TEXT", "A task, or where it is: file.py:task (by default the one of the policy).", required=False)
@required("--output", "FILE", "Where to write the results, a line of JSON per episode; timings go to a file beside it.")
@option(
    "--policy",
    "POLICY|expert",
    "Folder of the policy, see `bilevel learn`; the name of a pretrained one, see `bilevel policies`; or the task's "
    "expert (by default the pretrained policy of the task, if it has one).",
)
@option(
    "--method",
    "METHOD",
    "Who acts, see `bilevel methods`: bison, expert, pure-nn, pddl-nn, det-plan, det-replan, ndt-plan, ndt-replan, "
    "smolvla, smolvla-metaworld or lama (by default as the policy was learned).",
)
@shared("planner", "planning-seconds")
@option("--objects", "N-M", "How many objects, as the task counts them: 3, 1-10, or 1-3,10.", "1-10")
@option("--episodes", "N>0", "How many episodes for each number of objects.", 10)
@option("--seed", "SEED", "Decides everything that is random; episodes are others than those of `bilevel collect`.", 0)
@shared("workers", "noise", "recovery")
@option("--keep-incidents", bool, "Keep the states with no applicable rule, for `bilevel learn --from-episodes`.")
@shared("perception", "estimation", "env-args", "log")
def evaluate(task: str | None, policy: str | None, env_args: dict[str, Any], **options: Any) -> None:
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

        records = evaluate(policy, task, callback=callback, **options, **env_args)
    first, kept, output = records[0], begun[0], str(options["output"])
    values = {"output": output, "task": first.task, "method": first.method, "policy": first.policy}
    there = f", {kept} of them already there" if kept else ""
    usual = " with the pretrained policy" if first.policy and policy is None else ""
    answer(
        {**values, "already_there": kept, "by_objects": summarise_by_objects(records), "total": summarise(records)},
        f"{first.task}, {first.method}{usual}: {count(records, 'episode')}{there}",
        *summary_lines(records),
        f"written to {output}",
    )


@command("methods", "")
def methods() -> None:
    """List the methods that can be compared: what each of them is, how it is learned, and what it lacks here."""
    from bilevel.methods.methods import METHODS

    rows, lines = [], []
    for name, method in METHODS.items():
        lacking, learned = method.missing(), f"; learned, {method.training}" if method.training else ""
        rows.append({each: getattr(method, each) for each in ("title", "about", "training", "planners")})
        rows[-1] |= {"name": name, "missing": lacking}
        lines.append((name, f"{method.about}{learned}{f'; not here: {lacking}' if lacking else ''}"))
    formatter = click.HelpFormatter(max_width=110)
    formatter.write_dl(lines)
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
    values |= {"first": str(first), "second": str(second), "task": found.pairs[0][0].task, "changed": changed}
    left_out = {"A": found.only_first, "B": found.only_second}
    answer(
        {**values, "total": total, "by_objects": by_objects},
        f"A: {first}",
        f"B: {second}",
        f"{found.pairs[0][0].task}: {count(found.pairs, 'episode')} in both"
        + "".join(f"; {number} only in {name}, left out" for name, number in left_out.items() if number),
        *(f"  {line}" for line in difference_lines(found.differences)),
        "" if found.differences else "nothing else that is recorded differs between them",
        *rate_lines({**by_objects, "total": total}),
        "p is that of McNemar's exact test for pairs; what other training seeds give, it does not say",
        *_further_lines(total, changed),
    )


def _changed(pair: Pair, first: Path, second: Path) -> dict[str, object]:
    """Return how an episode that changed ended in both, and the command that shows where it fails."""
    file, record = (first, pair[0]) if pair[1].success else (second, pair[1])
    replay = f"bilevel run --replay {shlex.quote(str(file))} --objects {record.objects} --episode {record.episode}"
    ends = {"first": pair[0].reason or pair[0].outcome, "second": pair[1].reason or pair[1].outcome}
    return {name: getattr(record, name) for name in ("objects", "episode", "seed")} | ends | {"replay": replay}


def _further_lines(total: dict[str, Any], changed: list[dict[str, object]]) -> Iterator[str]:
    """Yield how the steps differ, and which episodes changed."""
    if total["mean_steps"] is None:
        yield "no episode is solved by both, so steps are not compared"
    else:
        first, second = total["mean_steps"]
        yield f"mean steps in the {count(total['both'], 'episode')} that both solve: A {first:.1f}, B {second:.1f}"
    if not changed:
        yield "no episode changed: each succeeds in both, or fails in both"
        return
    yield f"{count(changed, 'episode')} changed; to see what happens where one fails:"
    yield from (f"  {each['first']} → {each['second']}: {each['replay']}" for each in changed[:MAX_SHOWN])
    if len(changed) > MAX_SHOWN:
        yield f"  and {len(changed) - MAX_SHOWN} more: see --json"
