"""Commands about domains: check one against demonstrations, show it, learn one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import bilevel
from bilevel.cli.data import kind_lines
from bilevel.cli.options import argument, command, domain_argument, folder_argument, option, required, shared
from bilevel.cli.output import answer, count, listed, progress_line
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.demonstrations.traces import Kind
    from bilevel.domain_learning.check import DomainReport
    from bilevel.domain_learning.operators import LearnedDomain


@command("domain check", "domain.pddl build/blocks")
@domain_argument
@argument("data", "DIR", "Folder of the data set.")
@shared("task")
def check(domain: Path, data: Path, task: str | None) -> int:
    """Compare a domain with demonstrations, change by change; exits with 1 if they contradict it.

    Says how many changes of the labels one action explains, several, an event, or nothing, with the first of each. Of
    the domain, it says which precondition was contradicted or never tested, which effect did not come or is not listed,
    and which action was never seen.
    """
    from msgspec.structs import asdict

    from bilevel.domain_learning.changes import episodes_of
    from bilevel.domain_learning.check import check_domain

    read, demonstrations = bilevel.read_domain(domain), bilevel.Demonstrations.read(data)
    with progress_line() as callback:
        episodes = episodes_of(demonstrations, bilevel.find_task(task) if task else None, callback)
        report = check_domain(read, enumerate(episodes))
    answer({"fits": report.fits, "changes": report.changes, **asdict(report)}, *_report_lines(report))
    return 0 if report.fits else 1


def _report_lines(report: DomainReport) -> Iterator[str]:
    """Yield what was found: the changes in numbers, with examples where something is odd, then the domain's faults."""
    where = f"{count(report.episodes, 'episode')}, {count(report.steps, 'step')}"
    yield f"{report.domain}: {count(report.changes, 'change')} ({where})"
    for name in ("explained", "by_event", "contradicted", "ambiguous", "flickers"):
        kinds: list[Kind] = getattr(report, name)
        number = sum(kind.count for kind in kinds)
        yield f"{name.replace('_', ' ')}: {number} ({number / max(1, report.changes):.1%})" if kinds else ""
        yield from kind_lines(kinds) if name not in ("explained", "by_event") else ()
    yield f"seen: {listed({name: number for name, number in (report.actions | report.events).items() if number})}"
    for finding in report.findings:
        times = f": {finding.count} of {finding.of}" if finding.of else f": {finding.count}" if finding.count else ""
        place = "" if finding.episode is None else f" (first in episode {finding.episode} at step {finding.step})"
        kind = "wrong" if finding.is_wrong else "not confirmed"
        yield f"{kind}: {finding.schema}  {finding.sort} {finding.what}{times}{place}"


# Showing


@command("domain show", "domain.pddl")
@domain_argument
@option("--format", ("english", "pddl"), "How to print it.", "english", name="form")
def show(domain: Path, form: str) -> None:
    """Print a domain in plain English, or as PDDL in a uniform layout."""
    from bilevel.rules.explanation import domain_in_english
    from bilevel.symbolic.pddl import write_domain

    read = bilevel.read_adl_domain(domain)
    text = domain_in_english(read) if form == "english" else write_domain(read)
    answer({"domain": read.name, "text": text}, text.rstrip("\n"))


# Learning


@command("domain learn", "build/cubes --output cubes.pddl")
@folder_argument
@required("--output", "FILE", "PDDL file for the domain; it is yours from then on.")
@option("--task", "TASK", "Label every timestep anew with this task (by default the registered one of the data set).")
@option("--settling", "N", "Changes within this number of timesteps are one change.", 5)
@option("--held-out", "SHARE", "The share of the episodes to check the domain on, not to learn from.", 0.2)
def learn(folder: Path, output: Path, task: str | None, settling: int, held_out: float) -> None:
    """Learn the actions of a domain from demonstrations, and write them as PDDL; needs labels, and no actions.

    Also finds what nature does by itself. A file that is there already is left alone.
    """
    from bilevel.files import require_writable, write_atomically
    from bilevel.tasks.registry import registered_task

    began = time.perf_counter()
    if output.exists():
        raise BadInput(f"{output} exists already, and is perhaps edited; choose another --output or remove it")
    require_writable(output)
    data = bilevel.Demonstrations.read(folder)
    found_task = bilevel.find_task(task) if task else registered_task(data.task)
    learned = bilevel.learn_domain(data, found_task, held_out=held_out, settling=settling)
    write_atomically(output, learned.text)
    seconds, domain = round(time.perf_counter() - began, 2), learned.domain
    values = {name: getattr(learned, name) for name in ("episodes", "held_out", "untold", "dropped", "report")}
    values |= {"actions": {name: learned.counts[name] for name in domain.schemas}, "domain": domain.name}
    values |= {"events": {name: learned.counts[name] for name in domain.events}, "output": output}
    answer({**values, "seconds": seconds}, *_learned_lines(learned), f"written to {output} in {seconds:.1f} s")


def _learned_lines(learned: LearnedDomain) -> Iterator[str]:
    """Yield what was learned, and how well it explains what was held out."""
    domain, dropped = learned.domain, learned.dropped
    known = f"{count(domain.schemas, 'action')}, {count(domain.events, 'event')}"
    yield f"{domain.name}: {known}, learned from {count(learned.episodes, 'episode')}"
    for name, schema in {**domain.schemas, **domain.events}.items():
        counts, kind = learned.counts[name], "event " if name in domain.events else ""
        each = f" (outcomes: {', '.join(map(str, counts))})" if len(counts) > 1 else ""
        yield f"  {kind}{name}({', '.join(p.name for p in schema.parameters)}): {sum(counts)} times{each}"
    if dropped:
        yield f"left out, as too rare: {count(sum(each.count for each in dropped), 'change')}, see the end of the file"
    if report := learned.report:
        yield f"{count(report.episodes, 'episode')} held out:"
        yield from _report_lines(report)
