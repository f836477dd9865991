"""The worlds, a module for each, with two tasks: a still one, and its noisy twin, in which objects teleport away."""

from __future__ import annotations

from bilevel.tabletop.worlds import blocks, colour, factory, gacha, swap
from bilevel.tasks.task import Task

TASKS: dict[str, Task] = {
    task.name: task for world in (blocks, colour, factory, gacha, swap) for task in (world.task, world.noisy)
}
