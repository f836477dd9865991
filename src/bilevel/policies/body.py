"""What a policy knows of the robot that it moves, apart from its network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bilevel.tasks.controls import BoxControls, Control, Controls


@dataclass(frozen=True)
class Body:
    """What must be known of a robot to hold it still, to push it, and to notice that it is stuck."""

    controls: Controls
    switches: Sequence[int] = ()  # numbers of a control that open or close something
    longest: Mapping[str, int] = field(default_factory=dict)  # demonstration of each schema, in steps
    named: Sequence[float] | None = None  # the control that holds still, if the task names one
    seed: int = 0  # of the pushes

    def still(self, last: Control | None) -> Control | None:
        """A control that holds still, as far as one is known, after the last one.

        If the task names none, it is the middle of a Box, where a velocity is nought. No control of a Discrete space is
        known to do nothing, so the last one is repeated. Switches stay as they were.
        """
        if not isinstance(self.controls, BoxControls):
            return last if self.named is None else np.int64(self.named[0])
        held = np.zeros(self.controls.size, np.float32)
        if self.named is not None:
            held[:] = self.controls.encode(np.array(self.named))[0]
        if last is not None and self.switches:
            switches = list(self.switches)
            held[switches] = self.controls.encode(last)[0, switches]
        return self.controls.decode(held)

    def is_still(self, control: Control) -> bool:
        """Whether a control is known to hold still, whatever its switches say."""
        if not isinstance(self.controls, BoxControls):
            return self.named is not None and control == self.named[0]
        held: Control = self.still(control)
        return bool(np.allclose(self.controls.encode(control), self.controls.encode(held), atol=1e-6))
