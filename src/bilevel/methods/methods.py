"""All methods in one table: what each is, what it needs, how it is learned and built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bilevel.planning import fast_downward
from bilevel.policies.body import Body
from bilevel.policies.episode import Episode
from bilevel.policies.policy import BilevelPolicy, Policy, expert_policy
from bilevel.policies.policy_folder import BISON, LearnedNetwork, LearnedPolicy, read_card, read_policy
from bilevel.policies.pretrained import find_folder, pretrained_policy
from bilevel.policies.recovery import Recovery
from bilevel.policies.waiting import WaitingPolicy
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.tasks.estimation import Estimation, Estimator
from bilevel.tasks.perception import PERFECT, Perception
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task

if TYPE_CHECKING:
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.learning.networks import LearningOptions

MakePolicy = Callable[[SceneEnv], Policy]
Measure = Callable[[Task, int, int], Episode]  # of a task, a number of objects and a seed

MAX_SYMBOLIC_OBJECTS = 1_000_000


@dataclass(frozen=True)
class EvaluatedPolicy:
    """A policy that is to be run or measured, as other processes get it: what makes it, and where it comes from."""

    method: str
    make: MakePolicy | None = None
    task: str | None = None  # that it was learned on
    check: Callable[[Task], None] | None = None  # `BadInput` for a task that it does not fit
    policy: str | None = None  # its folder or its name, as given
    digest: str | None = None
    seed: int | None = None  # of learning it
    settings: Mapping[str, Any] = field(default_factory=dict)  # all else that its results depend on
    measure: Measure | None = None  # for what is measured on symbols alone, and has nothing to `make`
    render_mode: str | None = None  # for a policy that looks at pictures

    def check_task(self, task: Task) -> None:
        """`BadInput` for a task that it does not fit."""
        if self.check is not None:
            self.check(task)

    def check_run(
        self, task: Task, objects: int, noise: float, arguments: Mapping[str, Any], perception: Perception = PERFECT
    ) -> None:
        """`BadInput` for a task, a number of objects, or other settings that it is not measured with."""
        self.check_task(task)
        most = self.max_objects(task)
        if objects < 1 or (most is not None and objects > most):
            raise BadInput(f"the task '{task.name}' takes 1 to {most} objects, not {objects}")
        if self.make:
            SceneEnv(task, objects, **arguments).close()
        elif noise or arguments or perception != PERFECT:
            given = {"noise": noise, "env-args": arguments, "perception": str(perception)}
            names = [name for name, value in given.items() if value]
            options = " and no ".join(f"--{name}" for name in names)
            raise BadInput(f"the method '{self.method}' is measured without an environment: it takes no {options}")

    def max_objects(self, task: Task) -> int | None:
        """The most objects that it can be measured with."""
        return task.max_objects if self.make else MAX_SYMBOLIC_OBJECTS


# The methods

EXPERT = "expert"
PLANNING_SECONDS = 100.0  # for each plan or policy: what LAMA gets in the paper
BILEVEL, END_TO_END = "bilevel", "end-to-end"  # what is learned
ON, OFF = "on", "off"  # state estimation
CLASSICAL, CONTINGENT = ("lama", "search"), ("fond",)  # planners


@dataclass(frozen=True)
class MethodOptions:
    """What a user says about a method."""

    policy: Path | None = None  # a folder that `bilevel learn` made, or the name of a pretrained policy
    planner: str | None = None
    planning_seconds: float | None = None
    recovery: Recovery | None = None  # by default that of the policy
    estimation: str | None = None  # on, off, or the folder of a policy whose estimation to use; `None`: its own, if any


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
    planners: tuple[str, ...] = ()  # that it can plan with, the usual one first, the last for new objects
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
        if self.name != BISON and options.recovery is not None:
            raise BadInput(f"the method '{self.name}' takes no --recovery: only {BISON} does")
        if options.estimation is not None and self.build not in (_bilevel, _expert):
            raise BadInput(f"the method '{self.name}' has no state estimation: it takes no --estimation")
        return self.build(self, options)

    def missing(self) -> str | None:
        """What it needs and is not here, in one line; `None` where it can be run."""
        try:
            self.planning(MethodOptions())
        except BadInput as error:
            return str(error)
        return None

    def planning(self, options: MethodOptions, domain: Domain | None = None) -> Planning | None:
        """How it plans in a domain, if it does; `BadInput` where the planner is not installed.

        LAMA has no model of actions that make new objects, so there the built-in search plans, unless a user says LAMA.
        """
        if not self.planners:
            return None
        planner = options.planner or self.planners[-1 if domain and domain.makes_objects else 0]
        if planner == "lama":
            fast_downward.find_program()
        return Planning(planner, options.planning_seconds or PLANNING_SECONDS)


# Building


def _expert(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    """The expert sees as a learned policy does, and waits as one does, where one is named for its estimation."""
    if options.estimation in (None, OFF):
        return EvaluatedPolicy(method.name, expert_policy)
    if options.estimation == ON:
        raise BadInput("the expert has no state estimation of its own: name the folder of a policy after --estimation")
    estimation = _estimation_in(Path(options.estimation or ""))
    settings = {"estimation": estimation.digest}
    return EvaluatedPolicy(method.name, partial(_make_expert, estimation), settings=settings)


def _make_expert(estimation: Estimation, env: SceneEnv) -> Policy:
    policy = expert_policy(env, Estimator(env.task.spec, estimation))
    body = Body(env.controls, env.task.switches, named=env.task.still)
    return WaitingPolicy(policy, body) if isinstance(policy, BilevelPolicy) else policy


def _estimation_in(folder: Path) -> Estimation:
    """The estimation in a policy folder; `BadInput` where there is none."""
    estimation = read_card(find_folder(folder)).estimation
    if estimation is None:
        raise BadInput(f"{folder}: the policy was learned without state estimation; learn it again")
    return estimation


def _bilevel(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    """A learned low level, under learned rules or under a planner."""
    assert options.policy is not None
    found = read_policy(find_folder(options.policy))
    planning = method.planning(options, found.domain)
    estimation, settings = _estimation_of(found, options)
    if planning:
        make = partial(_make_planning, found, planning, method.replan, estimation)
        return learned_policy(method.name, found, options.policy, make, {**planning._asdict(), **settings})
    recovery = found.card.recovery if options.recovery is None else options.recovery
    make = partial(_make_bilevel, found, recovery, estimation)
    return learned_policy(method.name, found, options.policy, make, {"recovery": str(recovery), **settings})


def _estimation_of(found: LearnedPolicy, options: MethodOptions) -> tuple[Estimation | None, dict[str, str]]:
    """The estimation of a policy, and what results have to say about it if it is not the policy's own."""
    if options.estimation is None:
        return found.card.estimation, {}
    if options.estimation == OFF:
        return None, {"estimation": OFF}
    assert options.policy is not None
    estimation = _estimation_in(options.policy if options.estimation == ON else Path(options.estimation))
    return estimation, {} if estimation == found.card.estimation else {"estimation": estimation.digest}


