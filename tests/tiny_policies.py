"""Policies for the tiny task, made once: a learned one that is clumsy, one that stands still, one that is skilled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from bilevel.demonstrations.collect import collect
from bilevel.learning.learn import LearningConfig, learn
from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.numpy_network import weight_shapes
from bilevel.lowlevel.training import TrainingConfig
from bilevel.policies.folder import BISON, Card, LearnedPolicy, NetworkShape, symbols_of
from bilevel.policies.policy import AskedExpert
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Action
from bilevel.tabletop import TASKS
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Expert, Task
from tiny_demonstrations import QUICK, shown
from tiny_task import TINY, control

PUT = "1: carrying(?p) & empty(?s) & goal at(?p, ?s) -> put(?p, ?s)"
PICK = "2: lying(?p) & empty(?s) & free() & goal at(?p, ?s) -> pick(?p)"
RULES = [PUT, PICK]
RULES_TEXT = "\n".join(["variables: ?p - parcel, ?s - spot", *RULES])
CONTROLS = BoxControls([-0.1, -0.1, 0.0], [0.1, 0.1, 1.0], [3])


@cache
def _folder() -> TemporaryDirectory[str]:
    """One that is gone when the tests are over."""
    return TemporaryDirectory()


@cache
def learned_folder() -> Path:
    """The folder of a policy that was learned briefly: it moves, but it does not get far. Not to be changed."""
    folder = Path(_folder().name) / "learned"
    learn(shown(), folder, task=TINY, config=QUICK, seed=7)
    return folder


@cache
def still_folder() -> Path:
    """The folder of a policy that stands still. Not to be changed."""
    folder = Path(_folder().name) / "still"
    still_policy().write(folder)
    return folder


@cache
def blocks_folder() -> Path:
    """The folder of a policy for blocks on the table, of one epoch. Not to be changed."""
    folder = Path(_folder().name) / "blocks"
    demonstrations = collect(TASKS["blocks"], Path(_folder().name) / "shown", objects=1, episodes=2)
    learn(demonstrations, folder, config=LearningConfig(hidden=8, training=TrainingConfig(epochs=1)))
    return folder


def still_policy(task: Task = TINY, rules: str = RULES_TEXT, controls: Controls = CONTROLS) -> LearnedPolicy:
    """A policy with rules that know what to do, and a network that does nothing."""
    encoding, network = encoding_of(task.domain, task.spec), NetworkShape(hidden=4, rounds=1)
    shapes = weight_shapes(encoding, controls, network.hidden, network.rounds)
    card = Card(
        task=task.name,
        method=BISON,
        objects=2,
        arguments={},
        seed=7,
        spec=task.spec,
        controls=controls,
        encoding=symbols_of(encoding),
        network=network,
        settings={"preset": "paper"},
        summary={"samples": 100, "best_epoch": 2, "validation_loss": 0.25},
        versions={"bilevel": "0.2.0"},
    )
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return LearnedPolicy(card, task.domain, weights, parse_rules(rules))


@contextmanager
def moving_as_the_expert(control: Callable[[Scene, Action], Control] = control) -> Iterator[None]:
    """Meanwhile the network of every bilevel policy in a folder moves as an expert does."""

    def low(policy: LearnedPolicy, network: Any = None) -> AskedExpert:
        return AskedExpert(Expert(control=control))

    with patch.object(LearnedPolicy, "low", low):
        yield
