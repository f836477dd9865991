"""The methods of the paper's experiment: those of `bilevel.methods`, the published models, and a planner alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bilevel.experiments.scaling import run_planner
from bilevel.methods import methods
from bilevel.methods.evaluated_policy import EvaluatedPolicy
from bilevel.methods.methods import Method, MethodOptions
from bilevel.symbolic.domain import BadInput


def _vla(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    """A published model, which a user may have in a folder."""
    from bilevel.baselines.vla import require_vla
    from bilevel.experiments.vla_sentences import make_policy

    ready = require_vla(method.name, options.policy)
    make = partial(make_policy, ready.settings)
    return EvaluatedPolicy(method.name, make, policy=ready.name, digest=ready.files.digest, render_mode="rgb_array")


def _symbolic(method: Method, options: MethodOptions) -> EvaluatedPolicy:
    planning = method.planning(options)
    assert planning is not None
    return EvaluatedPolicy(method.name, measure=partial(run_planner, *planning), settings=planning._asdict())


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
    return methods.find_method(name, METHODS)


def find_policy(
    method: str, policy: Path | None = None, planner: str | None = None, planning_seconds: float | None = None
) -> EvaluatedPolicy:
    """What is to be measured; `BadInput` where something is missing, or given and not needed."""
    return find_method(method).load(MethodOptions(policy, planner, planning_seconds))
