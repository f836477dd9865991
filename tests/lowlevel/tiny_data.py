"""Tiny data sets, each collected once, and what the network learns from in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.dataset import Dataset, read_dataset
from bilevel.demonstrations.recording import make_recipe
from bilevel.learning.bilevel import Study, study
from bilevel.lowlevel.architecture import Architecture
from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.samples import Samples

EPISODES = 4

torch.set_num_threads(1)  # networks as small as these only wait for other threads


def collect(folder: Path, task: str, episodes: int = EPISODES, objects: int = 1) -> Dataset:
    recipe, slots = make_recipe(task, objects)
    with open_collection(folder, recipe, slots, episodes) as collection:
        list(collection.collect(workers=1))
    return read_dataset(folder)


@cache
def _folder() -> TemporaryDirectory[str]:
    """One that is gone when the tests are over."""
    return TemporaryDirectory()


@cache
def dataset(task: str = "blocks") -> Dataset:
    """A data set to read; not to be changed."""
    return collect(Path(_folder().name) / task, task)


def architecture(task: str = "blocks", hidden: int = 64) -> Architecture:
    return Architecture(encoding_of(dataset(task).task.domain), hidden)


@cache
def studied(task: str = "blocks") -> Study:
    return study(dataset(task), architecture(task), lambda progress: None)


def samples(task: str = "blocks") -> Samples:
    return studied(task).samples
