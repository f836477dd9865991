"""What planners are and what they answer: plans, or policies that say what to do whatever nature does."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Facts, Outcome, Problem
from bilevel.symbolic.semantics import Condition, GroundAction, bind_outcome, ground_action, is_solved, progress


class TimeUp(Exception):
    """A deadline has passed; planners turn it into a result."""


MEMORY_LIMIT = ContextVar("MEMORY_LIMIT", default=math.inf)  # in bytes, of the whole process
CHECKS_BETWEEN = 256  # two looks at the memory


@contextmanager
def limited_memory(limit: float) -> Iterator[None]:
    """While planning, raise `MemoryError` once the process uses more than so many bytes."""
    token = MEMORY_LIMIT.set(limit)
    try:
        yield
    finally:
        MEMORY_LIMIT.reset(token)


def memory_in_use() -> int:
    """How many bytes of memory the process uses; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class NoModel(BadInput):
    """The planner cannot express what may happen in the domain."""


class Deadline:
    """A time on the wall clock; who checks it is also told when there is no more memory."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._memory_limit = MEMORY_LIMIT.get()
        self._checks = 0

    @property
    def seconds_left(self) -> float:
        """How many seconds are left."""
        return self._end - time.monotonic()

    def check(self) -> None:
        """Raise `TimeUp` where time is up, and `MemoryError` where too much memory is in use."""
        if time.monotonic() >= self._end:
            raise TimeUp
        self._checks += 1
        if self._checks % CHECKS_BETWEEN == 0 and memory_in_use() > self._memory_limit:
            raise MemoryError


CHECKS_PER_LOOK = 16  # at the clock


class Effort(Deadline):
    """A deadline that passes after so many checks, always at the same place, unless the `seconds` have passed before.

    Planners check their deadline once for each state and each operator that they take up.
    """

    def __init__(self, checks: int, seconds: float = math.inf) -> None:
        super().__init__(seconds)
        self._left = checks

    @property
    def seconds_left(self) -> float:
        """How many seconds are left; none where the effort is spent."""
        return super().seconds_left if self._left > 0 else 0.0

    def check(self) -> None:
        """Count a piece of work; raise `TimeUp` where that was the last."""
        self._left -= 1
        if self._left <= 0:
            raise TimeUp
        if not self._left % CHECKS_PER_LOOK:
            super().check()


class PlanStep(NamedTuple):
    """An action of a plan and what it is meant to bring about: the index of an outcome and nature's choices in it.

    A plan for a nondeterministic domain is a hope, not a promise: it says which outcome it counts on at each step.
    """

    action: Action
    outcome: int = 0
    choice: tuple[tuple[str, str], ...] = ()

    def ground(self, domain: Domain) -> tuple[GroundAction, Outcome]:
        """The ground action and the outcome that the plan counts on, with nature's variables bound."""
        action = ground_action(domain, self.action)
        return action, bind_outcome(action.outcomes[self.outcome], dict(self.choice))


class Status(Enum):
    """How planning ended."""

    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do where the condition holds; if nature is kind, the goal is then `distance` steps away."""

    condition: Condition
    action: Action
    distance: int


def bits_of(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, the lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class ConditionIndex:
    """Conditions as bit masks, by number; each is filed under its rarest bit, so that most are never looked at."""

    def __init__(self) -> None:
        self._filed: dict[int, dict[int, int]] = {}  # under -1 those without any bit
        self._place: dict[int, int] = {}

    def put(self, number: int, condition: int) -> None:
        """File a condition under its number, instead of the one before."""
        if number in self._place:
            self.remove(number)
        place = min(bits_of(condition), key=lambda bit: len(self._filed.get(bit, ())), default=-1)
        self._filed.setdefault(place, {})[number] = condition
        self._place[number] = place

    def remove(self, number: int) -> None:
        """Remove the condition with this number."""
        del self._filed[self._place.pop(number)][number]

    def holding(self, state: int) -> list[int]:
        """Return the numbers of all conditions that hold in a state, in ascending order."""
        drawers = (self._filed.get(bit, {}) for bit in (-1, *bits_of(state)))
        return sorted(number for filed in drawers for number, needs in filed.items() if needs & state == needs)

    def first(self, state: int) -> int | None:
        """Return the smallest of these numbers; `None` where no condition holds."""
        return next(iter(self.holding(state)), None)


class LiteralMasks:
    """States and conditions as bit masks, with a bit for each literal that one of the conditions asks for."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        present, absent = dict[Atom, int](), dict[Atom, int]()
        for condition in conditions:
            for atom in condition.positive:
                present.setdefault(atom, 1 << len(present) + len(absent))
            for atom in condition.negative:
                absent.setdefault(atom, 1 << len(present) + len(absent))
        self._present, self._absent = present, absent
        self._atoms, self._empty = present.keys() | absent.keys(), sum(absent.values())

    def of_condition(self, condition: Condition) -> int:
        """The mask of a condition that is one of those given."""
        return self.of_effect(condition.positive, condition.negative)

    def of_effect(self, add: Facts, delete: Facts) -> int:
        """The bits of all that has a bit and is true where these facts have been added, and those deleted."""
        return sum(self._present.get(atom, 0) for atom in add) + sum(self._absent.get(atom, 0) for atom in delete)

    def of_state(self, state: Facts) -> int:
        """Return the literals that hold in a state, as bits."""
        mask = self._empty
        for atom in state & self._atoms:
            mask = (mask | self._present.get(atom, 0)) & ~self._absent.get(atom, 0)
        return mask


