"""Everything that can be measured, in one table: what each method is, what it needs, how it is trained and built."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.end_to_end_folder import SavedEndToEnd, read_any
from bilevel.baselines.vla import require_vla
from bilevel.experiments.contenders import Contender
from bilevel.experiments.scaling import run_planner
from bilevel.planning.fast_downward import find_program
from bilevel.planning.plan_policies import FindGuide, PlanFinder, PlannedPolicy, PolicyFinder
from bilevel.planning.planners import CONTINGENT_PLANNERS, PLANNERS
from bilevel.planning.pr2 import VARIABLE, command_words
from bilevel.policies.policies import BilevelPolicy
from bilevel.policies.policy_files import BISON
from bilevel.policies.policy_folder import SavedPolicy, read_policy
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import Task

PLANNING_SECONDS = 100.0  # for each plan or policy: what LAMA gets in the paper
BILEVEL, END_TO_END = "bilevel", "end-to-end"  # kinds of training


def _find_pr2() -> object:
    command = os.environ.get(VARIABLE, "")
    if not command:
        raise BadInput(f"the planner 'pr2' is a program of your own: name its command in {VARIABLE}")
    return command_words(command)


# What a planner needs beside this package: a function that finds it, or says what to install.
NEEDS: Mapping[str, Callable[[], object]] = {"lama": find_program, "pr2": _find_pr2}


@dataclass(frozen=True)
class Given:
    """What a user says about a method that is to be measured."""

    policy: Path | None = None  # a folder that `bilevel learn` made
    planner: str | None = None
    planning_seconds: float | None = None


class Planning(NamedTuple):
    """A planner, and how long it may take for each plan."""

    planner: str
    planning_seconds: float


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    title: str  # in the paper's tables
    about: str
    build: Callable[[Method, Given], Contender]
    training: str | None = None  # how `bilevel learn` trains it; not at all, if there is none
    planners: tuple[str, ...] = ()  # that it can plan with, the usual one first
    replan: bool = False
    model: bool = False  # a published one, which --policy may name
    name: str = ""  # its key in the table

    @property
    def is_symbolic(self) -> bool:
        """Whether it is measured without a world."""
        return self.build is _symbolic

    def load(self, given: Given) -> Contender:
        """Who is to be measured; `BadInput` where something is missing, or given and not needed."""
        if self.training and given.policy is None:
            raise BadInput(f"the method '{self.name}' needs a --policy; `bilevel learn` makes one")
        if not (self.training or self.model) and given.policy is not None:
            raise BadInput(f"the method '{self.name}' takes no --policy")
        if not self.planners and (given.planner or given.planning_seconds):
            raise BadInput(f"the method '{self.name}' does not plan: it takes no --planner and no --planning-seconds")
        if self.planners and given.planner not in (None, *self.planners):
            raise BadInput(
                f"the method '{self.name}' cannot plan with '{given.planner}', but with {', '.join(self.planners)}"
            )
        return self.build(self, given)

    def missing(self) -> str | None:
        """What it needs and is not here, in one line; `None` where it can be run."""
        try:
            self.planning(Given())
            if self.model:
                require_vla(self.name)
        except BadInput as error:
            return str(error)
        return None

    def planning(self, given: Given) -> Planning | None:
        """How it plans, if it does; `BadInput` where the planner is not installed."""
        if not self.planners:
            return None
        planner = given.planner or self.planners[0]
        if planner in NEEDS:
            NEEDS[planner]()
        return Planning(planner, given.planning_seconds or PLANNING_SECONDS)


def _expert(method: Method, given: Given) -> Contender:
    return Contender(method.name, _make_expert)


def _make_expert(task: Task, environment: Tabletop) -> BilevelPolicy:
    return task.expert(environment.slots)


def _bilevel(method: Method, given: Given) -> Contender:
    """A learned low level, under learned rules or under a planner."""
    assert given.policy is not None
    saved, planning = read_policy(given.policy), method.planning(given)
    make = partial(_make_bilevel, saved, planning, method.replan)
    about = saved.task, saved.domain.name, str(given.policy), saved.digest, saved.seed
    return Contender(method.name, make, *about, planning._asdict() if planning else {})


def _make_bilevel(
    saved: SavedPolicy, planning: Planning | None, replan: bool, task: Task, environment: Tabletop
) -> BilevelPolicy:
    policy = saved.bind(environment.slots)
    if planning:
        find, seconds = _finder(planning.planner), planning.planning_seconds
        policy.high = PlannedPolicy(saved.domain, find, replan=replan, time_limit=seconds)
    return policy


def _end_to_end(method: Method, given: Given) -> Contender:
    """A learned network that does all."""
    assert given.policy is not None
    saved = read_any(given.policy)
    if not isinstance(saved, SavedEndToEnd) or saved.method != method.name:
        raise BadInput(f"{given.policy}: a policy of the method '{saved.method}', not of '{method.name}'")
    about = saved.task, saved.domain.name, str(given.policy), saved.digest, saved.seed
    return Contender(method.name, partial(_make_end_to_end, saved), *about)


def _make_end_to_end(saved: SavedEndToEnd, task: Task, environment: Tabletop) -> EndToEndPolicy:
    return saved.bind(environment.slots)


def _vla(method: Method, given: Given) -> Contender:
    """A published model, which a user may have in a folder."""
    ready = require_vla(method.name, given.policy)
    return Contender(method.name, ready.make, policy=ready.name, digest=ready.files.digest)


def _finder(planner: str) -> FindGuide:
    if planner in CONTINGENT_PLANNERS:
        return PolicyFinder(CONTINGENT_PLANNERS[planner])
    return PlanFinder(PLANNERS[planner])


def _symbolic(method: Method, given: Given) -> Contender:
    planning = method.planning(given)
    assert planning is not None
    return Contender(method.name, without_world=partial(run_planner, *planning), settings=planning._asdict())


CLASSICAL = ("lama", "search")
CONTINGENT = ("fond", "pr2")

METHODS: Mapping[str, Method] = {
    name: replace(method, name=name)
    for name, method in {
        "bison": Method("BISON", "learned rules above a learned network", _bilevel, BILEVEL),
        "expert": Method("Expert", "the hand-written policy that demonstrates", _expert),
        "det-plan": Method("DetPlan", "follows one plan of a classical planner", _bilevel, BILEVEL, CLASSICAL),
        "det-replan": Method(
            "DetReplan", "plans again where the plan breaks", _bilevel, BILEVEL, CLASSICAL, replan=True
        ),
        "ndt-plan": Method("NdtPlan", "follows one strong-cyclic policy", _bilevel, BILEVEL, CONTINGENT),
        "ndt-replan": Method(
            "NdtReplan",
            "computes another policy where the first has no action",
            _bilevel,
            BILEVEL,
            CONTINGENT,
            replan=True,
        ),
        "pddl-nn": Method("PddlNN", "a network over all objects and all facts", _end_to_end, END_TO_END),
        "pure-nn": Method("PureNN", "a network over all objects, without facts", _end_to_end, END_TO_END),
        "smolvla": Method("SmolVLA", "a vision-language-action model, as published", _vla, model=True),
        "smolvla-metaworld": Method("SmolVLA-MW", "the same, trained further on MetaWorld", _vla, model=True),
        "lama": Method(
            "LAMA", "plans for problems of symbols alone, to see how it scales", _symbolic, planners=("lama",)
        ),
    }.items()
}


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise BadInput(f"unknown method '{name}'; known methods: {', '.join(METHODS)}")
    return METHODS[name]


def find_contender(
    method: str, policy: Path | None = None, planner: str | None = None, planning_seconds: float | None = None
) -> Contender:
    """Who is to be measured; `BadInput` where something is missing, or given and not needed."""
    return find_method(method).load(Given(policy, planner, planning_seconds))


def method_of(policy: Path | None) -> str:
    """The method of a folder; BISON where there is none, or where several methods could use it."""
    return BISON if policy is None else read_any(policy).method
