"""A policy with rules that know what to do, and a network that does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from bilevel.lowlevel.architecture import Architecture
from bilevel.lowlevel.encoding import encoding_of
from bilevel.policies import policy_folder
from bilevel.policies.policy_folder import SavedPolicy
from bilevel.rules.rule_file import parse_rules
from bilevel.tabletop.observation import Array, Slots
from bilevel.tabletop.problems import domain_text
from bilevel.tabletop.skills import SKILLS, Skills
from bilevel.tabletop.tasks import find_task

PLACE = "1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)"
PICK = "2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)"


def idle_policy() -> SavedPolicy:
    task = find_task("blocks")
    architecture = Architecture(encoding_of(task.domain), hidden=4, rounds=1)
    weights: dict[str, Array] = {}
    for name, shape in architecture.layers.items():
        weights |= {f"{name}.weight": np.zeros(shape, np.float32), f"{name}.bias": np.zeros(shape[1], np.float32)}
    counts = {"samples": 1, "traces": 1, "exogenous": 0, "ambiguous": 0, "best_epoch": 0, "validation_loss": 0.5}
    return SavedPolicy(
        task=task.name,
        arguments={"objects": 3, "teleport_rate": 0.0},
        seed=7,
        domain_text=domain_text(task.domain_name),
        domain=task.domain,
        rules=parse_rules(f"variables: ?b - block, ?p - place\n{PLACE}\n{PICK}").rules,
        architecture=architecture,
        weights=weights,
        settings={"recipe": "paper", "training": {}, "dagger": {}},
        summary={**counts, "demonstrations": {"command": "bilevel collect", "episodes": 1}, "seconds": 1.0},
        versions={"bilevel": "0.1.0"},
    )


@contextmanager
def moving_as_the_expert() -> Iterator[None]:
    """Meanwhile the network of any policy for blocks moves as the expert does."""

    def skills(architecture: Architecture, weights: object, slots: Slots) -> Skills:
        return Skills(SKILLS["blocks"], slots)

    with patch.object(policy_folder, "GnnPolicy", skills):
        yield
