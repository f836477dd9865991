"""Learning a domain from a data set, and checking it on demonstrations that it was not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.domain_learning.checking import DomainReport, check_domain
from bilevel.domain_learning.episodes import Episode, episodes_of
from bilevel.domain_learning.former import in_former_words
from bilevel.domain_learning.frames import inferred_frame
from bilevel.domain_learning.learned import DomainSettings, LearnedDomain
from bilevel.domain_learning.operators import learn_operators
from bilevel.domain_learning.text import domain_text
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class DomainStudy:
    """A domain that was learned from some episodes, and how it explains those that were held out."""

    learned: LearnedDomain
    episodes: int
    held_out: int
    report: DomainReport | None  # of the episodes that were held out, if there are any
    former: str | None = None  # text of the domain, whose words are kept

    @property
    def domain(self) -> Domain:
        """The domain that was learned."""
        return self.learned.domain

    @property
    def text(self) -> str:
        """The domain as PDDL, with what was seen as comments."""
        return domain_text(self.learned, self.former)


def learn_domain(
    demonstrations: Demonstrations,
    task: Task | None = None,
    *,
    held_out: float = 0.2,
    settings: DomainSettings | None = None,
    former: str | None = None,
) -> DomainStudy:
    """Learn operators and events from demonstrations, and check them on a share of these that is `held_out`.

        study = learn_domain(demonstrations, task)
        Path("domain.pddl").write_text(study.text)

    The labels are the task's, or else those that were recorded. Of the domain that there is, only types and predicates
    are looked at, and where it has none they are learned, too. What an expert called its actions plays no part. The
    names and comments in a `former` text, which somebody may have edited, are kept.
    """
    if not 0 <= held_out < 1:
        raise BadInput(f"the share of episodes that is held out must be at least 0 and less than 1, not {held_out:g}")
    episodes = list(episodes_of(demonstrations, task))
    shown, held = hold_out(len(episodes), held_out)
    frame = frame_of(episodes, task.domain if task else demonstrations.domain)
    learned = learn_operators([episodes[number] for number in shown], frame, settings)
    if former is not None:
        learned = in_former_words(learned, parse_domain(former, "<former domain>"))
    report = _checked(learned.domain, episodes, held)
    return DomainStudy(_numbered(learned, shown), len(shown), len(held), report, former)


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
