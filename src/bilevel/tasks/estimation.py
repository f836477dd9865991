"""The parameters of state estimation: how things move, as demonstrations show it. See `EstimationFit`."""

from __future__ import annotations

import hashlib

import msgspec

from bilevel.tasks.agent_motion import AgentMotion, Number


class Carrying(msgspec.Struct, frozen=True):
    """Where an object is, and how the agent is, while the agent carries it."""

    offset: tuple[Number, ...]  # from the agent, along each of its axes, in the mean
    spread: tuple[Number, ...]  # the standard deviation of it
    radius: Number  # an object this far from that offset may be carried
    agent: dict[str, tuple[Number, Number]]  # features of the agent are between these bounds
    slip: Number  # how far the object moves within a step, besides moving along
    coupled: dict[str, tuple[Number, ...]]  # numbers of the object that change with its way along each axis


class Motion(msgspec.Struct, frozen=True):
    """How objects of one type move."""

    loose: Number  # how far within a step, near the agent, while they are not carried
    known: dict[str, Number] = {}  # coordinates that are the same wherever one rests
    bounds: dict[str, tuple[Number, Number]] = {}  # of the numbers that are coupled
    carrying: Carrying | None = None
    gone: Number | None = None  # the nearest to the agent that one was when it vanished; `None` if none does


class Estimation(msgspec.Struct, frozen=True):
    """What demonstrations show of how things move; see `EstimationFit`."""

    floor: Number  # less noise than this does not matter
    near: Number  # objects further from the agent than this are at rest
    jump: Number  # nothing moves further than this within a step
    steps: int  # for which a change of the facts must last to be believed, where the sensors are noisy
    types: dict[str, Motion]
    agent: AgentMotion | None = None

    @property
    def digest(self) -> str:
        """Equal for estimations that estimate alike."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()
