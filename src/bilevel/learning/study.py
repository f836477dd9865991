"""What demonstrations show: the rules of the high level, and the samples that the network is trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import explain, label
from bilevel.learning.completion import Beginnings
from bilevel.learning.networks import Callback, LearningConfig, Progress, silent
from bilevel.lowlevel.encoding import Encoding, Samples, encode_episode, encoding_of
from bilevel.lowlevel.relevance import irrelevant_arguments, without
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Abstraction
from bilevel.symbolic.domain import BadInput, Problem
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class Study:
    """What the demonstrations show, at both levels."""

    rules: tuple[Rule, ...]
    encoding: Encoding
    samples: Samples
    beginnings: tuple[Problem, ...]  # one of each kind
    traces: int
    exogenous: int  # changes that no action explains
    ambiguous: int  # changes that several actions explain
    longest: dict[str, int]  # demonstration of each schema, in steps
    irrelevant: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # parameters that are left out, by schema


def study(
    demonstrations: Demonstrations,
    task: Task | None,
    config: LearningConfig | None = None,
    callback: Callback = silent,
) -> Study:
    """Label every demonstration, learn the rules, and encode the samples, by the paper's settings if none are given."""
    config = config or LearningConfig()
    encoding = encoding_of(demonstrations.domain, demonstrations.spec)
    abstractions: list[Abstraction] = []
    beginnings = Beginnings(demonstrations.domain)
    parts: list[Samples] = []
    for number, demonstration in enumerate(demonstrations):
        scenes = demonstration.scenes(demonstrations.spec)
        states, goals = label(demonstration, task, scenes)
        found = explain(demonstration, demonstrations.domain, states, goals, use_recorded=config.recorded_actions)
        situations = list(zip(states, goals, found.actions, strict=False))
        targets = demonstration.targets(demonstrations.controls)
        abstractions.append(found)
        for step in sorted({0, max(range(len(scenes)), key=lambda step: len(scenes[step].objects))}):
            beginnings.note(states[step], goals[step], scenes[step].objects)
        parts.append(encode_episode(encoding, scenes[:-1], situations, targets, number))
        callback(Progress("labelling", number + 1, len(demonstrations)))
    traces = [trace for abstraction in abstractions for trace in abstraction.traces]
    rules = learn_rules(traces, demonstrations.domain, config.algorithm)
    if not rules and not demonstrations.domain.adl:
        raise BadInput("the demonstrations show no rule: no goal is achieved by an action in them; see `bilevel check`")
    return Study(
        rules=rules,
        encoding=encoding,
        samples=Samples.concatenate(parts),
        beginnings=beginnings.problems,
        traces=len(traces),
        exogenous=sum(abstraction.exogenous for abstraction in abstractions),
        ambiguous=sum(abstraction.ambiguous for abstraction in abstractions),
        longest=longest_actions(abstractions),
    )


def without_irrelevant(demonstrations: Demonstrations, found: Study) -> tuple[Demonstrations, Study]:
    """Leave arguments untold that play no part in how their actions are done, as far as the samples show."""
    spec, domain = demonstrations.spec, demonstrations.domain
    more = irrelevant_arguments(found.samples, found.encoding)
    irrelevant = {
        name: tuple(domain.schemas[name].parameters[number].name for number in sorted(numbers))
        for name, numbers in more.items()
    }
    untold = {name: (*spec.untold.get(name, ()), *irrelevant.get(name, ())) for name in {**spec.untold, **irrelevant}}
    spec = replace(spec, untold=untold)
    samples, encoding = without(found.samples, found.encoding, more), encoding_of(domain, spec)
    return demonstrations.with_spec(spec), replace(found, encoding=encoding, samples=samples, irrelevant=irrelevant)


def longest_actions(abstractions: Iterable[Abstraction]) -> dict[str, int]:
    """For each schema, how many steps the longest of its actions took."""
    found: dict[str, int] = {}
    for abstraction in abstractions:
        for action, steps in groupby(abstraction.actions):
            if action is not None:
                found[action.name] = max(found.get(action.name, 0), len(list(steps)))
    return dict(sorted(found.items()))
