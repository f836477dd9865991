"""All methods in one table: what each is, what it needs, how it is learned and built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bilevel.methods.evaluated_policy import EvaluatedPolicy
from bilevel.policies.experts import expert_policy
from bilevel.policies.policy import BilevelPolicy, ObservedPolicy
from bilevel.policies.policy_folder import BISON, LearnedNetwork, LearnedPolicy, read_card, read_policy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv

EXPERT = "expert"
PLANNING_SECONDS = 100.0  # for each plan or policy: what LAMA gets in the paper
BILEVEL, END_TO_END = "bilevel", "end-to-end"  # what is learned
CLASSICAL, CONTINGENT = ("lama", "search"), ("fond",)  # planners


@dataclass(frozen=True)
class MethodOptions:
    """What a user says about a method."""

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
    build: Callable[[Method, MethodOptions], EvaluatedPolicy]
    training: str | None = None  # what `bilevel learn` learns for it; nothing, if there is none
    planners: tuple[str, ...] = ()  # that it can plan with, the usual one first
    replan: bool = False
    takes_policy: bool = False  # although it is not learned
    name: str = ""  # its key in the table

    def load(self, options: MethodOptions) -> EvaluatedPolicy:
        """What is to be run; `BadInput` where something is missing, or given and not needed."""
        if self.training and options.policy is None:
            raise BadInput(f"the method '{self.name}' needs a --policy; `bilevel learn` makes one")
        if not (self.training or self.takes_policy) and options.policy is not None:
            raise BadInput(f"the method '{self.name}' takes no --policy")
        if not self.planners and (options.planner or options.planning_seconds):
            raise BadInput(f"the method '{self.name}' does not plan: it takes no --planner and no --planning-seconds")
        if self.planners and options.planner not in (None, *self.planners):
            raise BadInput(
                f"the method '{self.name}' cannot plan with '{options.planner}', but with {', '.join(self.planners)}"
            )
        return self.build(self, options)

    def missing(self) -> str | None:
        """What it needs and is not here, in one line; `None` where it can be run."""
        try:
            self.planning(MethodOptions())
        except BadInput as error:
            return str(error)
        return None

    def planning(self, options: MethodOptions) -> Planning | None:
        """How it plans, if it does; `BadInput` where the planner is not installed."""
        if not self.planners:
            return None
        planner = options.planner or self.planners[0]
        if planner in REQUIREMENTS:
            REQUIREMENTS[planner]()
        return Planning(planner, options.planning_seconds or PLANNING_SECONDS)


# What a planner needs beside this package: a function that finds it, or says what to install.


def _find_lama() -> None:
    from bilevel.planning.fast_downward import find_program

    find_program()


REQUIREMENTS: Mapping[str, Callable[[], None]] = {"lama": _find_lama}


# Building


def _expert(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    return EvaluatedPolicy(method.name, expert_policy)


def _bilevel(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    """A learned low level, under learned rules or under a planner."""
    assert options.policy is not None
    found, planning = read_policy(options.policy), method.planning(options)
    make = partial(_make_bilevel, found, planning, method.replan)
    return learned_policy(method.name, found, options.policy, make, planning._asdict() if planning else {})


def learned_policy(
    method: str,
    found: LearnedNetwork,
    folder: Path,
    make: Callable[[SceneEnv], ObservedPolicy],
    settings: Mapping[str, object],
) -> EvaluatedPolicy:
    """What was learned, by this method, in a folder."""
    return EvaluatedPolicy(
        method=method,
        make=make,
        task=found.card.task,
        check=found.check_task,
        policy=str(folder),
        digest=found.digest,
        seed=found.card.seed,
        settings=settings,
    )


def _make_bilevel(found: LearnedPolicy, planning: Planning | None, replan: bool, env: SceneEnv) -> BilevelPolicy:
    policy = found.bind(env.labels)
    if planning:
        from bilevel.planning.plan_policies import PlannedPolicy
        from bilevel.planning.planners import PLANNERS

        name, seconds = planning
        policy.high = PlannedPolicy(found.domain, PLANNERS[name], replan=replan, time_limit=seconds)
    return policy


def _end_to_end(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    """A learned network that does all."""
    from bilevel.baselines.end_to_end_folder import read_end_to_end

    assert options.policy is not None
    found = read_end_to_end(options.policy, method.name)
    return learned_policy(method.name, found, options.policy, found.for_environment, {})


METHODS: Mapping[str, Method] = {
    name: replace(method, name=name)
    for name, method in {
        BISON: Method("BISON", "learned rules above a learned network", _bilevel, BILEVEL),
        EXPERT: Method("Expert", "the hand-written policy that demonstrates", _expert),
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
    }.items()
}


def find_method(name: str, methods: Mapping[str, Method] = METHODS) -> Method:
    if name not in methods:
        raise BadInput(f"unknown method '{name}'; known methods: {', '.join(methods)}")
    return methods[name]


def method_of(policy: Path | None) -> str:
    """The method that a folder was learned for; without a folder, it is the expert."""
    return EXPERT if policy is None else read_card(policy).method
