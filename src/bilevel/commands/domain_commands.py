"""Commands about domains: check one against demonstrations, and show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from bilevel.commands.arguments import DomainFile, Json, OptionalTask, answer, count, print_json, progress_bar
from bilevel.commands.check_demonstrations_command import kind_lines
from bilevel.symbolic.domain import Domain, Outcome, Schema
from bilevel.symbolic.pddl import read_domain

if TYPE_CHECKING:
    from bilevel.demonstrations.checking import Kind
    from bilevel.domain_learning.checked_schemas import Finding
    from bilevel.domain_learning.checking import DomainReport

Data = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA", help="Folder of the data set.")]


@dataclass(frozen=True)
class CheckDomain:
    """Compare a domain with demonstrations, change by change; exits with 1 if they contradict it.

    Says how many changes of the labels one action explains, several, an event, or nothing, with the first of each. Of
    the domain, it says which precondition was contradicted or never tested, which effect did not come or is not listed,
    and which action was never seen.

    Example: bilevel domain check domain.pddl build/blocks
    """

    domain: DomainFile
    data: Data
    task: OptionalTask = None
    """Label every timestep anew with this task; else the labels are used that were recorded."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        import msgspec

        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.domain_learning.checking import check_domain
        from bilevel.domain_learning.episodes import episodes_of
        from bilevel.tasks.registry import find_task

        domain = read_domain(self.domain)
        data = Demonstrations.read(self.data)
        task = find_task(self.task) if self.task else None
        with progress_bar() as progress:
            episodes = progress.track(episodes_of(data, task), len(data), description="checking")
            report = check_domain(domain, episodes)
        values = {"fits": report.fits, "changes": report.changes, **msgspec.to_builtins(report)}
        answer(values, self.json, *_lines(report))
        return 0 if report.fits else 1


def _lines(report: DomainReport) -> Iterator[str]:
    """Give what was found: the verdict, the changes in numbers, the domain's faults, then single changes."""
    yield _verdict(report)
    yield from _numbers(report)
    undeclared = [
        f"{each.reason}: {each.fact} in {count(each.states, 'state')}, {_first(each.episode, each.step)}"
        for each in report.undeclared
    ]
    yield from _titled("facts that the domain does not know, left out of all else:", undeclared)
    wrong, doubtful = ([each for each in report.findings if each.is_wrong is truth] for truth in (True, False))
    yield from _titled("what is wrong with the domain:", _findings(wrong))
    yield from _titled("what the data do not confirm:", _findings(doubtful))
    for title, kinds in (
        ("changes that nothing explains:", report.contradicted),
        ("changes that several actions explain:", report.ambiguous),
        ("flickers, undone after a few steps:", report.flickers),
    ):
        if kinds:
            yield title
            yield from kind_lines(kinds)


def _verdict(report: DomainReport) -> str:
    data = f"{count(report.episodes, 'episode')}, {count(report.steps, 'step')}"
    if not report.changes:
        return f"{report.domain}: no label changes in {data}, so nothing is tested"
    wrong = _total(report.contradicted)
    explained = _share(report.changes - wrong, report.changes)
    said = f"; {wrong} {'contradicts' if wrong == 1 else 'contradict'} the domain" if wrong else ""
    said += "; it does not know all facts" if report.undeclared else ""
    return f"{report.domain}: {explained} of {count(report.changes, 'change')} explained{said} ({data})"


def _numbers(report: DomainReport) -> Iterator[str]:
    """Give a row for each sort of change, with the first example."""
    rows = [
        ("by one action", report.explained),
        ("by an event", report.by_event),
        ("ambiguous", report.ambiguous),
        ("contradicted", report.contradicted),
        ("flickers", report.flickers),
    ]
    for name, kinds in rows:
        if not kinds:
            continue
        first = min(kinds, key=lambda kind: (kind.episode, kind.step))
        number = _total(kinds)
        share = "" if name == "flickers" else _share(number, report.changes)
        named = "" if kinds is report.ambiguous else " and ".join(first.actions)
        example = f"{_first(first.episode, first.step)}{f': {named}' if named else ''}"
        settled = (
            f"; {report.settled} settled over several steps" if kinds is report.explained and report.settled else ""
        )
        yield f"  {name:<13}{number:>6}{share:>8}  {example}{settled}"
    seen = {**report.actions, **report.events}.items()
    yield f"  {'seen':<15}{', '.join(f'{name} {number}' for name, number in seen if number) or 'nothing'}"


