"""Commands that run experiments in a folder, and make pages of what was found there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilevel.cli.options import argument, command, decorated, option, required
from bilevel.cli.output import answer, progress_line, say

if TYPE_CHECKING:
    from bilevel.experiments.experiment import ExperimentSummary

OPTIONS = (  # of all commands that run an experiment in a folder
    required("--output", "DIR", "Where everything is kept: demonstrations, policies, episodes, and the report."),
    option("--cluster", "ADDRESS", "Work on this Ray cluster, such as 10.0.0.1:6379 or auto, with the same results."),
    option("--workers", "N>0", "How many jobs are done at the same time (by default one for each core)."),
    option("--methods", "NAME...", "Methods, or rows of the table (by default the usual ones)."),
    option("--tasks", "NAME...", "Tasks of the tabletop (by default those of the paper, or of the suite)."),
    option("--objects", "N-M", "How many objects (by default 1-10; 10 in the hard suite, and 5 for perception)."),
    option("--episodes", "N>0", "For each number of objects or point, with each seed (by default 10, or 4 if hard)."),
    option("--seeds", "N>0", "How many networks of each kind, each in worlds of its own (by default 3)."),
    option("--epochs", "N>0", "Of cloning in the paper's setting, whatever the method (by default 200)."),
    option("--updates", "N>0", "The same in steps of training over all epochs (by default one pass an epoch)."),
    option("--learning-rate", "X>0", "Of all networks at first; it falls to 0 along a cosine (by default 0.001)."),
    option("--dagger-episodes", "N>0", "Rollouts in each round of DAgger, whatever the method (by default 60)."),
    option("--tray-position", "fixed|free-spot", "Where a tray is seen: at its first spot, or its next free one."),
    option("--demonstrations", "N>1", "That each policy learns from (by default 200)."),
    option("--quick", bool, "A smaller version, labelled as such, within half an hour; what you give besides counts."),
)


@command(
    "reproduce",
    "--quick --output build/quick",
    "--tasks blocks gacha --methods bison det-replan --output build/some",
    "--cluster auto --output build/all",
)
@option("--parts", "NAME...", "What to make: table, scaling, films, report (by default all of them).")
@decorated(OPTIONS)
def reproduce(output: Path, **options: Any) -> int:
    """Run the whole experiment: collect, train, evaluate and report whatever is not there yet.

    It can be stopped or killed at any time: the same command goes on, here or on another machine that sees the folder.
    Several of them may work in one folder at the same time, and share the work. Results do not depend on who did what.
    """
    from bilevel.experiments import reproduce as experiment

    return _run(experiment.reproduce, output, options)


@command(
    "benchmark hard",
    "--output build/hard",
    "--axes teleports control-noise --tasks blocks --output build/hard",
    "--quick --output build/quick-hard",
)
@option("--axes", "NAME...", "What is made harder (by default everything, see `bilevel benchmark axes`).")
@decorated(OPTIONS)
def benchmark_hard(output: Path, **options: Any) -> int:
    """Measure how far each method gets as one thing after the other is made harder: a curve for each.

    It works as `bilevel reproduce` does, and in the same folder uses the same policies: it can be stopped or killed at
    any time, and the same command goes on. Axes that are asked for later are added to those that are there.
    """
    from bilevel.experiments import reproduce as experiment

    return _run(experiment.benchmark_hard, output, options)


def _run(experiment: Callable[..., ExperimentSummary], output: Path, options: dict[str, Any]) -> int:
    """Run an experiment; print what was done, and what failed; return the exit code."""
    with progress_line(resumes=True) as callback:
        outcome = experiment(output, callback=callback, **options)
    values = {"output": output, "done": outcome.done, "already_there": outcome.there, "failed": outcome.failed}
    answer({**values, "left_out": outcome.left_out, "report": outcome.report})
    say(*(f"failed: {name}: {error}" for name, error in outcome.failed.items()))
    return 1 if outcome.failed else 0


@command("benchmark axes", "")
def benchmark_axes() -> None:
    """List the axes of the hard suite: what each makes harder, from which value to which, on which tasks."""
    from bilevel.experiments.rows import AXES

    for axis in AXES.values():
        answer({"axis": axis.name, "about": axis.about, "values": [*axis.values], "tasks": [*axis.tasks]})


@command("report", "build/reproduction --output build/report.html")
@argument("source", "DIR", "Folder of `bilevel reproduce` or `benchmark hard`, or a file of what was found.")
@required("--output", "FILE", "Where to write the page.")
def report(source: Path, output: Path) -> None:
    """Make one page of what `bilevel reproduce` has found: tables, charts, rules, films, and how it was made.

    The page is a single file that loads nothing. Beside it, in a folder of its name with -files, are the tables as CSV
    and LaTeX, and the figures as PDF and PNG. What `bilevel benchmark hard` has found is on the same page.
    """
    from bilevel.experiments.report import write_report
    from bilevel.files import require_writable

    require_writable(output)
    folder = output.with_name(f"{output.stem}-files")
    written = write_report(source, output, folder)
    answer({"output": output, "folder": folder, "files": written})
