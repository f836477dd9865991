"""Whether this machine can draw pictures; where it cannot, tests ask for the one line that says so."""

from __future__ import annotations

from functools import cache

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import opengl


@cache
def can_draw() -> bool:
    try:
        opengl.backend()
    except BadInput:
        return False
    return True
