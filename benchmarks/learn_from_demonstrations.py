"""From demonstrations to rules: collect a data set of every task, learn its rules, compare them with the golden ones.

    python benchmarks/learn_from_demonstrations.py                    # a quarter of an hour on two cores
    python benchmarks/learn_from_demonstrations.py --tasks blocks --episodes 20

Collecting is the command `bilevel collect`, timed from its start to its end. Prints a line for each task and writes it
at once to results/demonstrations.jsonl, in place of the same row of an earlier run. Rules that differ are printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from result_files import Row, origin, replace_row

from bilevel.demonstrations.checking import Report, check
from bilevel.demonstrations.manifest import Manifest, read_manifest
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.tabletop import TASKS
from bilevel.tasks.task import Task

GOLDEN = Path(__file__).parents[1] / "tests" / "rules" / "golden"


def collect(task: Task, given: argparse.Namespace, folder: Path) -> float:
    """Collect a data set; the seconds that it took."""
    options = {name: getattr(given, name) for name in ("objects", "episodes", "seed", "workers")}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    words += ["--noise", str(given.noise)] if given.noise is not None else []
    started = time.perf_counter()
    command = [sys.executable, "-m", "bilevel.cli", "collect", task.name, *words, "--output", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(task: Task, given: argparse.Namespace) -> tuple[Row, str]:
    """The row of a task, and the text of its rules."""
    with tempfile.TemporaryDirectory() as name:
        seconds = collect(task, given, Path(name) / task.name)
        started = time.perf_counter()
        report = check(Path(name) / task.name, task)
        manifest = read_manifest(Path(name) / task.name)
    read = time.perf_counter()
    text = format_rules(learn_rules(report.summary.traces, task.domain), [domain_line(task.domain.name)])
    learned = time.perf_counter()
    if report.problems:
        sys.exit("\n".join(report.problems))
    times = {
        "collecting_seconds": round(seconds, 1),
        "labelling_seconds": round(read - started, 1),
        "learning_seconds": round(learned - read, 3),
    }
    golden = (GOLDEN / f"{task.domain.name}.rules").read_text(encoding="utf-8")
    return row(report, manifest, text == golden, times, given.workers), text


def row(report: Report, manifest: Manifest, golden: bool, times: dict[str, float], workers: int) -> Row:
    found, settings = report.summary, manifest.settings
    return {
        "task": settings.task,
        "objects": settings.arguments["objects"],
        "noise": settings.noise.amplitude if settings.noise else None,
        "episodes": found.episodes,
        "seed": settings.seed,
        "workers": workers,
        "golden_rules": golden,
        "steps": found.steps,
        "failed_attempts": sum(entry.attempts - 1 for entry in manifest.files),
        "megabytes": round(report.megabytes, 2),
        **times,
        "traces": len(found.traces),
        "actions": dict(sorted(found.actions.items())),
        "exogenous": found.exogenous,
        "events": dict(sorted(found.events.items())),
        "ambiguous": found.ambiguous,
        "explained_steps": found.explained,
        "agreeing_steps": found.agreeing,
        **origin(),
        "versions": dict(manifest.versions),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--objects", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, help="amplitude of the control noise")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("results/demonstrations.jsonl"))
    given = parser.parse_args()
    for name in given.tasks:
        found, text = measure(TASKS[name], given)
        replace_row(given.output, found, ("task", "objects", "noise", "episodes", "seed"))
        print(
            f"{name:14} golden rules: {'yes' if found['golden_rules'] else 'NO '}  {found['episodes']} episodes, "
            f"{found['steps']} steps, {found['megabytes']} MB; {found['collecting_seconds']} s collecting, "
            f"{found['labelling_seconds']} s labelling, {found['learning_seconds']} s learning; "
            f"exogenous {found['exogenous']} (events {found['events']}), ambiguous {found['ambiguous']}; "
            f"steps with an action {found['explained_steps']}, with the expert's {found['agreeing_steps']}",
            flush=True,
        )
        if not found["golden_rules"]:
            print(text, flush=True)


if __name__ == "__main__":
    main()
