"""Collecting the small data sets that the tests of this folder need."""

from __future__ import annotations

from pathlib import Path

from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.recording import make_recipe

EPISODES = 3


def collect(folder: Path, task: str = "blocks", episodes: int = EPISODES, workers: int = 1, **arguments: float) -> None:
    recipe, slots = make_recipe(task, **{"objects": 1, **arguments})  # type: ignore[arg-type]
    with open_collection(folder, recipe, slots, episodes) as collection:
        list(collection.collect(workers))
