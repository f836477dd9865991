"""Importing this module registers the worlds with Gymnasium: `bilevel/Blocks-v0`, `bilevel/BlocksNoisy-v0`, and so on.

Gymnasium imports it by itself where the id says so: "bilevel.tabletop.gymnasium_ids:bilevel/Blocks-v0".
"""

from __future__ import annotations

import gymnasium

from bilevel.tabletop import TASKS


def gymnasium_id(task: str) -> str:
    """Return the id under which Gymnasium knows the environment of a task: bilevel/BlocksNoisy-v0 of blocks-noisy."""
    return f"bilevel/{task.title().replace('-', '')}-v0"


for _task in TASKS:
    gymnasium.register(gymnasium_id(_task), "bilevel.tasks.registry:make_env", kwargs={"task": _task})
