"""The rows of the paper's table and ours, each a few settings, and what the paper reports of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bilevel.methods.methods import BILEVEL, EXPERT, METHODS
from bilevel.policies.folder import BISON
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS

TITLE = "Learning Bilevel Policies over Symbolic World Models for Long-Horizon Planning"
ADDRESS = "https://arxiv.org/abs/2605.15975"
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
    is_usual: bool = True  # whether it is measured unless other rows are asked for

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
    yield Row("bison-without-dagger", BISON, ", our preset without DAgger", OURS, {"dagger.rounds": 0})
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
    yield from (Row(name, name, is_usual=False) for name, method in METHODS.items() if method.is_published)
    yield replace(replan, name="det-replan-search", ending=", built-in search", planner="search", is_usual=False)
    yield Row("expert-estimating", EXPERT, " with state estimation", OURS, policy=BISON, is_usual=False)


ROWS: Mapping[str, Row] = {row.name: row for row in _rows()}
USUAL_ROWS = tuple(name for name, row in ROWS.items() if row.is_usual)
# The rows that the paper's table has, with ours beside BISON's.
PAPER_ROWS = (
    "bison-paper", BISON, EXPERT, "det-plan", "det-replan", "ndt-plan", "ndt-replan", "pddl-nn", "pure-nn",
)  # fmt: skip
TITLES: Mapping[str, str] = {name: row.title for name, row in ROWS.items()}


def find_rows(names: Sequence[str], usual: Sequence[str]) -> list[Row]:
    """Return the rows of these names, each once, or the usual ones; `BadInput` for one that cannot be run here."""
    rows = []
    for name in dict.fromkeys(names or usual):
        if name not in ROWS:
            raise BadInput(f"unknown method '{name}'; what can be reproduced: {', '.join(ROWS)}")
        if lacking := METHODS[ROWS[name].method].missing():
            raise BadInput(f"{name}: {lacking}; or leave it out of --methods")
        rows.append(ROWS[name])
    return rows


def find_tasks(names: Sequence[str], known: Iterable[str], usual: Sequence[str]) -> list[str]:
    """Return these tasks, each once, or the usual ones; `BadInput` for one that is not known."""
    known = list(known)
    for name in names:
        if name not in known:
            raise BadInput(f"unknown task '{name}'; tasks that can be reproduced: {', '.join(known)}")
    return list(dict.fromkeys(names or usual))


def room(task: str) -> int:
    """Return how many objects a task has room for."""
    most = TASKS[task].max_objects
    assert most is not None, "every table is small"
    return most


def paper_rate(row: str, task: str) -> float | None:
    """Return what the paper reports of a row on a task, or in total; `None` where it reports nothing."""
    is_there = row in PAPER_ROWS or METHODS[ROWS[row].method].is_published
    rates = PAPER_RATES.get(ROWS[row].method, ()) if is_there else ()
    return dict(zip((*PAPER_TASKS, TOTAL), rates, strict=False)).get(task)


def task_order(tasks: Iterable[str]) -> list[str]:
    """Return these tasks, each once: the paper's in its order, then others by their names."""
    known = set(tasks)
    return [*(task for task in PAPER_TASKS if task in known), *sorted(known.difference(PAPER_TASKS))]
