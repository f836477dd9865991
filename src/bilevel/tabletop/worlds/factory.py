"""Factory: Blocks that grow. Each of the n original blocks, once placed, brings a new block and a new place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bilevel.tabletop import layout, skills
from bilevel.tabletop.observation import Bools, Observation
from bilevel.tabletop.world_tasks import twins
from bilevel.tabletop.worlds.blocks import DOMAIN, SKILLS, Blocks, BlocksState, choose, goal, label


@dataclass
class FactoryState(BlocksState):
    """What Factory remembers besides the physics."""

    delivered: Bools  # (originals,): which of them have been placed once


class Factory(Blocks):
    """n blocks and n places at first, 2n in the end. What is to come is neither visible nor part of the goal."""

    max_objects: ClassVar[int] = 10
    instruction = f"{Blocks.instruction} As a block gets there, a new block and its spot appear."
    state_type = FactoryState
    state: FactoryState

    @property
    def pairs(self) -> int:
        return 2 * self.count

    def arrange(self, rng: np.random.Generator) -> FactoryState:
        start = super().arrange(rng)
        return FactoryState(start.visible, start.colours, np.zeros(self.count, bool))

    def react(self, observation: Observation) -> bool:
        moved = super().react(observation)
        delivered = self.at_goal(observation)[: self.count] & ~self.state.delivered
        arrived = [self.arrive(int(original)) for original in np.flatnonzero(delivered)]
        return moved or any(arrived)

    def arrive(self, original: int) -> bool:
        """The successor of an original block appears, and its place; whether there was room for both."""
        new = self.count + original
        for block in self.free_place(self.occupied()):
            for place in self.free_place(layout.stack(self.occupied(), [block])):
                self.appear(new, block, place, self.np_random)
                self.state.visible[[self._blocks.start + new, self._places.start + new]] = True
                self.state.delivered[original] = True
                self.happened(f"arrival {self._block_names[new]}")
                return True
        return False


task, noisy = twins(Factory, DOMAIN, label, goal, choose, skills.skilled(SKILLS))
