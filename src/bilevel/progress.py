"""How far long work is, which every long function tells its callback, and the log of numbers on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bilevel.symbolic.domain import BadInput


@dataclass(frozen=True)
class Progress:
    """What is being done, how much of it is done, and what was measured on the way."""

    stage: str
    done: int = 0
    total: int | None = None  # `None` where it is unknown
    values: Mapping[str, float] = field(default_factory=dict)


Callback = Callable[[Progress], None]
Log = Callable[[Mapping[str, float], int], object]  # notes numbers by their names, at a step


def silent(progress: Progress) -> None:
    """Ignore the progress: the callback where it is not shown."""


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

        from bilevel.files import writing

        with writing(place):
            writer = SummaryWriter(place)

        def note(values: Mapping[str, float], step: int) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)

        with writer:
            writer.add_text("settings", "\n".join(f"    {name}: {value}" for name, value in settings.items()))
            yield note
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
