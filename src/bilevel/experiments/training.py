"""Training what a method runs on, into a folder: one way for every method that is learned."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from bilevel.baselines.end_to_end_folder import SavedEndToEnd, saved_end_to_end
from bilevel.baselines.learning import LearnedEndToEnd, learn_end_to_end
from bilevel.demonstrations.dataset import Dataset
from bilevel.experiments.methods import END_TO_END, find_method
from bilevel.files import remove_leftovers, write_atomically
from bilevel.learning.bilevel import Curve, Learned, LearningConfig, Tell, learn_policies
from bilevel.policies.policy_folder import SavedPolicy, saved_policy, write_policy
from bilevel.symbolic.domain import BadInput

CURVES = "training.jsonl"


Saved = SavedPolicy | SavedEndToEnd


def train(
    dataset: Dataset,
    folder: Path,
    method: str,
    config: LearningConfig,
    *,
    seed: int = 0,
    recipe: str,
    workers: int = 1,
    checkpoints: Path | None = None,
    tell: Tell = lambda progress: None,
) -> Saved:
    """Learn what the method runs on, and write it with the losses of every epoch; `recipe` names the configuration.

    Methods that plan run on the low level of a bilevel policy, whose rules they do without.
    """
    (saved,) = train_together(
        dataset, {seed: folder}, method, config, recipe=recipe, workers=workers, checkpoints=checkpoints, tell=tell
    )
    return saved


def train_together(
    dataset: Dataset,
    folders: Mapping[int, Path],
    method: str,
    config: LearningConfig,
    *,
    recipe: str,
    workers: int = 1,
    checkpoints: Path | None = None,
    tell: Tell = lambda progress: None,
) -> list[Saved]:
    """The same for several seeds, side by side: on a GPU that takes hardly longer than for one of them."""
    check_learned(method)
    began = time.perf_counter()
    learned: list[Learned] | list[LearnedEndToEnd]
    seeds, how = list(folders), _How(workers=workers, checkpoints=checkpoints, tell=tell)
    if find_method(method).training == END_TO_END:
        learned = learn_end_to_end(dataset, method, seeds, config, **how)
    else:
        learned = learn_policies(dataset, seeds, config, **how)
    seconds = time.perf_counter() - began
    saved = []
    for folder, network in zip(folders.values(), learned, strict=True):
        assert isinstance(network, Learned | LearnedEndToEnd)
        saved.append(_saved(dataset, network, config, recipe, seconds))
        remove_leftovers(folder / CURVES)
        write_atomically(folder / CURVES, _lines(network.curves))
        write_policy(folder, saved[-1])
    return saved


class _How(TypedDict):
    """What does not change what is learned."""

    workers: int
    checkpoints: Path | None
    tell: Tell


def _saved(
    dataset: Dataset, learned: Learned | LearnedEndToEnd, config: LearningConfig, recipe: str, seconds: float
) -> Saved:
    if isinstance(learned, Learned):
        return saved_policy(dataset, learned, config, recipe=recipe, seconds=seconds)
    return saved_end_to_end(dataset, learned, config, recipe=recipe, seconds=seconds)


def check_learned(method: str) -> None:
    """`BadInput` for a method that is not learned."""
    if find_method(method).training is None:
        raise BadInput(f"the method '{method}' is not learned: `bilevel evaluate --method {method}` runs it as it is")


def _lines(curves: Iterable[Curve]) -> str:
    """A line of JSON for each epoch."""
    lines = [
        {
            "round": curve.round,
            "epoch": epoch.number,
            "training_loss": epoch.training_loss[0],
            "validation_loss": epoch.validation_loss[0],
        }
        for curve in curves
        for epoch in curve.epochs
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)
