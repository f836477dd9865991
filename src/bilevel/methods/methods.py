"""All methods in one table: what each is, how it is learned, and what loads it to be run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bilevel.lowlevel.encoding import Encoding
from bilevel.methods.lerobot import PUBLISHED, LeRobotPolicy, find_model
from bilevel.planning import fast_downward
from bilevel.planning.planners import PLANNERS, PlannedPolicy
from bilevel.policies.episode import Episode
from bilevel.policies.folder import BISON, LearnedPolicy, find_folder, read_card, read_policy
from bilevel.policies.policy import BilevelPolicy, Policy, expert_policy
from bilevel.policies.recovery import ONLY_WAIT, Body, RecoveringPolicy, Recovery, parse_recovery
from bilevel.symbolic.domain import Atom, BadInput, Domain
from bilevel.tasks.controls import Controls, are_alike
from bilevel.tasks.estimation import Estimation, Estimator
from bilevel.tasks.registry import registered_task
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Labels, Task

EXPERT, LEROBOT = "expert", "lerobot"
PLANNING_SECONDS = 100.0  # for each plan or policy: what LAMA gets in the paper
BILEVEL, END_TO_END = "bilevel", "end-to-end"  # what is learned
ON, OFF = "on", "off"  # state estimation
CLASSICAL, CONTINGENT = ("lama", "search"), ("fond",)  # planners
RULES = ("policy", "recovery", "estimation", "network")  # options of methods
PLANS = ("policy", "planner", "planning_seconds", "estimation", "network")
TOLD = ("policy", "sentence")

Bind = Callable[[Labels, Sequence[int]], Policy]  # to labels, and the switches among the controls


@dataclass(frozen=True)
class RunnablePolicy:
    """A policy that is to be run or measured, as worker processes get it: what makes it, and where it comes from."""

    method: str
    make: Callable[[SceneEnv], Policy] | None = None
    measure: Callable[[Task, int, int], Episode] | None = None  # for what is measured on symbols: objects and a seed
    bind: Bind | None = None  # for what needs no environment
    check: Callable[[Task], None] = lambda task: None  # `BadInput` for a task that it does not fit
    task: str | None = None  # that it was learned on
    policy: str | None = None  # its folder or its name, as given
    digest: str | None = None
    seed: int | None = None  # of learning it
    settings: Mapping[str, Any] = field(default_factory=dict)  # all else that its results depend on
    pictures: Mapping[str, Any] = field(default_factory=dict)  # that it looks at, as arguments of `SceneEnv`


class Options(NamedTuple):
    """What a user says about a method."""

    policy: Path | None = None
    planner: str | None = None
    planning_seconds: float | None = None  # for each plan, at most
    recovery: Recovery | None = None  # by default that of the policy
    estimation: str | None = None  # on, off, or the folder of a policy whose estimation to use; `None`: its own, if any
    network: Callable[[Encoding, Controls], Any] | None = None  # of a policy whose network is not ours
    sentence: str | None = None  # for a policy that is told in words what to do


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    name: str
    title: str  # in the paper's tables
    about: str
    load: Callable[[Method, Options], RunnablePolicy]
    takes: tuple[str, ...]  # which options; the policy must be given
    training: str | None = None  # what `bilevel learn` learns for it; nothing, if there is none
    planners: tuple[str, ...] = ()  # that it can plan with, the usual one first, the last for new objects
    replan: bool = False

    def check(self, options: Options) -> None:
        """`BadInput` where something is missing, or given and not needed."""
        for name, value in options._asdict().items():
            if value is not None and name not in self.takes:
                raise BadInput(f"the method '{self.name}' takes no --{name.replace('_', '-')}")
        if options.planner not in (None, *self.planners):
            known = ", ".join(self.planners)
            raise BadInput(f"the method '{self.name}' cannot plan with '{options.planner}', but with {known}")
        if "policy" in self.takes and options.policy is None:
            made = "`bilevel learn` makes one" if self.training else "a folder that LeRobot saved"
            raise BadInput(f"the method '{self.name}' needs a --policy; {made}")

    def missing(self) -> str | None:
        """Return what it lacks here, in one line; `None` where it can be run."""
        try:
            if self.name in PUBLISHED:
                find_model(self.name)
            self.planning(Options())
        except BadInput as error:
            return str(error)
        return None

    def planning(self, options: Options, domain: Domain | None = None) -> dict[str, Any]:
        """Return how it plans in a domain, nothing if it does not; `BadInput` where the planner is not installed.

        LAMA has no model of actions that make new objects, so there the built-in search plans, unless a user says LAMA.
        """
        if not self.planners:
            return {}
        planner = options.planner or self.planners[-1 if domain and domain.makes_objects else 0]
        if planner == "lama":
            fast_downward.find_program()
        return {"planner": planner, "planning_seconds": options.planning_seconds or PLANNING_SECONDS}


# What loads a method


def _expert(method: Method, options: Options) -> RunnablePolicy:
    """Return the expert, which sees and waits as a learned policy does where one is named for its estimation."""
    estimation = _estimation(options, None)

    def make(env: SceneEnv) -> Policy:
        expert = expert_policy(env)
        if estimation is None or not isinstance(expert, BilevelPolicy):
            return expert
        body = Body(env.controls, env.task.switches, named=env.task.still)
        estimator = Estimator(env.task.spec, estimation)
        return RecoveringPolicy(env.labels, expert.high, expert.low, ONLY_WAIT, body, estimator)

    return RunnablePolicy(method.name, make, settings={"estimation": estimation.digest} if estimation else {})


def _estimation(options: Options, own: Estimation | None) -> Estimation | None:
    """Return the state estimation to use: none, a policy's own, or that of another; `BadInput` where it has none."""
    if options.estimation in (None, OFF):
        return None if options.estimation else own
    folder = options.policy if options.estimation == ON else Path(options.estimation or "")
    if folder is None:
        raise BadInput("the expert has no state estimation of its own: name the folder of a policy after --estimation")
    found = read_card(find_folder(folder)).estimation
    if found is None:
        raise BadInput(f"{folder}: the policy was learned without state estimation; learn it again")
    return found


