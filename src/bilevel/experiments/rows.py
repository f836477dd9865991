"""The rows of the tables, with what the paper reports of its own; and the axes of the hard suite, which get harder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bilevel.methods.lerobot import PUBLISHED, install
from bilevel.methods.methods import BILEVEL, EXPERT, METHODS
from bilevel.policies.folder import BISON
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tabletop.world_tasks import TELEPORT_RATE

PAPER_TASKS = (
    "blocks", "blocks-noisy", "factory", "factory-noisy", "colour", "colour-noisy", "gacha", "gacha-noisy",
)  # fmt: skip

# The success rates over 1 to 10 objects in the order of the tasks, then the total. Of the expert there is none.
PAPER_RATES: Mapping[str, Sequence[float]] = {
    "bison": (0.99, 0.95, 0.97, 0.62, 0.54, 0.99, 0.65, 0.64, 0.79),
    "det-plan": (0.90, 0.34, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.15),
    "det-replan": (0.98, 0.97, 0.94, 0.59, 0.00, 0.00, 0.00, 0.00, 0.44),
    "ndt-plan": (0.99, 0.39, 0.00, 0.00, 0.61, 0.01, 0.00, 0.00, 0.25),
    "ndt-replan": (0.99, 0.97, 0.94, 0.51, 0.26, 0.17, 0.00, 0.00, 0.48),
    "pddl-nn": (0.33, 0.20, 0.18, 0.07, 0.12, 0.36, 0.51, 0.60, 0.30),
    "pure-nn": (0.00,) * 9,
    "smolvla": (0.00,) * 9,
    "smolvla-metaworld": (0.00,) * 9,
}
TOTAL = "total"  # of all tasks

PAPER, OURS = "paper", "best"  # presets of learning


@dataclass(frozen=True)
class Row:
    """A row of the table: a method, and how what it runs on is learned."""

    name: str
    method: str
    ending: str = ""  # of its title
    preset: str | None = None  # of learning the policy that it runs on, if there is one
    config: Mapping[str, Any] = field(default_factory=dict)  # of learning, where it is not the preset's
    policy: str | None = None  # the row whose policy it runs on; by default its own, if it has a preset
    network: str | None = None  # the row whose network is kept, so that rules alone are learned
    planner: str | None = None  # where that is not the usual one of the method
    new_objects: bool = False  # only for tasks in which new objects appear
    is_dagger: bool = True  # if our preset has it
    is_usual: bool = True  # whether it is measured unless somebody asks for other rows

    @property
    def title(self) -> str:
        """What the table calls it."""
        return METHODS[self.method].title + self.ending

    @property
    def learned(self) -> str | None:
        """The name of the row whose policy is learned for it; `None` where nothing is learned."""
        return self.policy or (self.name if self.preset else None)

    @property
    def options(self) -> dict[str, Any]:
        """How the policy is run: as in the paper without recovery and state estimation, else as the policy says."""
        is_paper = self.preset == PAPER
        return {
            "method": self.method,
            "planner": self.planner,
            "recovery": "off" if is_paper and self.method == BISON else None,
            "estimation": "off" if is_paper and METHODS[self.method].training == BILEVEL else None,
        }

    def is_for(self, task: str) -> bool:
        """Return whether a task has new objects, if the row is about these."""
        return not self.new_objects or TASKS[task].domain.makes_objects


def _rows() -> Iterator[Row]:
    printed = {"algorithm": "printed"}
    yield Row("bison-printed", BISON, ", Algorithm 1 as printed", PAPER, printed, network="bison-paper")
    yield Row("bison-paper", BISON, ", paper's setting", PAPER)
    yield Row("bison-recorded", BISON, ", paper's setting and recorded actions", PAPER, {"recorded_actions": True})
    yield Row("bison-without-dagger", BISON, ", our preset without DAgger", OURS, is_dagger=False)
    yield Row(BISON, BISON, ", our preset", OURS)
    yield Row(EXPERT, EXPERT)
    for name in ("det-plan", "det-replan", "ndt-plan", "ndt-replan"):
        yield Row(name, name, "", PAPER, policy="bison-paper")
        if METHODS[name].replan:
            yield Row(f"{name}-dagger", name, ", on the network of our preset", OURS, policy=BISON)
    for name in ("pddl-nn", "pure-nn"):
        yield Row(name, name, "", PAPER)
        yield Row(f"{name}-dagger", name, " with DAgger", OURS)
    replan = Row("det-replan-lama", "det-replan", ", LAMA alone", PAPER, policy="bison-paper", planner="lama")
    yield replace(replan, new_objects=True)
    yield from (Row(name, name, is_usual=False) for name in PUBLISHED)
    yield replace(replan, name="det-replan-search", ending=", built-in search", planner="search", is_usual=False)
    yield Row("expert-estimating", EXPERT, " with state estimation", OURS, policy=BISON, is_usual=False)


ROWS: Mapping[str, Row] = {row.name: row for row in _rows()}
USUAL_ROWS = tuple(name for name, row in ROWS.items() if row.is_usual)
# The rows that the paper's table has, with ours beside BISON's.
PAPER_ROWS = (
    "bison-paper", BISON, EXPERT, "det-plan", "det-replan", "ndt-plan", "ndt-replan", "pddl-nn", "pure-nn",
)  # fmt: skip
TITLES: Mapping[str, str] = {name: row.title for name, row in ROWS.items()}


def choose(noun: str, names: Sequence[str], known: Iterable[str], usual: Sequence[str]) -> list[str]:
    """Return these names, each once, or the usual ones; `BadInput` for one that is not known."""
    known = list(known)
    for name in names:
        if name not in known:
            raise BadInput(f"unknown {noun} '{name}'; there are: {', '.join(known)}")
    return list(dict.fromkeys(names or usual))


def find_rows(names: Sequence[str], usual: Sequence[str]) -> list[Row]:
    """Return the rows of these names, each once, or the usual ones; `BadInput` for one that cannot be run here."""
    rows = [ROWS[name] for name in choose("method", names, ROWS, usual)]
    for row in rows:
        method = METHODS[row.method]
        if method.name in PUBLISHED and method.missing():
            install(method.name)
        if lacking := method.missing():
            raise BadInput(f"{row.name}: {lacking}; or leave it out of --methods")
    return rows


def paper_rate(row: str, task: str) -> float | None:
    """Return what the paper reports of a row on a task, or in total; `None` where it reports nothing."""
    method = METHODS[ROWS[row].method]
    rates = PAPER_RATES.get(method.name, ()) if row in PAPER_ROWS or row in PUBLISHED else ()
    return dict(zip((*PAPER_TASKS, TOTAL), rates, strict=False)).get(task)


def task_order(tasks: Iterable[str]) -> list[str]:
    """Return these tasks, each once: the paper's in its order, then others by their names."""
    known = set(tasks)
    return [*(task for task in PAPER_TASKS if task in known), *sorted(known.difference(PAPER_TASKS))]


