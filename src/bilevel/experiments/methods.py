"""The methods of the paper's experiment: those of `bilevel.methods`, the published models, and a planner alone."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bilevel.cpu_time import cpu_seconds
from bilevel.experiments.paper import sentence
from bilevel.methods import methods
from bilevel.methods.methods import EvaluatedPolicy, Method, MethodOptions
from bilevel.planning.planners import Failure, find_plan, planner_named
from bilevel.policies.episode import Episode, Seconds
from bilevel.policies.recovery import Recovery
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.problems import generate_problem
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Task

if TYPE_CHECKING:
    from bilevel.baselines.vla import VlaPolicy, VlaSettings

CAMERA = "corner"  # about where LeRobot's MetaWorld has it, which the fine-tuned model was trained with


def _vla(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    """A published model, which a user may have in a folder."""
    from bilevel.baselines.vla import require_vla

    ready = require_vla(method.name, options.policy)
    make = partial(make_vla, ready.settings)
    return EvaluatedPolicy(method.name, make, policy=ready.name, digest=ready.files.digest, render_mode="rgb_array")


def make_vla(settings: VlaSettings, env: SceneEnv) -> VlaPolicy:
    """Return the policy of a published model for a task of the paper."""
    from bilevel.baselines.vla import VlaPolicy

    instruction = sentence(env.task.name, env.objects)
    env.env.camera = CAMERA
    return VlaPolicy(settings, env, instruction)


def _symbolic(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    planning = method.planning(options)
    assert planning is not None
    return EvaluatedPolicy(method.name, measure=partial(run_planner, *planning), settings=planning._asdict())


def run_planner(planner: str, time_limit: float, task: Task, objects: int, seed: int) -> Episode:
    """Let a planner solve a random problem of the task's domain; the steps are those of its plan."""
    problem = generate_problem(task.domain.name, objects, random.Random(seed))
    began = cpu_seconds()
    found = find_plan(planner_named(planner), task.domain, problem, time_limit)
    failure = found if isinstance(found, Failure) else None
    return Episode(
        seed=seed,
        outcome=failure.reason if failure else SUCCESS,
        failure=failure,
        steps=0 if isinstance(found, Failure) else len(found.steps),
        seconds=Seconds(policy=cpu_seconds() - began, physics=0.0),
    )


METHODS: Mapping[str, Method] = {
    **methods.METHODS,
    **{
        name: replace(method, name=name)
        for name, method in {
            "smolvla": Method("SmolVLA", "a vision-language-action model, as published", _vla, takes_policy=True),
            "smolvla-metaworld": Method("SmolVLA-MW", "the same, trained on MetaWorld", _vla, takes_policy=True),
            "lama": Method("LAMA", "plans for symbols alone, to see how it scales", _symbolic, planners=("lama",)),
        }.items()
    },
}


def missing(method: Method) -> str | None:
    """What a method needs and is not here, in one line; `None` where it can be run."""
    if is_published(method):
        from bilevel.baselines.vla import require_vla
        from bilevel.tabletop import opengl

        try:
            require_vla(method.name)
            opengl.backend()  # such a model looks at pictures
        except BadInput as error:
            return str(error)
    return method.missing()


def is_published(method: Method) -> bool:
    """Whether a method is a published model, whose weights nothing stands in for."""
    return method.build is _vla


def is_symbolic(method: Method) -> bool:
    """Whether a method is measured without an environment."""
    return method.build is _symbolic


def find_method(name: str) -> Method:
    """Return the method of this name, those of the experiment included; `BadInput` where there is none."""
    return methods.find_method(name, METHODS)


def find_policy(
    method: str,
    policy: Path | None = None,
    planner: str | None = None,
    planning_seconds: float | None = None,
    recovery: Recovery | None = None,
    estimation: str | None = None,
) -> EvaluatedPolicy:
    """What is to be measured; `BadInput` where something is missing, or given and not needed."""
    return find_method(method).load(MethodOptions(policy, planner, planning_seconds, recovery, estimation))
