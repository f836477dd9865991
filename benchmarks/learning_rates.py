"""How well networks imitate after as many updates at other learning rates: the loss on episodes that were set aside.

    python benchmarks/learning_rates.py                                       # a quarter of an hour on 2 cores
    python benchmarks/learning_rates.py --tasks blocks --methods pddl-nn --rates 0.001 0.01 --updates 1000

BISON's network and those of its rivals learn from the same 200 three-object demonstrations of a task, in the paper's
setting but for the learning rate and the number of updates. No episode is run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from result_files import Row, origin, replace_row

from bilevel.demonstrations.collection import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.learning.networks import PRESETS, LearningOptions
from bilevel.methods.methods import train
from bilevel.policies.policy_folder import read_card
from bilevel.processes import Work, spread
from bilevel.tabletop import TASKS

EPOCHS = 10  # after each of which the loss is measured; that of the best counts
KEYS = ("task", "method", "learning_rate", "updates", "demonstrations")


class Unit(NamedTuple):
    """A network to be trained."""

    task: str
    method: str
    learning_rate: float
    updates: int


def start(folder: Path, units: list[Unit]) -> Work[Row]:
    return lambda number: measure(folder, units[number], folder / f"{number}")


def measure(folder: Path, unit: Unit, output: Path) -> Row:
    """Train a network; return how well it does on what it has not seen."""
    demonstrations = Demonstrations.read(folder / unit.task)
    usual = PRESETS["paper"]
    training = replace(usual.training, epochs=EPOCHS, updates=unit.updates, learning_rate=unit.learning_rate)
    options = LearningOptions(task=TASKS[unit.task], config=replace(usual, training=training))
    train(demonstrations, output, unit.method, options)
    loss = round(read_card(output).summary["validation_loss"], 6)
    return {**unit._asdict(), "demonstrations": len(demonstrations), "validation_loss": loss, **origin(("torch",))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=["blocks", "gacha"])
    parser.add_argument("--methods", nargs="+", default=["bison", "pddl-nn", "pure-nn"])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.001, 0.003, 0.01])
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=Path("results/learning-rates.jsonl"))
    given = parser.parse_args()
    units = [Unit(*one, given.updates) for one in product(given.tasks, given.methods, given.rates)]
    with tempfile.TemporaryDirectory() as name:
        for task in given.tasks:
            collect(TASKS[task], Path(name) / task, objects=3, episodes=given.demonstrations)
        with closing(spread(partial(start, Path(name), units), range(len(units)), given.workers)) as rows:
            for row in rows:
                print({key: row[key] for key in (*KEYS, "validation_loss")}, flush=True)
                replace_row(given.output, row, KEYS)


if __name__ == "__main__":
    main()
