"""The diagnosis of a data set: whether rules and a network could be learned from it, in seconds and without training.

The rules are learned, and asked at the demonstrators' own decisions. For the network, the controls are predicted from
what a network is told, as those of the most similar steps in other episodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from bilevel.demonstrations.checking import Contents, readable_episodes
from bilevel.demonstrations.dataset import DOMAIN, Manifest, read_manifest
from bilevel.demonstrations.traces import LabelledEpisode, explain, labelled
from bilevel.lowlevel.encoding import Samples, Unseen, encode_episode, encoding_of
from bilevel.progress import Callback, silent
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_file import require_open_world
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.pddl import read_adl_domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Array
from bilevel.tasks.task import Task

MOSTLY = 0.8  # of the changes should be explained, and of the steps have an action
HARDLY = 0.3  # of the controls' variance; below, what the network is told says little of what was done
MOST_DECISIONS = 2000
MOST_STEPS = 6000  # that are compared with each other
NEIGHBOURS = 3
FOLDS = 5  # the episodes of one are predicted from those of the others


class Learnability(NamedTuple):
    """Whether something can be learned: yes, no, or doubtful, with the reasons."""

    possible: bool
    reason: str
    doubts: tuple[str, ...] = ()

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
    told: float | None = None  # share of the controls' variance that the most similar steps tell


def diagnose(folder: Path, task: Task | None = None, callback: Callback = silent) -> tuple[list[str], Diagnosis]:
    """Read every file of a data set; return what is wrong with some, a line each, and what can be learned of the rest.

    Every timestep is labelled anew if the task is given. `BadInput` where there is no data set.
    """
    manifest = read_manifest(folder)
    found = Diagnosis(manifest, task.domain if task else read_adl_domain(folder / DOMAIN))
    problems: list[str] = []
    for number, demonstration in readable_episodes(folder, manifest, problems, callback):
        found.look(labelled(number, demonstration, found.domain, task))
    if found.contents.episodes:
        found.conclude()
    return problems, found


class Diagnosis:
    """What was found in a data set, episode by episode; there are verdicts once all were looked at."""

    def __init__(self, manifest: Manifest, domain: Domain) -> None:
        self.domain, self.contents = domain, Contents(domain)
        self.task = manifest.settings.task
        self.rate = manifest.source.rate if manifest.source else None
        self.controls = ControlFindings()
        self._space, self._encoding = manifest.controls, encoding_of(domain, manifest.spec)
        self._most = max(1, MOST_STEPS // max(1, manifest.episodes))  # steps of an episode
        self._traces: list[tuple[int, Trace]] = []
        self._targets: list[Array] = []
        self._samples: list[Samples] = []

    def look(self, episode: LabelledEpisode) -> None:
        """Look at one episode, with the action of each step as learning takes it."""
        number, demonstration, states, goals, explained = episode
        self.contents.add(episode)
        self._traces += ((number, trace) for trace in explained.traces)
        actions = explained.actions
        if explained.exogenous and any(demonstration.actions):  # before these, it is what the demonstrator said
            actions = explain(demonstration, self.domain, states, goals).actions
        steps = np.flatnonzero([action is not None for action in actions])
        self.controls.steps += demonstration.steps
        self.controls.with_action += len(steps)
        if not demonstration.has_controls:
            return
        targets = self._space.encode(demonstration.controls)
        self._targets.append(targets)
        steps = steps[:: 1 + len(steps) // self._most]
        seen = {name: getattr(demonstration, name)[steps] for name in ("agent", "features", "visible")}
        scenes = replace(demonstration, **seen).scenes(self._encoding.spec)
        situations = [(states[step], goals[step], actions[step]) for step in steps.tolist()]
        try:
            self._samples.append(encode_episode(self._encoding, scenes, situations, targets[steps], number))
        except Unseen as error:
            self.controls.unseen = self.controls.unseen or f"episode {number}: {error}"

    def conclude(self) -> None:
        """Learn the rules and compare the controls, once all episodes were looked at."""
        found = self.controls
        if self._targets and isinstance(self._space, BoxControls):
            for index, column in enumerate(np.concatenate(self._targets).T):
                low, high = self._space.low[index], self._space.high[index]
                if np.ptp(column) < 1e-6:
                    found.constant[index] = round(float(low + (column[0] + 1) * (high - low) / 2), 6)
                elif beyond := float((np.abs(column) > 1.001).mean()):
                    found.out_of_bounds[index] = round(beyond, 4)
        if self._samples:
            found.told = told_share(Samples.concatenate(self._samples))
        self.for_rules, self.for_network = self._judge_rules(), self._judge_network()

    def _judge_rules(self) -> Learnability:
        """Learn rules, and ask them at the decisions of the demonstrators."""
        rules = learn_rules([trace for _, trace in self._traces], self.domain)
        if not rules:
            return Learnability(False, self._why_no_rules())
        policy, chosen, first_other = RulePolicy(rules, self.domain, open_world=False), Counter[str](), ""
        every = 1 + sum(len(trace.steps) for _, trace in self._traces) // MOST_DECISIONS  # trace, if there are many
        for episode, trace in self._traces[::every]:
            policy.reset(trace.steps[0].state, trace.steps[0].goal, trace.objects)
            for step in trace.steps:
                choice, shown = policy.choose(step.state, step.goal), step.action.action
                if choice == shown:
                    chosen["same"] += 1
                elif shown in policy.alternatives(step.state, step.goal):
                    chosen["possible"] += 1
                else:
                    chosen["other"] += 1
                    what = f"{shown} was done where the rules say {choice or 'nothing'}"
                    first_other = first_other or f"episode {episode}: {what}"
        same = f"{chosen['same']} of {chosen.total()} decisions"
        reason = f"{len(rules)} rule{'s' if len(rules) > 1 else ''}, which do what the demonstrators did at {same}"
        if chosen["possible"]:
            reason += f" and could do it at {chosen['possible']} more"
        doubts = list(self._doubts_about_rules())
        if chosen["other"]:
            doubts.append(f"at {chosen['other']} they never would (first in {first_other})")
        try:
            require_open_world(rules)
        except BadInput as error:  # for a policy, an absent fact is unknown
            doubts.append(str(error))
        return Learnability(True, reason, tuple(doubts))

    def _why_no_rules(self) -> str:
        if self.domain.adl:
            return "the domain is in ADL: a planner acts in it, not rules"
        if not self.domain.schemas:
            return "the domain has no actions; learn them with: bilevel domain learn, or bilevel learn --learn-domain"
        if not self.contents.goals:
            return "no episode has a goal; `bilevel import` can find goals in hindsight"
        if not self._traces:
            return "no change of the labels is the effect of an action; compare labels and domain"
        return "no fact of a goal becomes true by the effects of an action; compare goal, labels and domain"

    def _doubts_about_rules(self) -> Iterator[str]:
        explained = sum(len(trace.steps) for _, trace in self._traces)
        unexplained = sum(kind.count - kind.reported for kind in self.contents.unexplained)
        if explained < MOSTLY * (explained + unexplained):
            yield f"{unexplained} of {explained + unexplained} changes are not the effect of an action"
        if never := [name for name in self.contents.goals if not self.contents.reached[name]]:
            yield f"goals with '{never[0]}' were never reached"

    def _judge_network(self) -> Learnability:
        found, contents = self.controls, self.contents
        if contents.without_controls:
            where = f"{contents.without_controls} of {contents.episodes} episodes"
            return Learnability(False, f"no controls were recorded in {where}")
        if not found.with_action:
            known = "" if self.domain.schemas else ", as the domain has none"
            return Learnability(False, f"no step has an action{known}")
        if found.unseen:
            return Learnability(False, f"an action is about something that cannot be seen: {found.unseen}")
        reason, doubts = f"{found.with_action} of {found.steps} steps have an action", []
        if found.told is not None:
            reason += f", and the most similar ones in other episodes tell {max(0.0, found.told):.0%} of their controls"
            if found.told < HARDLY:
                doubts.append("what the network is told says little of what was done, or it was done in several ways")
        if found.with_action < MOSTLY * found.steps:
            doubts.append(f"{found.steps - found.with_action} steps have no action and are left out")
        if found.out_of_bounds:
            doubts.append("controls leave their bounds, to which a policy's are clipped")
        return Learnability(True, reason, tuple(doubts))


def told_share(samples: Samples) -> float | None:
    """Return the share of the controls' variance that the most similar steps of other episodes tell.

    Similar are steps of the same schema with nearly the same numbers. Without other episodes, nothing is known.
    """
    told = np.concatenate([samples.globals, *samples.objects.swapaxes(0, 1)], axis=1)
    missed = spread = 0.0
    for schema in np.unique(samples.schemas):
        rows = samples.schemas == schema
        scale = np.maximum(told[rows].std(axis=0), 1e-6)
        for fold in range(FOLDS):
            held_out = samples.episodes % FOLDS == fold
            asked, known = np.flatnonzero(rows & held_out), np.flatnonzero(rows & ~held_out)
            if len(asked) and len(known) >= NEIGHBOURS:
                mine, others = ((told[part] / scale).astype(np.float64) for part in (asked, known))
                distances = (others**2).sum(axis=1) - 2 * mine @ others.T  # but for what is the same in a row
                nearest = known[np.argpartition(distances, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]]
                targets = samples.targets[asked]
                missed += float(((targets - samples.targets[nearest].mean(axis=1)) ** 2).sum())
                spread += float(((targets - samples.targets.mean(axis=0)) ** 2).sum())
    return round(1 - missed / spread, 4) if spread else None