# The hard suite

WORLDS = ("blocks", "factory", "colour", "gacha")
HARD_TASKS = (*WORLDS, "swap")
HARD_METHODS = ("bison", "bison-paper", "expert", "det-replan", "ndt-replan", "pddl-nn")
ON_OUR_NETWORK = ("det-replan-dagger", "ndt-replan-dagger")  # what decides is all in which they differ from BISON
CIRCLES = (2, 3, 4, 6, 8, 10)


@dataclass(frozen=True)
class Axis:
    """A sweep: values from the easy to the hard, or from little to much."""

    name: str
    about: str  # one sentence
    values: Sequence[float]
    change: Callable[[float], Mapping[str, Any]]  # what a value changes of a `Cell`, or of its options
    tasks: Sequence[str]
    show: Callable[[float], str] = "{:g}".format
    is_log: bool = False
    measures: Sequence[str] = ("success",)  # and pause_seconds, seconds
    # What is run for a method that is asked for, where that is not the method itself; for one not named here, nothing.
    rows: Mapping[str, Sequence[str]] | None = None
    kind: str = "episodes"  # or "symbols": without a world
    objects: int = 10  # unless a user says otherwise, where the axis is not about their number

    @property
    def title(self) -> str:
        """What stands along the axis of a chart."""
        return self.name.replace("-", " ") or "number of objects"

    def rows_for(self, methods: Iterable[str]) -> list[Row]:
        """Return what is run on this axis where these methods are asked for: mostly the methods themselves."""
        names = [name for method in methods for name in (self.rows.get(method, ()) if self.rows else (method,))]
        return [ROWS[name] for name in names]


