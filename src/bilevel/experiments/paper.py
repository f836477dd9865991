"""The paper's tasks, and the success rates reported.

The rates are over 1 to 10 objects, to be seen beside ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

TITLE = "Learning Bilevel Policies over Symbolic World Models for Long-Horizon Planning"
ADDRESS = "https://arxiv.org/abs/2605.15975"
TASKS = ("blocks", "blocks-noisy", "factory", "factory-noisy", "colour", "colour-noisy", "gacha", "gacha-noisy")

# In the order of the tasks, then the total. Of the expert the paper reports none.
RATES: Mapping[str, tuple[float, ...]] = {
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


def paper_rate(method: str, task: str | None = None) -> float | None:
    """Return what the paper reports of a method on a task, or in total; `None` where it reports nothing."""
    rates = dict(zip((*TASKS, None), RATES.get(method, ()), strict=False))
    return rates.get(task)


def in_order(tasks: Iterable[str]) -> list[str]:
    """Return these tasks, each once: the paper's in its order, then others by their names."""
    known = set(tasks)
    return [*(task for task in TASKS if task in known), *sorted(known.difference(TASKS))]
