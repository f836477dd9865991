"""The tiny task with pictures, for models that look at them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tiny_task import TINY, Delivery

HEIGHT, WIDTH = 100, 160


class DrawnDelivery(Delivery):
    def __init__(self, objects: int, slip_rate: float, render_mode: str | None) -> None:
        super().__init__(objects, slip_rate, discrete=False)
        self.render_mode = render_mode

    def render(self) -> NDArray[np.uint8] | None:
        """One colour for each position of the agent."""
        if self.render_mode is None:
            return None
        return np.full((HEIGHT, WIDTH, 3), np.append(100 + 60 * self.agent[:2], 0), np.uint8)


def make_env(objects: int, slip_rate: float = 0.0, render_mode: str | None = None) -> DrawnDelivery:
    return DrawnDelivery(objects, slip_rate, render_mode)


DRAWN = replace(TINY, name="drawn", make_env=make_env)
