"""A small data set, collected once, and a demonstration in which much happens."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_datasets import collect

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recorder, make_recipe


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
    recipe, _ = make_recipe("blocks", 3, seed=1, noise=0.7, teleport_rate=0.006)
    recorder = Recorder(recipe)
    episodes = (recorder.record(index) for index in range(20))
    return next(episode for episode in episodes if any(event.startswith("teleport") for _, event in episode.events))
