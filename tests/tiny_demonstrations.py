"""Tiny data sets, each collected once, what is learned from them, and brief ways to learn."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.learn import LabelledData, LearningConfig, label_demonstrations
from bilevel.lowlevel.encoding import Samples
from bilevel.lowlevel.training import TrainingConfig
from bilevel.tasks.task import Task
from tiny_task import TINY

EPISODES = 3
QUICK = LearningConfig(hidden=8, training=TrainingConfig(epochs=2))
WITH_DAGGER = LearningConfig(
    hidden=8,
    training=TrainingConfig(epochs=2),
    dagger=DaggerConfig(rounds=1, episodes=2, epochs=2, patience=15),
)

torch.set_num_threads(1)  # networks as small as these only wait for other threads


@cache
def _folder() -> TemporaryDirectory[str]:
    """One that is gone when the tests are over."""
    return TemporaryDirectory()


_SHOWN: dict[tuple[str, int], Demonstrations] = {}
_LABELLED: dict[str, LabelledData] = {}


def shown(task: Task = TINY, objects: int = 2) -> Demonstrations:
    """A data set to read; not to be changed."""
    key = task.name, objects
    if key not in _SHOWN:
        folder = Path(_folder().name) / f"{task.name}-{objects}"
        _SHOWN[key] = collect(task, folder, objects=objects, episodes=EPISODES)
    return _SHOWN[key]


def labelled(task: Task = TINY) -> LabelledData:
    """The rules and samples in a data set."""
    if task.name not in _LABELLED:
        _LABELLED[task.name] = label_demonstrations(shown(task), task)
    return _LABELLED[task.name]


def samples(task: Task = TINY) -> Samples:
    return labelled(task).samples