def _bilevel(method: Method, options: Options) -> RunnablePolicy:
    """Return a learned low level, under learned rules or under a planner."""
    assert options.policy is not None
    learned = read_policy(find_folder(options.policy))
    estimation, settings = _estimation(options, learned.card.estimation), method.planning(options, learned.domain)
    if options.estimation == OFF or estimation != learned.card.estimation:
        settings["estimation"] = estimation.digest if estimation else OFF
    recovery = learned.card.recovery if options.recovery is None else options.recovery
    settings |= {} if method.planners else {"recovery": str(recovery)}
    seeing = replace(learned, card=msgspec.structs.replace(learned.card, estimation=estimation))

    def bind(labels: Labels, switches: Sequence[int]) -> Policy:
        if not method.planners:
            return seeing.bind(labels, options.network, recovery, switches)
        planner, seconds = PLANNERS[settings["planner"]], settings["planning_seconds"]
        high = PlannedPolicy(seeing.domain, planner, replan=method.replan, time_limit=seconds)
        estimator = Estimator(seeing.card.spec, estimation) if estimation else None
        return BilevelPolicy(labels, high, seeing.low(options.network), estimator)

    return _learned(method, learned, options, bind, settings)


def _end_to_end(method: Method, options: Options) -> RunnablePolicy:
    """Return a learned network that does all."""
    from bilevel.methods.end_to_end import EndToEndPolicy, read_end_to_end

    assert options.policy is not None
    learned, network = read_end_to_end(find_folder(options.policy), method.name)
    return _learned(method, learned, options, lambda labels, _: EndToEndPolicy(network, labels), {})


def _learned(
    method: Method, learned: LearnedPolicy, options: Options, bind: Bind, settings: Mapping[str, Any]
) -> RunnablePolicy:
    """Return what was learned, to be run by a method."""

    def make(env: SceneEnv) -> Policy:
        if not are_alike(env.controls, shown := learned.card.controls):
            raise BadInput(f"the policy was learned with {shown}, but the environment has {env.controls}")
        return bind(env.labels, env.task.switches)

    return RunnablePolicy(
        method=method.name,
        make=make,
        bind=bind,
        check=learned.check_task,
        task=learned.card.task,
        policy=str(options.policy),
        digest=learned.digest,
        seed=learned.card.seed,
        settings=settings,
    )


def _lerobot(method: Method, options: Options) -> RunnablePolicy:
    """Return a policy that LeRobot saved: one in a folder, or a published model."""
    model = find_model(method.name, options.policy)
    return RunnablePolicy(
        method.name,
        make=partial(LeRobotPolicy, model),
        policy=str(options.policy or PUBLISHED[method.name][0]),
        digest=model.digest,
        settings={**model.settings, "sentence": options.sentence or ""},
        pictures=model.pictures,
    )


