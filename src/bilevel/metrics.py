"""Numbers on the way: as TensorBoard reads them, or sent to Weights & Biases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from bilevel.symbolic.domain import BadInput

Log = Callable[[Mapping[str, float], int], None]  # notes numbers by their names, at a step


@contextmanager
def open_log(text: str | None, settings: Mapping[str, Any]) -> Iterator[Log]:
    """Open what `--log` names, tensorboard=DIR or wandb=PROJECT; without it, nothing is noted.

    `settings` are what the numbers depend on, to compare runs.
    """
    if text is None:
        yield lambda values, step: None
        return
    kind, _, place = text.partition("=")
    if kind not in LOGS or not place:
        raise BadInput(f"--log takes tensorboard=DIR or wandb=PROJECT, not '{text}'")
    with LOGS[kind](place, settings) as log:
        yield log


@contextmanager
def _tensorboard(folder: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    from torch.utils.tensorboard import SummaryWriter

    try:
        writer = SummaryWriter(folder)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written: {error.strerror}") from None

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    with writer:
        writer.add_text("settings", "\n".join(f"    {name}: {value}" for name, value in settings.items()))
        yield log


@contextmanager
def _wandb(project: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    import wandb

    try:
        run = wandb.init(project=project, config=dict(settings))
    except wandb.Error as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"--log wandb={project}: {reason}; WANDB_MODE=offline keeps the run here") from None
    with run:
        yield lambda values, step: run.log(dict(values), step=step)


LOGS: Mapping[str, Callable[[str, Mapping[str, Any]], AbstractContextManager[Log]]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
}
