"""Learning a domain from a data set, its text, and its check on demonstrations that it was not learned from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.domain_learning.changes import Episode, episodes_of, inferred_frame
from bilevel.domain_learning.check import DomainReport, check_domain
from bilevel.domain_learning.conditions import DomainSettings, LearnedDomain
from bilevel.domain_learning.operators import learn_operators
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.task import Task

HEADER = ";# Learned from demonstrations, and yours to edit.\n"


def domain_text(learned: LearnedDomain) -> str:
    """Return the PDDL of a learned domain, with counts as comments."""
    text = write_domain(learned.domain)
    for name in (*learned.domain.schemas, *learned.domain.events):
        start = re.compile(rf"^( *)(?=\(:(?:action|event) {re.escape(name)}$)", re.MULTILINE)
        text = start.sub(lambda found, name=name: f"{found[1]}{_seen(learned, name)}\n{found[1]}", text)  # type: ignore[misc]
    return HEADER + text.rstrip("\n") + "\n" + "".join(_dropped(learned))


def _seen(learned: LearnedDomain, name: str) -> str:
    """Say how often an operator was seen, with which outcomes, and which parameters no control depends on."""
    counts = learned.counts[name]
    outcomes = (f"outcome {number} {_times(count)}" for number, count in enumerate(counts, 1))
    text = f";# seen {_times(sum(counts))}{': ' + ', '.join(outcomes) if len(counts) > 1 else ''}"
    untold = learned.untold.get(name, ())
    return f"{text}; the controls do not depend on {', '.join(untold)}" if untold else text


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _dropped(learned: LearnedDomain) -> Iterator[str]:
    """Give a line for each change that was not taken for an operator."""
    if learned.dropped:
        yield "\n;# Changes that were not taken for operators:\n"
    for each in learned.dropped:
        yield f";#   {_times(each.count)}, first in episode {each.episode} at step {each.step}: {each.text}\n"


@dataclass(frozen=True)
class DomainStudy:
    """A domain that was learned from some episodes, and how it explains those that were held out."""

    learned: LearnedDomain
    episodes: int
    held_out: int
    report: DomainReport | None  # of the episodes that were held out, if there are any

    @property
    def domain(self) -> Domain:
        """The domain that was learned."""
        return self.learned.domain

    @property
    def text(self) -> str:
        """The domain as PDDL, with what was seen as comments."""
        return domain_text(self.learned)


def learn_domain(
    demonstrations: Demonstrations,
    task: Task | None = None,
    *,
    held_out: float = 0.2,
    settings: DomainSettings | None = None,
) -> DomainStudy:
    """Learn operators and events from demonstrations, and check them on a share of these that is `held_out`.

        study = learn_domain(demonstrations, task)
        Path("domain.pddl").write_text(study.text)

    The labels are the task's, or else those that were recorded. Of the domain that there is, only types and predicates
    are looked at, and where it has none they are learned, too. What an expert called its actions plays no part.
    """
    if not 0 <= held_out < 1:
        raise BadInput(f"the share of episodes that is held out must be at least 0 and less than 1, not {held_out:g}")
    episodes = list(episodes_of(demonstrations, task))
    shown, held = hold_out(len(episodes), held_out)
    frame = frame_of(episodes, task.domain if task else demonstrations.domain)
    learned = learn_operators([episodes[number] for number in shown], frame, settings)
    report = _checked(learned.domain, episodes, held)
    return DomainStudy(_numbered(learned, shown), len(shown), len(held), report)


def frame_of(episodes: Sequence[Episode], domain: Domain) -> Domain:
    """Return types and predicates of a domain, without its actions; where it has no predicates, as facts show them."""
    return (
        replace(domain, schemas={}, events={}, adl="") if domain.predicates else inferred_frame(episodes, domain.name)
    )


def hold_out(episodes: int, share: float) -> tuple[list[int], list[int]]:
    """Return the numbers of the episodes to learn from, the first among them, and of those held out, spread evenly."""
    held = [number for number in range(1, episodes) if int((number + 1) * share) > int(number * share)]
    return [number for number in range(episodes) if number not in held], held


def _numbered(learned: LearnedDomain, numbers: Sequence[int]) -> LearnedDomain:
    """Return what was learned with the numbers that episodes have in the data set."""
    return replace(
        learned, dropped=tuple(replace(dropped, episode=numbers[dropped.episode]) for dropped in learned.dropped)
    )


def _checked(domain: Domain, episodes: Sequence[Episode], numbers: Sequence[int]) -> DomainReport | None:
    """Check a domain on some of the episodes, which keep their numbers; `None` where there are none."""
    if not numbers:
        return None
    report = check_domain(domain, [episodes[number] for number in numbers])
    kinds = (report.explained, report.by_event, report.ambiguous, report.contradicted, report.flickers)
    firsts: list[Any] = [*chain(*kinds), *report.undeclared, *report.findings]
    for first in firsts:
        first.episode = None if first.episode is None else numbers[first.episode]
    return report
