"""From demonstrations to high-level traces, and to the high-level action of every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bilevel.demonstrations.dataset import Dataset
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.rules.traces import Abstraction, Trace, traces_from_states
from bilevel.symbolic.domain import Domain
from bilevel.tabletop.labelling import Labels


def abstract(demonstration: Demonstration, labels: Labels, domain: Domain, *, ask_expert: bool = True) -> Abstraction:
    """Label every moment and explain the changes by actions; the actions come without one for the last moment.

    Before a change that no action explains, an action is what the expert was doing, if that may be asked.
    """
    seen = demonstration.observations()
    states, goals = [labels.state(moment) for moment in seen], [labels.goal(moment) for moment in seen]
    recorded = (*demonstration.actions, None) if ask_expert else ()
    found = traces_from_states(domain, states, goals, demonstration.types, recorded=recorded)
    return Abstraction(found.traces, found.actions[:-1], found.exogenous, found.ambiguous)


def abstractions(dataset: Dataset) -> Iterator[Abstraction]:
    """Those of all demonstrations, one after the other."""
    labels = dataset.task.labels(dataset.manifest.slots)
    return (abstract(demonstration, labels, dataset.task.domain) for demonstration in dataset)


@dataclass(frozen=True)
class Summary:
    """What is in demonstrations; summaries of several can be added."""

    traces: tuple[Trace, ...] = ()
    episodes: int = 0
    steps: int = 0
    explained: int = 0  # steps that have a high-level action, found from what was seen alone
    agreeing: int = 0  # of these, where it is the one that the expert was executing
    exogenous: int = 0  # changes that no action explains
    ambiguous: int = 0  # changes that several actions explain
    actions: Counter[str] = field(default_factory=Counter)  # carried out, by schema
    events: Counter[str] = field(default_factory=Counter)  # that the world itself reported, by kind

    def __add__(self, other: Summary) -> Summary:
        return Summary(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})


def summarise(demonstration: Demonstration, labels: Labels, domain: Domain) -> Summary:
    found = abstract(demonstration, labels, domain, ask_expert=False)
    pairs = list(zip(found.actions, demonstration.actions, strict=True))
    return Summary(
        traces=found.traces,
        episodes=1,
        steps=demonstration.steps,
        explained=sum(action is not None for action, _ in pairs),
        agreeing=sum(action == recorded for action, recorded in pairs),
        exogenous=found.exogenous,
        ambiguous=found.ambiguous,
        actions=Counter(step.action.action.name for trace in found.traces for step in trace.steps),
        events=Counter(event.split()[0] for _, event in demonstration.events),
    )


def summaries(dataset: Dataset) -> Iterator[Summary]:
    """One for each demonstration; their `sum` with `Summary()` is that of the data set."""
    labels = dataset.task.labels(dataset.manifest.slots)
    return (summarise(demonstration, labels, dataset.task.domain) for demonstration in dataset)