def _number(name: str) -> Callable[[float], Mapping[str, Any]]:
    return lambda value: {name: int(value)}


def _teleports(rate: float) -> Mapping[str, Any]:
    """Return how often objects at their goals teleport; the noisy tasks have a rate of their own."""
    return {} if rate == TELEPORT_RATE else {"teleport_rate": rate}


def _perception(kind: str, about: str, values: Sequence[float]) -> Axis:
    """Return the axis of a thing that may be wrong with what is seen.

    There are five objects: with more, networks that do all have nothing to lose. The expert has no state estimation of
    its own. As a ceiling it takes that of a policy, which is what others have.
    """
    rows = {method: (method,) for method in (*HARD_METHODS, *ON_OUR_NETWORK)} | {"expert": ("expert-estimating",)}

    def change(level: float) -> Mapping[str, Any]:
        return {"perception": f"{kind}={level:g}"} if level else {}

    return Axis(f"perception-{kind}", about, values, change, WORLDS, rows=rows, objects=5)


_AXES = (
    Axis(
        "teleports",
        "Objects that are at their goals vanish and come back elsewhere, with this probability at each step.",
        [1 / every for every in (4000, 2000, 1000, 500, 250)],
        _teleports,
        [f"{task}-noisy" for task in WORLDS],
        show=lambda rate: f"1/{1 / rate:.0f}",
        is_log=True,
    ),
    Axis(
        "control-noise",
        "Now and then the hand is pushed for some steps, with this amplitude.",
        (0, 0.5, 1, 1.5, 2),
        lambda amplitude: {"noise": float(amplitude)} if amplitude else {},
        WORLDS,
    ),
    _perception("noise", "Positions are off, by another amount (m) at each step.", (0, 0.01, 0.05, 0.1, 0.2)),
    _perception("missed", "Objects are not seen, each at each step with this probability.", (0, 0.1, 0.5, 0.9, 0.98)),
    _perception("occluded", "The hand hides what is nearer to it than so many metres.", (0, 0.04, 0.12, 0.2, 0.3)),
    _perception("delay", "What is seen is how it was so many steps ago.", (0, 5, 10, 15, 20)),
    Axis(
        "demonstrations",
        "Policies learn from fewer demonstrations, and from nothing else: ours without DAgger.",
        (1, 2, 5, 10, 20, 50, 200),
        _number("demonstrations"),
        WORLDS,
        is_log=True,
        rows={method: (method,) for method in HARD_METHODS} | {"bison": ("bison-without-dagger",)},
    ),
    Axis(
        "shown",
        "Policies learn from demonstrations with so few objects, and are run with more.",
        (1, 2, 3),
        _number("shown"),
        WORLDS,
    ),
    Axis(
        "objects",
        "There are more and more objects on the table.",
        (1, 2, 3, 5, 8, 10, 12, 15, 20),
        _number("objects"),
        WORLDS,
    ),
    Axis(
        "symbols",
        "Symbols alone, without a robot: large problems, with what nature does, within a time limit.",
        (10, 30, 100, 300, 1000),
        _number("objects"),
        ("blocks", "colour", "gacha", "swap"),
        show="{:,.0f}".format,
        is_log=True,
        measures=("success", "seconds", "pause_seconds"),
        rows={"bison": ("bison",), "ndt-replan": ("ndt-replan",), "det-replan": ("det-replan", "det-replan-search")},
        kind="symbols",
    ),
    Axis(
        "swap",
        "Blocks stand on each other's places at first, in every other episode in a circle.",
        CIRCLES,
        _number("objects"),
        ("swap",),
    ),
    Axis(
        "swap-circle",
        "All blocks stand in one circle, each on the place of the next; the demonstrations of Blocks do not show this.",
        CIRCLES,
        lambda number: {"objects": int(number), "start": "circle"},
        ("blocks", "swap"),
    ),
)
AXES: Mapping[str, Axis] = {axis.name: axis for axis in _AXES}
NUMBER = Axis("", "By task and method.", (), _number("objects"), ())  # of the paper's table


def find_axes(names: Sequence[str]) -> list[Axis]:
    """Return these axes in the order of the table, or all; `perception` stands for all whose names begin like that."""
    wanted = choose("axis", names, [*AXES, "perception"], [*AXES])
    return [axis for axis in AXES.values() if axis.name in wanted or axis.name.partition("-")[0] in wanted]