_FOLLOWS = "follows one plan of LAMA, of the built-in search where actions make new objects"
_AGAIN, _COMPUTES = "plans again where the plan breaks", "computes another policy where the first has no action"
_ROWS = (
    Method(BISON, "BISON", "learned rules above a learned network", _bilevel, RULES, BILEVEL),
    Method(EXPERT, "Expert", "the hand-written policy that demonstrates", _expert, ("estimation",)),
    Method("det-plan", "DetPlan", _FOLLOWS, _bilevel, PLANS, BILEVEL, CLASSICAL),
    Method("det-replan", "DetReplan", _AGAIN, _bilevel, PLANS, BILEVEL, CLASSICAL, replan=True),
    Method("ndt-plan", "NdtPlan", "follows one strong-cyclic policy", _bilevel, PLANS, BILEVEL, CONTINGENT),
    Method("ndt-replan", "NdtReplan", _COMPUTES, _bilevel, PLANS, BILEVEL, CONTINGENT, replan=True),
    Method("pddl-nn", "PddlNN", "a network over all objects and all facts", _end_to_end, ("policy",), END_TO_END),
    Method("pure-nn", "PureNN", "a network over all objects, without facts", _end_to_end, ("policy",), END_TO_END),
    Method(LEROBOT, "LeRobot", "any policy that LeRobot saved: ACT, Diffusion, SmolVLA, …", _lerobot, TOLD),
    Method("smolvla", "SmolVLA", "a vision-language-action model, as published", _lerobot, TOLD[1:]),
    Method("smolvla-metaworld", "SmolVLA-MW", "the same, trained on MetaWorld", _lerobot, TOLD[1:]),
)
METHODS: Mapping[str, Method] = {method.name: method for method in _ROWS}


# Loading


def find_method(name: str) -> Method:
    """Return the method of this name; `BadInput`, which lists the names, where there is none."""
    if name not in METHODS:
        raise BadInput(f"unknown method '{name}'; known methods: {', '.join(METHODS)}")
    return METHODS[name]


def usual_policy(task: Task, method: str | None = None) -> Path | None:
    """Return the task's pretrained policy, which runs where none is named, if the method can run on it.

    It is named as the task, unless that is the name of something else; then it is its folder.
    """
    if task.pretrained is None or not (method is None or find_method(method).training == BILEVEL):
        return None
    registered = registered_task(task.name)
    has_name = registered is not None and registered.pretrained == task.pretrained and not Path(task.name).exists()
    return Path(task.name if has_name else task.pretrained)


def find_policy(
    policy: Path | str | None = None,
    *,
    task: Task | None = None,
    method: str | None = None,
    recovery: Recovery | str | None = None,
    **options: Any,
) -> RunnablePolicy:
    """Return what is to be run; `BadInput` where something is missing, or given and not needed.

    The `policy` is a folder, the name of a pretrained policy, or "expert"; without one, it is the pretrained policy of
    the `task`. The `method` is by default the one that the policy was learned by. A `recovery`, such as "wait=20,plan"
    or "off", goes before the policy's. Further options are `planner` and `planning_seconds`, for each time that it
    plans; `estimation`, which is "on", "off", or the folder of a policy whose state estimation is used; and the
    `network` of a policy that has another than ours.
    """
    if str(policy) == EXPERT:
        policy, method = None, method or EXPERT
    elif policy is None and task is not None:
        policy = usual_policy(task, method)
    folder = None if policy is None else Path(policy)
    row = find_method(method or (read_card(find_folder(folder)).method if folder else BISON))
    strategy = parse_recovery(recovery) if isinstance(recovery, str) else recovery
    sentence = task.instruction if task and "sentence" in row.takes else None
    given = Options(folder, recovery=strategy, sentence=sentence, **options)
    row.check(given)
    found = row.load(row, given)
    if task is not None:
        found.check(task)
    return found


def load_policy(
    folder: Path | str,
    task: Task | None = None,
    *,
    label: Callable[[Scene], Iterable[Atom]] | None = None,
    goal: Callable[[Scene], Iterable[Atom]] | None = None,
    **options: Any,
) -> Any:
    """Return the learned policy in a folder, ready to `act(scene)`; BISON's needs neither torch nor a simulator.

        policy = load_policy("build/policy")
        control = policy.act(scene)

    Its labels are those of the `task`, or the functions `label` and `goal`, or else those of the task that is
    registered under the name in the folder. Nothing that the folder names is imported. The further options are
    `method`, `planner`, `planning_seconds`, `recovery`, `estimation` and `network`, as `find_policy` has them.
    """
    found = find_policy(folder, **options)
    if found.bind is None:
        raise BadInput(f"the method '{found.method}' acts only in an environment of a task: see `evaluate`")
    if label is not None and goal is not None:
        return found.bind(Labels(label, goal), ())
    task = task or registered_task(found.task or "")
    if task is None:
        raise BadInput(f"{folder}: no task {found.task!r} is registered: hand over the task, or its label and goal")
    found.check(task)
    return found.bind(task.labels, task.switches)
