"""Training what a method runs on, into a folder: one way for every method that is learned."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

from bilevel.baselines.end_to_end_folder import SavedEndToEnd, saved_end_to_end
from bilevel.baselines.learning import learn_end_to_end
from bilevel.demonstrations.dataset import Dataset
from bilevel.execution.policy_folder import SavedPolicy, saved_policy, write_policy
from bilevel.experiments.methods import END_TO_END, find_method
from bilevel.files import remove_leftovers, write_atomically
from bilevel.learning import Curve, LearningConfig, Tell, learn_policies
from bilevel.symbolic.domain import BadInput

CURVES = "training.jsonl"


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
) -> SavedPolicy | SavedEndToEnd:
    """Learn what the method runs on, and write it with the losses of every epoch; `recipe` names the configuration.

    Methods that plan run on the low level of a bilevel policy, whose rules they do without.
    """
    check_learned(method)
    saved: SavedPolicy | SavedEndToEnd
    began = time.perf_counter()
    if find_method(method).training == END_TO_END:
        (network,) = learn_end_to_end(
            dataset, method, [seed], config, workers=workers, checkpoints=checkpoints, tell=tell
        )
        curves, seconds = network.curves, time.perf_counter() - began
        saved = saved_end_to_end(dataset, network, config, recipe=recipe, seconds=seconds)
    else:
        (learned,) = learn_policies(dataset, [seed], config, workers=workers, checkpoints=checkpoints, tell=tell)
        curves, seconds = learned.curves, time.perf_counter() - began
        saved = saved_policy(dataset, learned, config, recipe=recipe, seconds=seconds)
    remove_leftovers(folder / CURVES)
    write_atomically(folder / CURVES, _lines(curves))
    write_policy(folder, saved)
    return saved


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
