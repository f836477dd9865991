"""Bilevel policies: symbolic rules that decide what to do next, and a small network that does it, from demonstrations.

    import bilevel

    task = bilevel.find_task("cubes.py:task")
    demonstrations = bilevel.collect(task, "build/cubes", objects=3, episodes=100)
    bilevel.learn(demonstrations, "build/policy", task=task)
    records = bilevel.evaluate("build/policy", task, objects=[3, 10])

Everything here is loaded when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

__version__ = "0.3.0"

TYPE_CHECKING = False  # typing's own takes longer to import than all of this
if TYPE_CHECKING:  # each public name once: `__getattr__` reads here where it is
    from typing import Any

    from bilevel.demonstrations.collect import collect as collect
    from bilevel.demonstrations.dataset import Demonstrations as Demonstrations
    from bilevel.demonstrations.importing.importer import import_demonstrations as import_demonstrations
    from bilevel.demonstrations.importing.npz_reader import recordings_in_memory as recordings_in_memory
    from bilevel.domain_learning.goal_orders import learn_rules as learn_rules
    from bilevel.domain_learning.operators import learn_domain as learn_domain
    from bilevel.experiments.evaluate import evaluate as evaluate
    from bilevel.experiments.records import Record as Record
    from bilevel.experiments.reproduce import benchmark_hard as benchmark_hard
    from bilevel.experiments.reproduce import reproduce as reproduce
    from bilevel.learning.learn import learn as learn
    from bilevel.learning.rules import plan_traces as plan_traces
    from bilevel.learning.task_checking import check_task as check_task
    from bilevel.lowlevel.network import LowLevelNetwork as LowLevelNetwork
    from bilevel.methods.methods import load_policy as load_policy
    from bilevel.planning.planners import plan as plan
    from bilevel.policies.episode import Episode as Episode
    from bilevel.policies.folder import pretrained_policies as pretrained_policies
    from bilevel.policies.policy import BilevelPolicy as BilevelPolicy
    from bilevel.policies.policy import HighLevelPolicy as HighLevelPolicy
    from bilevel.policies.rollout import rollout as rollout
    from bilevel.rule_learning.problems import learn_from_problems as learn_from_problems
    from bilevel.rules.complete import complete_rules as complete_rules
    from bilevel.rules.rule import Rule as Rule
    from bilevel.rules.rule_file import read_rules as read_rules
    from bilevel.rules.solving import solve as solve
    from bilevel.rules.verify import verify as verify
    from bilevel.symbolic.domain import Action as Action
    from bilevel.symbolic.domain import Atom as Atom
    from bilevel.symbolic.domain import BadInput as BadInput
    from bilevel.symbolic.domain import Domain as Domain
    from bilevel.symbolic.domain import Problem as Problem
    from bilevel.symbolic.pddl import read_adl_domain as read_adl_domain
    from bilevel.symbolic.pddl import read_domain as read_domain
    from bilevel.symbolic.pddl import read_problem as read_problem
    from bilevel.tasks.registry import find_task as find_task
    from bilevel.tasks.registry import register_task as register_task
    from bilevel.tasks.scene import Scene as Scene
    from bilevel.tasks.scene_env import SceneEnv as SceneEnv
    from bilevel.tasks.spec import Angle as Angle
    from bilevel.tasks.spec import LabelOnly as LabelOnly
    from bilevel.tasks.spec import Mirror as Mirror
    from bilevel.tasks.spec import Position as Position
    from bilevel.tasks.spec import Scalar as Scalar
    from bilevel.tasks.spec import Spec as Spec
    from bilevel.tasks.spec import Transpose as Transpose
    from bilevel.tasks.task import Expert as Expert
    from bilevel.tasks.task import Task as Task


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used; `__all__` has their names."""
    import re
    from importlib import import_module
    from pathlib import Path

    found = re.findall(r"from (\S+) import \w+ as (\w+)", Path(__file__).read_text(encoding="utf-8"))
    modules = {public: module for module, public in found}
    if name == "__all__":
        return ["__version__", *sorted(modules)]
    if name not in modules:
        raise AttributeError(f"module 'bilevel' has no attribute '{name}'")
    globals()[name] = value = getattr(import_module(modules[name]), name)
    return value


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
