"""Learning what a method runs on, into a folder: one way for every method that is learned."""

from __future__ import annotations

from pathlib import Path

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.learning.config import LearningConfig
from bilevel.learning.learn import learn, silent
from bilevel.learning.networks import Callback
from bilevel.methods.methods import END_TO_END, find_method
from bilevel.policies.policy_folder import LearnedNetwork
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Task


def train(
    demonstrations: Demonstrations,
    output: Path,
    method: str,
    *,
    task: Task | None = None,
    preset: str = "best",
    config: LearningConfig | None = None,
    seed: int = 0,
    workers: int = 1,
    checkpoints: Path | None = None,
    callback: Callback = silent,
) -> LearnedNetwork:
    """Learn what the method runs on, and write its folder.

    Methods that plan run on the low level of a bilevel policy, whose rules they do without.
    """
    check_learned(method)
    how = {"seed": seed, "workers": workers, "checkpoints": checkpoints, "callback": callback}
    if find_method(method).training == END_TO_END:
        from bilevel.baselines.learning import learn_end_to_end

        return learn_end_to_end(demonstrations, output, method, task=task, preset=preset, config=config, **how)  # type: ignore[arg-type]
    return learn(demonstrations, output, task=task, preset=preset, config=config, **how)  # type: ignore[arg-type]


def check_learned(method: str) -> None:
    """`BadInput` for a method that is not learned."""
    if find_method(method).training is None:
        raise BadInput(f"the method '{method}' is not learned: `bilevel evaluate --method {method}` runs it as it is")
