"""The command that learns a domain from demonstrations."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from bilevel.commands.arguments import DataFolder, Json, OptionalTask, Output, answer, count, require_at_least
from bilevel.files import require_writable, write_atomically
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.demonstrations.checking import Kind
    from bilevel.domain_learning.checking import DomainReport
    from bilevel.domain_learning.learning import DomainStudy
    from bilevel.symbolic.domain import Schema

MOST_DROPPED = 5  # kinds that are told; all are in the file

Share = Annotated[float, tyro.conf.arg(metavar="SHARE")]


@dataclass(frozen=True)
class LearnDomain:
    """Learn the actions of a domain from demonstrations, and write them as PDDL; needs labels, and no actions.

    Also finds what nature does by itself. If the file is there already, your names and comments in it are kept.

    Example: bilevel domain learn build/cubes --output cubes.pddl
    """

    folder: DataFolder
    output: Output
    """PDDL file for the domain; it is yours from then on."""
    task: OptionalTask = None
    """Label every timestep anew with this task (by default the one registered under the data set's name; without one,
    the recorded labels are used)."""
    settling: int = 5
    """What changes within so many timesteps is one change."""
    held_out: Share = 0.2
    """The share of the episodes to check the domain on instead of learning it from them."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.domain_learning.learned import DomainSettings
        from bilevel.domain_learning.learning import learn_domain
        from bilevel.symbolic.expressions import read_text
        from bilevel.symbolic.pddl import parse_domain
        from bilevel.tasks.registry import find_task, registered_task

        began = time.perf_counter()
        require_at_least(0, settling=self.settling)
        if not 0 <= self.held_out < 1:
            raise BadInput(f"--held-out must be at least 0 and less than 1, but is {self.held_out:g}")
        former = read_text(self.output) if self.output.exists() else None
        if former is not None:
            parse_domain(former, str(self.output))
        require_writable(self.output)
        demonstrations = Demonstrations.read(self.folder)
        task = find_task(self.task) if self.task else registered_task(demonstrations.task)
        settings = DomainSettings(settling=self.settling)
        study = learn_domain(demonstrations, task, held_out=self.held_out, settings=settings, former=former)
        write_atomically(self.output, study.text)
        seconds = time.perf_counter() - began
        written = f"written to {self.output} in {seconds:.1f} s"
        values = {"output": str(self.output), **_values(study), "seconds": round(seconds, 2)}
        answer(values, self.json, *_lines(study), written)
        return 0


def _values(study: DomainStudy) -> dict[str, Any]:
    import msgspec

    learned = study.learned
    return {
        "domain": study.domain.name,
        "actions": {name: learned.counts[name] for name in study.domain.schemas},
        "events": {name: learned.counts[name] for name in study.domain.events},
        "untold": learned.untold,
        "dropped": [{"change": each.text, "count": each.count} for each in learned.dropped],
        "episodes": study.episodes,
        "held_out": study.held_out,
        "report": msgspec.to_builtins(study.report),
    }


def _lines(study: DomainStudy) -> Iterator[str]:
    """Say what was learned, and how well it explains what was held out."""
    from bilevel.domain_learning.checking import total

    domain, learned, dropped = study.domain, study.learned, study.learned.dropped
    known = f"{count(domain.schemas, 'action')}, {count(domain.events, 'event')}"
    yield f"{domain.name}: {known}, learned from {count(study.episodes, 'episode')}"
    for kind, schemas in (("", domain.schemas), ("event ", domain.events)):
        for name, schema in schemas.items():
            yield f"  {kind}{_call(schema)}: {_seen(learned.counts[name])}"
    if dropped:
        yield f"left out, as too rare: {count(sum(each.count for each in dropped), 'change')}"
        yield from (f"  {each.count} × {each.text}" for each in dropped[:MOST_DROPPED])
        if len(dropped) > MOST_DROPPED:
            yield f"  and {len(dropped) - MOST_DROPPED} more kinds, see the end of the file"
    if study.report:
        yield from _report(study.report, total)


def _call(schema: Schema) -> str:
    return f"{schema.name}({', '.join(parameter.name for parameter in schema.parameters)})"


def _seen(counts: Sequence[int]) -> str:
    each = f" (outcomes: {', '.join(map(str, counts))})" if len(counts) > 1 else ""
    return f"{sum(counts)} times{each}"


def _report(report: DomainReport, total: Any) -> Iterator[str]:
    """Tell how many of the changes are explained, and the first of each kind that are not."""
    changes = max(1, report.changes)
    explained = total(report.explained) + total(report.by_event)
    parts = (("explained", explained), ("ambiguous", total(report.ambiguous)))
    told = (f"{number / changes:.1%} {what}" for what, number in (*parts, ("contradicted", total(report.contradicted))))
    yield f"{count(report.changes, 'change')} in {count(report.episodes, 'episode')} held out: {', '.join(told)}"
    for what, kinds in (
        ("explained", report.explained),
        ("ambiguous", report.ambiguous),
        ("contradicted", report.contradicted),
    ):
        yield from (_example(what, kind) for kind in kinds[:1])


def _example(what: str, kind: Kind) -> str:
    parts = [f"{', '.join(facts)} {how}" for facts, how in ((kind.came, "came"), (kind.went, "went")) if facts]
    by = f": {' or '.join(kind.actions)}" if kind.actions else ""
    return f"  {what}, first in episode {kind.episode} at step {kind.step}: {'; '.join(parts)}{by}"
