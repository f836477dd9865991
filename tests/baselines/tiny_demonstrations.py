"""Tiny data sets, each collected once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.dataset import Dataset, read_dataset
from bilevel.demonstrations.recording import make_recipe
from bilevel.learning.bilevel import LearningConfig
from bilevel.lowlevel.dagger import DaggerConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.tabletop.tasks import TASKS

EPISODES = 3
TASK_OF = {task.domain_name: task.name for task in TASKS.values() if not task.noisy}  # one of each domain
QUICK = LearningConfig(hidden=8, training=TrainingConfig(epochs=2))
PRACTISING = LearningConfig(
    hidden=8,
    training=TrainingConfig(epochs=2),
    dagger=DaggerConfig(rounds=1, episodes=2, epochs=2, patience=15),
)

torch.set_num_threads(1)  # networks as small as these only wait for other threads


@cache
def _folder() -> TemporaryDirectory[str]:
    """One that is gone when the tests are over."""
    return TemporaryDirectory()


@cache
def dataset(task: str = "blocks") -> Dataset:
    """A data set to read; not to be changed."""
    folder = Path(_folder().name) / task
    recipe, slots = make_recipe(task, objects=1)
    with open_collection(folder, recipe, slots, EPISODES) as collection:
        list(collection.collect(workers=1))
    return read_dataset(folder)
