"""A small data set, collected once, and a demonstration in which much happens."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recorder, make_recipe

EPISODES = 3


def collect(folder: Path, task: str = "blocks", episodes: int = EPISODES, workers: int = 1, **arguments: float) -> None:
    recipe, slots = make_recipe(task, **{"objects": 1, **arguments})  # type: ignore[arg-type]
    with open_collection(folder, recipe, slots, episodes) as collection:
        list(collection.collect(workers))


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set to read; not to be changed."""
    folder = tmp_path_factory.mktemp("collected")
    collect(folder)
    return folder


@pytest.fixture
def copied(collected: Path, tmp_path: Path) -> Path:
    """The same data set, to be changed."""
    return Path(shutil.copytree(collected, tmp_path / "copied"))


@pytest.fixture(scope="session")
def eventful() -> Demonstration:
    """Three blocks, of which some teleport, and a hand that is jostled."""
    recipe, _ = make_recipe("blocks", 3, seed=1, noise=0.7, teleport_rate=0.003)
    return Recorder(recipe).record(0)
