"""The diagnosis of a data set: what is in it, whether rules and a network could be learned, and if not, why."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bilevel.demonstrations.checking import Contents, Look, Report, check
from bilevel.demonstrations.dataset import Manifest
from bilevel.demonstrations.traces import LabelledEpisode
from bilevel.learning.demonstration_checking import (
    FEWEST_STEPS,
    ControlFindings,
    ControlSamples,
    RuleFindings,
    check_rules,
)
from bilevel.progress import Callback, silent
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import Domain
from bilevel.tasks.task import Task

MOSTLY = 0.8  # of the changes should be explained, and of the steps have an action
HARDLY = 0.3  # of the controls' variance; below, what the network is told says little of what was done
OFTEN = 0.2  # of nearly equal scenes


class Verdict(NamedTuple):
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


class Diagnosis:
    """What was found in a data set; its verdicts are known once all episodes were looked at."""

    def __init__(self, manifest: Manifest, domain: Domain) -> None:
        self.domain = domain
        self.rate = manifest.source.rate if manifest.source else None
        self.contents = Contents(domain)
        self.rules = RuleFindings(())
        self.controls = ControlFindings()
        self._samples = ControlSamples(domain, manifest.spec, manifest.controls, manifest.episodes)
        self._traces: list[Trace] = []
        self._episodes: list[int] = []

    def look(self, episode: LabelledEpisode) -> None:
        """Look at one episode."""
        self.contents.add(episode)
        self._samples.add(episode)
        self._traces += episode.found.traces
        self._episodes += [episode.number] * len(episode.found.traces)

    def conclude(self) -> None:
        """Learn the rules and compare the controls, once all episodes were looked at."""
        self.rules = check_rules(self._traces, self._episodes, self.domain)
        self.controls = self._samples.result()

    @property
    def for_rules(self) -> Verdict:
        """Whether rules can be learned."""
        found = self.rules
        if not found.rules:
            return Verdict(False, self._why_no_rules())
        rules = f"{len(found.rules)} rule{'s' if len(found.rules) > 1 else ''}"
        reason = f"{rules}, which do what the demonstrators did at {found.same} of {found.decisions} decisions"
        if found.possible:
            reason += f" and could do it at {found.possible} more"
        return Verdict(True, reason, tuple(self._doubts_about_rules()))

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

    def _doubts_about_rules(self) -> list[str]:
        found = self.rules
        doubts = [found.absent] if found.absent else []
        explained = sum(len(trace.steps) for trace in self._traces)
        silent = sum(kind.count - kind.reported for kind in self.contents.unexplained)
        if explained < MOSTLY * (explained + silent):
            doubts.append(f"{silent} of {explained + silent} changes are not the effect of an action")
        others = found.decisions - found.same - found.possible
        if others:
            doubts.append(f"at {others} they never would (first in {found.first_other})")
        never = [name for name in self.contents.goals if not self.contents.reached[name]]
        if never:
            doubts.append(f"goals with '{never[0]}' were never reached")
        return doubts

    @property
    def for_network(self) -> Verdict:
        """Whether a network can be learned."""
        found, contents = self.controls, self.contents
        if contents.without_controls:
            where = f"{contents.without_controls} of {contents.episodes} episodes"
            return Verdict(False, f"no controls were recorded in {where}")
        if not found.with_action:
            known = "" if self.domain.schemas else ", as the domain has none"
            return Verdict(False, f"no step has an action{known}")
        if found.unseen:
            return Verdict(False, f"an action is about something that cannot be seen: {found.unseen}")
        reason = f"{found.with_action} of {found.steps} steps have an action"
        if found.told is not None:
            reason += f", and the most similar ones in other episodes tell {max(0.0, found.told):.0%} of their controls"
        return Verdict(True, reason, tuple(self._doubts_about_network()))

    def _doubts_about_network(self) -> list[str]:
        found, doubts = self.controls, []
        few = [f"{name} {steps}" for name, steps in found.by_schema.items() if 0 < steps < FEWEST_STEPS]
        if few:
            doubts.append(f"few steps of {', '.join(few)}")
        if found.with_action < MOSTLY * found.steps:
            doubts.append(f"{found.steps - found.with_action} steps have no action and are left out")
        if found.out_of_bounds:
            doubts.append("controls leave their bounds, to which a policy's are clipped")
        if found.told is not None and found.told < HARDLY:
            doubts.append("what the network is told says little of what was done")
        if found.conflicts is not None and found.conflicts > OFTEN:
            share = f"{found.conflicts:.0%} of nearly equal scenes"
            doubts.append(f"in {share} something else was done, so there may be several ways ({found.first_conflict})")
        return doubts


def diagnose(folder: Path, task: Task | None = None, callback: Callback = silent) -> tuple[Report, Diagnosis | None]:
    """Check the files of a data set, as `check` does, and say what can be learned from those that are whole."""
    begun: list[Diagnosis] = []

    def begin(manifest: Manifest, domain: Domain) -> Look:
        begun.append(Diagnosis(manifest, domain))
        return begun[0].look

    report = check(folder, task, callback, begin)
    if not begun or not begun[0].contents.episodes:
        return report, None
    begun[0].conclude()
    return report, begun[0]
