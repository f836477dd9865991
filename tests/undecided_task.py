"""The tiny task of one who has no actions yet: `BARE` has no domain at all, `FRAMED` one with predicates alone.

Their expert calls what it does by names, and in an order of arguments, that are its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import tiny_task
from bilevel.symbolic.domain import Action, Domain, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Expert
from tiny_task import TINY

OWN_NAMES = {"pick": "fetch", "put": "deliver"}
USUAL_NAMES = {own: usual for usual, own in OWN_NAMES.items()}


def choose(state: Facts, goal: Facts) -> Action | None:
    action = tiny_task.choose(state, goal)
    return action and Action(OWN_NAMES[action.name], action.arguments[::-1])


def control(scene: Scene, action: Action) -> Any:
    return tiny_task.control(scene, Action(USUAL_NAMES[action.name], action.arguments[::-1]))


FRAMED = replace(TINY, name="framed", domain=replace(TINY.domain, schemas={}), expert=Expert(choose, control))
BARE = replace(FRAMED, name="bare", domain=cast("Domain", None))
