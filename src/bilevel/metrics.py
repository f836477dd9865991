"""Numbers on the way: as TensorBoard reads them, or sent to Weights & Biases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bilevel.files import writing
from bilevel.symbolic.domain import BadInput

Log = Callable[[Mapping[str, float], int], None]  # notes numbers by their names, at a step


@contextmanager
def open_log(text: str | None, settings: Mapping[str, Any]) -> Iterator[Log]:
    """Open what `--log` names, tensorboard=DIR or wandb=PROJECT; without it, nothing is noted.

    `settings` are what the numbers depend on, to compare runs.
    """
    kind, _, place = (text or "").partition("=")
    if text is None:
        yield lambda values, step: None
    elif kind == "tensorboard" and place:
        from torch.utils.tensorboard import SummaryWriter

        with writing(place):
            writer = SummaryWriter(place)

        def log(values: Mapping[str, float], step: int) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)

        with writer:
            writer.add_text("settings", "\n".join(f"    {name}: {value}" for name, value in settings.items()))
            yield log
    elif kind == "wandb" and place:
        import wandb

        try:
            run = wandb.init(project=place, config=dict(settings))
        except wandb.Error as error:
            reason = " ".join(str(error).split())
            raise BadInput(f"--log {text}: {reason}; WANDB_MODE=offline keeps the run here") from None
        with run:
            yield lambda values, step: run.log(dict(values), step=step)
    else:
        raise BadInput(f"--log takes tensorboard=DIR or wandb=PROJECT, not '{text}'")
