"""What the numbers are that a network learns from: which feature of what, and how it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bilevel.tasks.spec import Symmetry

CONTROL, SEEN, SINE, COSINE = "control", "seen", "sine", "cosine"


@dataclass(frozen=True)
class TableColumn:
    """What a column of a table holds: one number of a feature, or one of a control.

    Columns of one `group` belong to the same thing: the agent, an argument, the control.
    """

    group: int
    name: str | int  # of the feature, or the number of the control
    part: str = SEEN
    occurrence: int = 0  # of the same feature told in another way, such as a position that is also absolute
    scale: float = 1.0


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, `None` for those that stay as they are, and the place of each schema's column.

    Where there is none, since the network is told no action, all symmetries hold for all samples.
    """

    columns: Sequence[TableColumn | None]
    schemas: dict[str, int]
    symmetries: Sequence[Symmetry]
