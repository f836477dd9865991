"""Whether rules and a network could be learned from a data set, in seconds and without training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from bilevel.demonstrations.dataset import DOMAIN, Manifest, read_manifest, whole_episodes
from bilevel.demonstrations.traces import Contents, LabelledEpisode, explain, labelled
from bilevel.lowlevel.encoding import Unseen, encode_episode, encoding_of
from bilevel.progress import Callback, silent
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import Domain
from bilevel.symbolic.pddl import read_adl_domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Array
from bilevel.tasks.task import Task

MOSTLY = 0.8  # of the changes should be explained, and of the steps have an action
MOST_TRACES = 200  # at whose decisions the rules are asked


class Learnability(NamedTuple):
    """Whether something can be learned: yes, no, or doubtful, with the reasons."""

    possible: bool
    reason: str
    doubts: Sequence[str] = ()

    @property
    def answer(self) -> str:
        """Yes, no, or doubtful."""
        return "no" if not self.possible else "doubtful" if self.doubts else "yes"

    def __str__(self) -> str:
        return f"{self.answer}: {'; '.join((self.reason, *self.doubts))}"


class ControlFindings(msgspec.Struct):
    """What the controls are like; numbers of a control are counted from 0."""

    steps: int = 0
    with_action: int = 0
    constant: dict[int, float] = {}  # the numbers that never change, with their value
    out_of_bounds: dict[int, float] = {}  # those that leave their bounds, with the share of the steps
    unseen: str | None = None  # where an action is about something that cannot be seen


class Diagnosis(NamedTuple):
    """What was found in a data set, and whether rules and a network can be learned from it."""

    manifest: Manifest
    contents: Contents
    controls: ControlFindings
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
    contents, found, space = Contents(domain), ControlFindings(), manifest.controls
    encoding, targets = encoding_of(domain, manifest.spec), list[Array]()
    for episode in episodes:
        contents.add(episode)
        number, demonstration, states, goals, explained = episode
        actions = explained.actions
        if explained.exogenous and any(demonstration.actions):  # before these, it is what the demonstrator said
            actions = explain(demonstration, domain, states, goals).actions
        found.steps += demonstration.steps
        found.with_action += sum(action is not None for action in actions)
        if demonstration.has_controls:
            targets.append(space.encode(demonstration.controls))
            situations = list(zip(states, goals, actions, strict=False))
            try:
                encode_episode(encoding, demonstration.scenes(encoding.spec)[:-1], situations, targets[-1], number)
            except Unseen as error:
                found.unseen = found.unseen or f"episode {number}: {error}"
    if targets and isinstance(space, BoxControls):
        _look_at_numbers(np.concatenate(targets), space, found)
    verdicts = _judge_rules(contents, domain), _judge_network(contents, found, domain)
    return Diagnosis(manifest, contents, found, *verdicts)


def _look_at_numbers(targets: Array, space: BoxControls, found: ControlFindings) -> None:
    """Note the numbers of controls, (steps, numbers), that never change, and those that leave their bounds."""
    for index, column in enumerate(targets.T):
        low, high = space.low[index], space.high[index]
        if np.ptp(column) < 1e-6:
            found.constant[index] = round(float(low + (column[0] + 1) * (high - low) / 2), 6)
        elif beyond := float((np.abs(column) > 1.001).mean()):
            found.out_of_bounds[index] = round(beyond, 4)


def _judge_rules(contents: Contents, domain: Domain) -> Learnability:
    """Learn rules, and ask them at the decisions of the demonstrators."""
    rules, traces = learn_rules(contents.traces, domain), contents.traces
    if not rules:
        return Learnability(False, _why_no_rules(contents, domain))
    policy, decisions, others = RulePolicy(rules, domain, open_world=False), 0, list[str]()
    for trace in traces[:: 1 + len(traces) // MOST_TRACES]:
        decisions += len(trace.steps)
        others += _other_decisions(trace, policy)
    reason = f"{len(rules)} rule{'s' if len(rules) > 1 else ''}, which do what the demonstrators did, or could, at "
    reason += f"{decisions - len(others)} of {decisions} decisions"
    doubts = others[:1]
    explained = sum(len(trace.steps) for trace in traces)
    unexplained = sum(kind.count - kind.reported for kind in contents.unexplained)
    if explained < MOSTLY * (explained + unexplained):
        doubts.append(f"{unexplained} of {explained + unexplained} changes are not the effect of an action")
    if never := [name for name in contents.goals if not contents.reached[name]]:
        doubts.append(f"goals with '{never[0]}' were never reached")
    doubts += [f"'{rule}' tests for an absent fact, which a policy cannot see" for rule in rules if rule.absent][:1]
    return Learnability(True, reason, doubts)


def _other_decisions(trace: Trace, policy: RulePolicy) -> list[str]:
    """Return what was decided in a trace that no rule would do, in words."""
    policy.reset(trace.steps[0].state, trace.steps[0].goal, trace.objects)
    others = []
    for step in trace.steps:
        possible, shown = list(policy.alternatives(step.state, step.goal)), step.action.action
        if shown not in possible:
            others.append(f"{shown} was done where the rules say {possible[0] if possible else 'nothing'}")
    return others


def _why_no_rules(contents: Contents, domain: Domain) -> str:
    if domain.adl:
        return "the domain is in ADL: a planner acts in it, not rules"
    if not domain.schemas:
        return "the domain has no actions; learn them with: bilevel domain learn, or bilevel learn --learn-domain"
    if not contents.goals:
        return "no episode has a goal"
    if not contents.traces:
        return "no change of the labels is the effect of an action; compare labels and domain"
    return "no fact of a goal becomes true by the effects of an action; compare goal, labels and domain"


def _judge_network(contents: Contents, found: ControlFindings, domain: Domain) -> Learnability:
    """Say which steps a network could be trained on."""
    if contents.without_controls:
        where = f"{contents.without_controls} of {contents.episodes} episodes"
        return Learnability(False, f"no controls were recorded in {where}")
    if not found.with_action:
        return Learnability(False, f"no step has an action{'' if domain.schemas else ', as the domain has none'}")
    if found.unseen:
        return Learnability(False, f"an action is about something that cannot be seen: {found.unseen}")
    doubts = []
    if found.with_action < MOSTLY * found.steps:
        doubts.append(f"{found.steps - found.with_action} steps have no action and are left out")
    if found.out_of_bounds:
        doubts.append("controls leave their bounds, to which a policy's are clipped")
    return Learnability(True, f"{found.with_action} of {found.steps} steps have an action", doubts)
