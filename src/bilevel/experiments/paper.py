"""The paper's tasks, what a vision-language-action model is told to do in them, and the success rates reported.

The rates are over 1 to 10 objects, to be seen beside ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bilevel.symbolic.domain import BadInput

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

# SmolVLA reads the first 48 tokens and drops the rest, so the sentences are short.
BLOCKS = "Put every block on the spot of its own colour, {n} in all."
FACTORY = f"{BLOCKS} As a block gets there, a new block and its spot appear."
COLOUR = (
    "Put the {n} brown blocks on the pink platform one by one, press the button to colour each, "
    "and take it to the tray of its colour."
)
GACHA = (
    "Put blocks of {n} target colours on their trays. "
    "While the box is closed, its button makes a block of a random colour inside."
)
JUMPS = "Blocks that are in place may jump elsewhere."

SENTENCES: Mapping[str, str] = {
    "blocks": BLOCKS,
    "blocks-noisy": f"{BLOCKS} {JUMPS}",
    "factory": FACTORY,
    "factory-noisy": f"{FACTORY} {JUMPS}",
    "colour": COLOUR,
    "colour-noisy": f"{COLOUR} {JUMPS}",
    "gacha": GACHA,
    "gacha-noisy": f"{GACHA} Blocks on trays may return to the box.",
}


def paper_rate(method: str, task: str | None = None) -> float | None:
    """Return what the paper reports of a method on a task, or in total; `None` where it reports nothing."""
    rates = dict(zip((*TASKS, None), RATES.get(method, ()), strict=False))
    return rates.get(task)


def in_order(tasks: Iterable[str]) -> list[str]:
    """Return these tasks, each once: the paper's in its order, then others by their names."""
    known = set(tasks)
    return [*(task for task in TASKS if task in known), *sorted(known.difference(TASKS))]


def sentence(task: str, objects: int) -> str:
    """Return what to do in a task with so many blocks or, in Gacha, target colours."""
    if task not in SENTENCES:
        raise BadInput(f"there is no sentence for the task '{task}'; there are some for: {', '.join(SENTENCES)}")
    return SENTENCES[task].format(n=objects)
