"""Bilevel policies: symbolic rules that decide what to do next, and a small network that does it, from demonstrations.

    import bilevel

    task = bilevel.find_task("cubes.py:task")
    demonstrations = bilevel.collect(task, "build/cubes", objects=3, episodes=100)
    bilevel.learn(demonstrations, "build/policy", task=task)
    records = bilevel.evaluate("build/policy", task, objects=[3, 10])

Everything here is loaded when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.3.0"

if TYPE_CHECKING:  # for type checkers and editors: what is loaded lazily below
    from bilevel.demonstrations.collect import collect as collect
    from bilevel.demonstrations.dataset import Demonstrations as Demonstrations
    from bilevel.demonstrations.importing.array_reader import recordings_in_memory as recordings_in_memory
    from bilevel.demonstrations.importing.importer import import_demonstrations as import_demonstrations
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
    from bilevel.rules.complete import complete_rules as complete_rules
    from bilevel.rules.learning import learn_rules as learn_rules
    from bilevel.rules.pruning import prune_rules as prune_rules
    from bilevel.rules.rule import Rule as Rule
    from bilevel.rules.rule_file import read_rules as read_rules
    from bilevel.rules.solving import solve as solve
    from bilevel.rules.verify import verify as verify
    from bilevel.symbolic.adl import read_adl_domain as read_adl_domain
    from bilevel.symbolic.domain import Action as Action
    from bilevel.symbolic.domain import Atom as Atom
    from bilevel.symbolic.domain import BadInput as BadInput
    from bilevel.symbolic.domain import Domain as Domain
    from bilevel.symbolic.domain import Problem as Problem
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

_MODULES = {
    "demonstrations.collect": ["collect"],
    "demonstrations.dataset": ["Demonstrations"],
    "demonstrations.importing.array_reader": ["recordings_in_memory"],
    "demonstrations.importing.importer": ["import_demonstrations"],
    "domain_learning.operators": ["learn_domain"],
    "experiments.evaluate": ["evaluate"],
    "experiments.records": ["Record"],
    "experiments.reproduce": ["benchmark_hard", "reproduce"],
    "learning.learn": ["learn"],
    "learning.rules": ["plan_traces"],
    "learning.task_checking": ["check_task"],
    "lowlevel.network": ["LowLevelNetwork"],
    "methods.methods": ["load_policy"],
    "planning.planners": ["plan"],
    "policies.policy": ["BilevelPolicy", "HighLevelPolicy"],
    "policies.episode": ["Episode"],
    "policies.folder": ["pretrained_policies"],
    "policies.rollout": ["rollout"],
    "rules.complete": ["complete_rules"],
    "rules.learning": ["learn_rules"],
    "rules.pruning": ["prune_rules"],
    "rules.rule": ["Rule"],
    "rules.rule_file": ["read_rules"],
    "rules.solving": ["solve"],
    "rules.verify": ["verify"],
    "symbolic.adl": ["read_adl_domain"],
    "symbolic.domain": ["Action", "Atom", "BadInput", "Domain", "Problem"],
    "symbolic.pddl": ["read_domain", "read_problem"],
    "tasks.registry": ["find_task", "register_task"],
    "tasks.scene": ["Scene"],
    "tasks.scene_env": ["SceneEnv"],
    "tasks.spec": ["Angle", "LabelOnly", "Mirror", "Position", "Scalar", "Spec", "Transpose"],
    "tasks.task": ["Expert", "Task"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _MODULE_OF:
        raise AttributeError(f"module 'bilevel' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"bilevel.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
