"""Learning a policy in a domain that is learned from the same demonstrations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import explain, label
from bilevel.domain_learning.learned import LearnedDomain
from bilevel.domain_learning.learning import learn_domain
from bilevel.learning.translation import Translation, find_translation
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class LearnedSymbols:
    """A domain that was learned, its text, and what the expert calls its actions."""

    domain: LearnedDomain
    text: str
    translation: Translation

    @property
    def summary(self) -> dict[str, Any]:
        """What policy.json says about it."""
        return {
            "seen": {name: list(counts) for name, counts in self.domain.counts.items()},
            "dropped": sum(dropped.count for dropped in self.domain.dropped),
            "asked_as": self.translation.texts(self.domain.domain),
        }


def learn_symbols(demonstrations: Demonstrations, task: Task | None) -> tuple[Demonstrations, LearnedSymbols]:
    """Learn the domain of demonstrations from all of them; return them as demonstrations in it, too.

    What the expert said it was doing plays no part in the domain. It is only translated into the learned actions.
    """
    study = learn_domain(demonstrations, task, held_out=0.0)
    domain = study.domain
    translation = find_translation(
        (explain(demonstration, domain, *label(demonstration, task), use_recorded=False).actions, demonstration.actions)
        for demonstration in demonstrations
    )
    spec = replace(demonstrations.spec, untold=study.learned.untold)
    name = task.name if task else demonstrations.task
    translated = demonstrations.with_domain(domain, spec, name, translation.translated)
    return translated, LearnedSymbols(study.learned, study.text, translation)
