"""What benchmarks share that learn policies and measure them: everything they make is kept, and not made again."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.recording import make_recipe
from bilevel.experiments.sweep import Evaluation, open_results
from bilevel.learning import RECIPES, LearningConfig
from bilevel.lowlevel.dagger import DaggerConfig


@dataclass(frozen=True, kw_only=True)
class KeptWork:
    """What to make, and where to keep it."""

    folder: Path
    demonstrations: int
    episodes: int  # for each number of objects
    epochs: int | None = None  # instead of those of the recipes, and without practice

    def config(self, recipe: str) -> LearningConfig:
        usual = RECIPES[recipe]
        if self.epochs is None:
            return usual
        return replace(usual, training=replace(usual.training, epochs=self.epochs), dagger=DaggerConfig(rounds=0))

    def dataset(self, task: str) -> Path:
        return self.folder / "demonstrations" / task


def collect(work: KeptWork, task: str, workers: int) -> None:
    recipe, slots = make_recipe(task, 3)
    with open_collection(work.dataset(task), recipe, slots, work.demonstrations) as collection:
        list(collection.collect(workers))
    print(f"{task}: {work.demonstrations} demonstrations", flush=True)


class Measurable(Protocol):
    """Episodes that are measured together."""

    def evaluation(self, settings: Any) -> Evaluation: ...

    def results(self, settings: Any) -> Path: ...


SomeTrials = TypeVar("SomeTrials", bound=Measurable)


def evaluate(work: KeptWork, trials: SomeTrials) -> SomeTrials:
    with open_results(trials.results(work), trials.evaluation(work)) as results:
        list(results.collect())
    return trials


def has_gpu() -> bool:
    """Asked in another process: this one shall not hold a GPU."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return bool(pool.apply(_sees_gpu))


def _sees_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def hide_gpu() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