class Placeholder(NamedTuple):
    """An object that stands for the one that an action, `maker`, has made last."""

    name: str
    type: str
    maker: str

    def __str__(self) -> str:
        return f"{self.name} stands for the {self.type} that {self.maker} has made last"


@dataclass(frozen=True)
class ContingentPolicy:
    """Decisions, nearest to the goal first: the first whose condition holds counts.

    They may speak of placeholders, where actions make new objects.
    """

    decisions: tuple[Decision, ...]
    placeholders: tuple[Placeholder, ...] = ()

    def choose(self, state: Facts) -> Action | None:
        """What to do in a state; `None` where the policy says nothing about it, or the goal is reached."""
        masks, index = self._index
        first = index.first(masks.of_state(state))
        return None if first is None else self.decisions[first].action

    @cached_property
    def _index(self) -> tuple[LiteralMasks, ConditionIndex]:
        """The decisions by their number."""
        masks = LiteralMasks(decision.condition for decision in self.decisions)
        index = ConditionIndex()
        for number, decision in enumerate(self.decisions):
            index.put(number, masks.of_condition(decision.condition))
        return masks, index

    def why_not(self, state: Facts) -> str:
        """Why there is no action in this state, on one line."""
        return "the policy says nothing about this state"


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan or a strong-cyclic policy, or why there is none: `message`, one line, where there is more to say."""

    status: Status
    steps: tuple[PlanStep, ...] = ()
    policy: ContingentPolicy | None = None
    message: str = ""

    @property
    def plan(self) -> tuple[Action, ...] | None:
        """The actions of the plan; `None` where there is none."""
        is_plan = self.status is Status.SOLVED and self.policy is None
        return tuple(step.action for step in self.steps) if is_plan else None


# Plans for at most so many seconds by the wall clock; the problem is read as a closed world.
Planner = Callable[[Domain, Problem, float], PlanResult]

Move = tuple[PlanStep, GroundAction, Outcome]  # a step with its ground action and outcome


def without_needless_steps(
    domain: Domain, problem: Problem, steps: Sequence[PlanStep], deadline: Deadline
) -> tuple[PlanStep, ...]:
    """The plan less every step that, left out together with those that then cannot be done, is not missed.

    Steps that have not been looked at by the deadline stay.
    """
    kept: list[PlanStep] = []
    rest: list[Move] = [(step, *step.ground(domain)) for step in steps]
    state, objects = problem.state, frozenset(problem.all_objects(domain))
    while rest and deadline.seconds_left > 0:
        shorter, end, _ = _carried_out(rest[1:], state, objects)
        if is_solved(problem, end):
            rest = shorter
            continue
        (first,), state, objects = _carried_out(rest[:1], state, objects)
        kept.append(first[0])
        del rest[0]
    return (*kept, *(step for step, _, _ in rest))


def _carried_out(
    moves: Sequence[Move], state: Facts, objects: frozenset[str]
) -> tuple[list[Move], Facts, frozenset[str]]:
    """Those of the moves that can be done one after the other, what holds then, and the objects that there are then.

    Nature's new objects cannot be used before they are made.
    """
    done = []
    for move in moves:
        step, action, outcome = move
        if action.condition.holds(state) and objects.issuperset(step.action.arguments):
            state = progress(state, outcome)
            objects = objects.union(value for _, value in step.choice)
            done.append(move)
    return done, state, objects