def _titled(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield title
        yield from (f"  {line}" for line in lines)


def _findings(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each finding, the names of actions in a column."""
    width = max((len(finding.schema) for finding in findings), default=0)
    return [f"{finding.schema:<{width}}  {_sentence(finding)}" for finding in findings]


def _sentence(finding: Finding) -> str:
    """Say what was found, and where first."""
    what, number, of = finding.what, finding.count, finding.of
    came = f"came in only {of - number} of {of} occurrences" if number < of else f"never came in {of} occurrences"
    held = f"{what} held before each of {of} occurrences, but not wherever the rest did"
    possible = f", though it may be what happened in {count(number, 'ambiguous change')}" if number else ""
    said = {
        "contradicted precondition": f"precondition {what}: contradicted, in {number} of {of} occurrences",
        "missing effect": f"effect {what}: {came}",
        "unlisted effect": f"effect {what}: not listed, but it came in {number} of {of} occurrences",
        "never seen": f"never seen{possible}",
        "outcome never seen": f"outcome {what}: never seen in {of} occurrences",
        "possible precondition": f"{held}: is it a precondition?",
        "untested precondition": f"precondition {what}: never tested, it held in every state where the rest held",
        "unseen effect": f"effect {what}: never seen, it was so already in all of {of} occurrences",
    }[finding.sort]
    if finding.episode is None or finding.step is None:
        return said
    return f"{said} ({_first(finding.episode, finding.step)})"


def _first(episode: int, step: int) -> str:
    return f"first in episode {episode} at step {step}"


def _total(kinds: Sequence[Kind]) -> int:
    return sum(kind.count for kind in kinds)


def _share(part: int, whole: int) -> str:
    """Return a share in per cent, which is 100 only of all."""
    return f"{min(part / whole, 1.0 if part == whole else 0.999):.1%}"


@dataclass(frozen=True)
class ShowDomain:
    """Print a domain in plain English, as PDDL in a uniform layout, or as JSON.

    Example: bilevel domain show domain.pddl
    """

    domain: DomainFile
    format: Literal["english", "pddl", "json"] = "english"
    """How to print it."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.rules.explanation.domains import domain_in_english
        from bilevel.symbolic.adl import read_adl_domain
        from bilevel.symbolic.pddl import write_domain

        domain = read_adl_domain(self.domain)
        if self.format == "json":
            print_json(**_values(domain))
        else:
            print(domain_in_english(domain) if self.format == "english" else write_domain(domain), end="")
        return 0


def _values(domain: Domain) -> dict[str, Any]:
    """Return a domain as JSON has it; of one in ADL, the parameters alone."""
    return {
        "domain": domain.name,
        "types": dict(domain.types),
        "constants": dict(domain.constants),
        "predicates": {name: [p.type for p in predicate.parameters] for name, predicate in domain.predicates.items()},
        "actions": {name: _schema_values(schema) for name, schema in domain.schemas.items()},
        "events": {name: _schema_values(event) for name, event in domain.events.items()},
        "adl": bool(domain.adl),
    }


def _schema_values(schema: Schema) -> dict[str, Any]:
    negative = [f"not {atom}" for atom in sorted(schema.negative_precondition)]
    return {
        "parameters": {parameter.name: parameter.type for parameter in schema.parameters},
        "precondition": [*map(str, sorted(schema.precondition)), *negative],
        "outcomes": [_outcome_values(outcome) for outcome in schema.outcomes],
    }


def _outcome_values(outcome: Outcome) -> dict[str, Any]:
    return {
        "add": list(map(str, sorted(outcome.add))),
        "delete": list(map(str, sorted(outcome.delete))),
        "chosen": {variable.name: variable.type for variable in outcome.chosen},
        "new": sorted(outcome.new),
    }