def learned_policy(
    method: str,
    found: LearnedNetwork,
    folder: Path,
    make: Callable[[SceneEnv], Policy],
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


def _make_bilevel(
    found: LearnedPolicy, recovery: Recovery, estimation: Estimation | None, env: SceneEnv
) -> BilevelPolicy:
    found.check_controls(env.controls)
    policy = found.bind(env.labels, recovery=recovery, switches=env.task.switches)
    policy.estimator = Estimator(found.spec, estimation) if estimation else None
    return policy


def _make_planning(
    found: LearnedPolicy, planning: Planning, replan: bool, estimation: Estimation | None, env: SceneEnv
) -> BilevelPolicy:
    from bilevel.planning.planners import PLANNERS, PlannedPolicy

    found.check_controls(env.controls)
    name, seconds = planning
    high = PlannedPolicy(found.domain, PLANNERS[name], replan=replan, time_limit=seconds)
    estimator = Estimator(found.spec, estimation) if estimation else None
    return BilevelPolicy(env.labels, high, found.low(), estimator)


def _end_to_end(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    """A learned network that does all."""
    from bilevel.baselines.end_to_end import read_end_to_end

    assert options.policy is not None
    found = read_end_to_end(find_folder(options.policy), method.name)
    return learned_policy(method.name, found, options.policy, found.for_environment, {})


METHODS: Mapping[str, Method] = {
    name: replace(method, name=name)
    for name, method in {
        BISON: Method("BISON", "learned rules above a learned network", _bilevel, BILEVEL),
        EXPERT: Method("Expert", "the hand-written policy that demonstrates", _expert),
        "det-plan": Method(
            "DetPlan",
            "follows one plan of LAMA, of the built-in search where actions make new objects",
            _bilevel,
            BILEVEL,
            CLASSICAL,
        ),
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
    """Return the method of this name; `BadInput`, which lists the names, where there is none."""
    if name not in methods:
        raise BadInput(f"unknown method '{name}'; known methods: {', '.join(methods)}")
    return methods[name]


def method_of(policy: Path | None) -> str:
    """The method that a folder was learned for; without a folder, it is the expert."""
    return EXPERT if policy is None else read_card(find_folder(policy)).method


def usual_policy(task: Task, method: str | None = None) -> Path | None:
    """The policy to run where none is named: the task's pretrained one, if it has one that the method can run on."""
    can_run = method is None or (method in METHODS and METHODS[method].training == BILEVEL)
    return pretrained_policy(task) if can_run else None


# Learning


def train(demonstrations: Demonstrations, output: Path, method: str, options: LearningOptions) -> LearnedNetwork:
    """Learn what the method runs on, and write its folder.

    Methods that plan run on the low level of a bilevel policy, whose rules they do without.
    """
    check_learned(method)
    if find_method(method).training == END_TO_END:
        from bilevel.baselines.learning import learn_end_to_end

        return learn_end_to_end(demonstrations, output, method, options)
    from bilevel.learning.learn import learn_bilevel

    return learn_bilevel(demonstrations, output, options)


def check_learned(method: str) -> None:
    """`BadInput` for a method that is not learned."""
    if find_method(method).training is None:
        raise BadInput(f"the method '{method}' is not learned: `bilevel evaluate --method {method}` runs it as it is")
