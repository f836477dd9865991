"""Whether rules and a network could be learned from a data set, in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bilevel.demonstrations.dataset import DOMAIN, Manifest, read_manifest, whole_episodes
from bilevel.demonstrations.traces import Contents, LabelledEpisode, labelled
from bilevel.lowlevel.encoding import Encoding, Samples, Unseen, encode_episode, encoding_of
from bilevel.lowlevel.relevance import HELD_OUT, brief_errors
from bilevel.lowlevel.training import split
from bilevel.progress import Callback, silent
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Domain
from bilevel.symbolic.pddl import read_adl_domain
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.task import Task

MOSTLY = 0.8  # of the goal facts that came true should have been brought about by actions
NEARLY_ALL = 0.9  # of the decisions should be the rules'
UNTOLD = 0.6  # of the variance of an action's controls is more than a network could leave open
FEWEST = 5  # episodes, to say that
MOST_TRACES = 200  # at whose decisions the rules are asked


class Learnability(NamedTuple):
    """Whether something can be learned, with the reasons."""

    answer: str  # yes, no, or doubtful
    reason: str

    def __str__(self) -> str:
        return f"{self.answer}: {self.reason}"


def _verdict(reason: str, doubts: Sequence[str]) -> Learnability:
    return Learnability("doubtful" if doubts else "yes", "; ".join((reason, *doubts)))


class Diagnosis(NamedTuple):
    """What was found in a data set, and whether rules and a network can be learned from it."""

    manifest: Manifest
    contents: Contents
    constant: Mapping[int, float]  # the numbers of a control that never change, counted from 0, with their value
    for_rules: Learnability
    for_network: Learnability


def diagnose(folder: Path, task: Task | None = None, callback: Callback = silent) -> tuple[list[str], Diagnosis]:
    """Read every file of a data set; return what is wrong with some, a line each, and what can be learned of the rest.

    Every timestep is labelled anew if the task is given. `BadInput` where there is no data set.
    """
    manifest, problems = read_manifest(folder), list[str]()
    domain = task.domain if task else read_adl_domain(folder / DOMAIN)
    if not manifest.complete:
        problems.append(f"{folder}: not complete; go on with: {manifest.command_for(folder)}")
    whole = whole_episodes(folder, manifest, problems, callback)
    found = diagnose_episodes(manifest, domain, (labelled(number, each, domain, task) for number, each, _ in whole))
    return problems, found


def diagnose_episodes(manifest: Manifest, domain: Domain, episodes: Iterable[LabelledEpisode]) -> Diagnosis:
    """Return what can be learned from episodes of a data set, which are looked at one by one."""
    contents, space, encoding = Contents(domain), manifest.controls, encoding_of(domain, manifest.spec)
    parts: list[Samples] = []
    achieved: list[bool] = []
    unseen = ""
    for episode in episodes:
        contents.add(episode)
        number, demonstration, states, goals, found = episode
        for change in found.changes:
            achieved += [bool(change.actions)] * len((change.after - change.before) & goals[change.step])
        situations = list(zip(states, goals, found.actions, strict=False))
        scenes, targets = demonstration.scenes(encoding.spec)[:-1], space.encode(demonstration.controls)
        try:
            parts.append(encode_episode(encoding, scenes, situations, targets, number))
        except Unseen as error:
            unseen = unseen or f"an action is about something that cannot be seen: episode {number}: {error}"
    samples, constant = Samples.concatenate(parts) if parts else None, dict[int, float]()
    if samples and isinstance(space, BoxControls):
        first = np.asarray(space.decode(samples.targets[0]), float).ravel()
        constant = {int(index): round(first[index], 6) for index in np.flatnonzero(np.ptp(samples.targets, 0) < 1e-6)}
    for_network = _judge_network(contents, samples, _untold(samples, encoding, space), unseen)
    return Diagnosis(manifest, contents, constant, _judge_rules(contents, achieved), for_network)


def _judge_rules(contents: Contents, achieved: Sequence[bool]) -> Learnability:
    """Learn rules, and ask them at the decisions of the demonstrators; say which goal facts actions have `achieved`."""
    domain, traces = contents.domain, contents.traces
    rules = learn_rules(traces, domain)
    if not rules:
        reasons = {
            "the domain is in ADL: a planner acts in it, not rules": domain.adl,
            "the domain has no actions; learn them with: bilevel domain learn, or bilevel learn --learn-domain":
                not domain.schemas,
            "no episode has a goal": not contents.goals,
            "no change of the labels is the effect of an action; compare labels and domain": not traces,
            "no fact of a goal becomes true by the effects of an action; compare goal, labels and domain": True,
        }  # fmt: skip
        return Learnability("no", next(reason for reason, holds in reasons.items() if holds))
    policy, decisions, others = RulePolicy(rules, domain, open_world=False), 0, list[str]()
    for trace in traces[:: 1 + len(traces) // MOST_TRACES]:
        policy.reset(trace.steps[0].state, trace.steps[0].goal, trace.objects)
        decisions += len(trace.steps)
        for step in trace.steps:
            possible, shown = list(policy.alternatives(step.state, step.goal)), step.action.action
            if shown not in possible:
                others.append(f"{shown} was done where the rules say {possible[0] if possible else 'nothing'}")
    reason = f"{len(rules)} rule{'s' if len(rules) > 1 else ''}, which do what the demonstrators did, or could, at "
    reason += f"{decisions - len(others)} of {decisions} decisions"
    doubts = others[:1] if decisions - len(others) < NEARLY_ALL * decisions else []
    if sum(achieved) < MOSTLY * len(achieved):
        doubts.append(f"{achieved.count(False)} of {len(achieved)} goal facts came true without an action's effects")
    never = [name for name in contents.goals if not contents.reached[name]]
    doubts += [f"goals with '{name}' were never reached" for name in never[:1]]
    doubts += [f"'{rule}' tests for an absent fact, which a policy cannot see" for rule in rules if rule.absent][:1]
    return _verdict(reason, doubts)


def _judge_network(contents: Contents, samples: Samples | None, untold: Iterator[str], why_not: str) -> Learnability:
    """Say which steps a network could be trained on, and of which actions what is seen does not tell the controls."""
    if contents.without_controls:
        why_not = f"no controls were recorded in {contents.without_controls} of {contents.episodes} episodes"
    elif not why_not and not samples:
        why_not = f"no step has an action{'' if contents.domain.schemas else ', as the domain has none'}"
    if why_not or not samples:
        return Learnability("no", why_not)
    names = ", ".join(f"'{name}'" for name in untold)
    doubts = [f"what is seen does not tell the controls of {names}"] if names else []
    beyond = (np.abs(samples.targets) > 1.001).any(axis=1).mean()
    if beyond > 1 - NEARLY_ALL:
        doubts.append(f"controls leave their bounds, to which a policy's are clipped, in {beyond:.0%} of the steps")
    return _verdict(f"{len(samples)} of {contents.steps} steps have an action", doubts)


def _untold(samples: Samples | None, encoding: Encoding, controls: Controls) -> Iterator[str]:
    """Yield the schemas whose controls a network does not predict in episodes that it was not trained on."""
    if samples and len(np.unique(samples.episodes)) >= FEWEST:
        for name, error in brief_errors(*split(samples, HELD_OUT), encoding, controls).items():
            if error > UNTOLD * samples.targets[samples.schemas == encoding.schemas.index(name)].var(axis=0).mean():
                yield name
