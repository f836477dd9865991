"""The losses of training for TensorBoard, while it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bilevel.lowlevel.training import Epoch
from bilevel.symbolic.domain import BadInput


class Note(Protocol):
    def __call__(self, stage: str, epoch: Epoch) -> None: ...


@contextmanager
def loss_notes(folder: Path) -> Iterator[Note]:
    """What notes the losses after each epoch, in a folder that TensorBoard reads."""
    from torch.utils.tensorboard import SummaryWriter

    try:
        writer = SummaryWriter(str(folder))
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written: {error.strerror}") from None

    def note(stage: str, epoch: Epoch) -> None:
        for name, loss in (("training loss", epoch.training_loss), ("validation loss", epoch.validation_loss)):
            writer.add_scalar(f"{stage}/{name}", loss, epoch.number)
        writer.flush()

    with writer:
        yield note
