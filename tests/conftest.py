"""What tests of several folders need: a small data set, a demonstration in which much happens, and interrupts."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from bilevel.demonstrations.collect import Recorder, collect, collection_settings
from bilevel.demonstrations.dataset import Demonstration
from tiny_task import TINY

EPISODES = 3

# A shell makes commands in the background ignore interrupts, and so would all processes that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set to read; not to be changed."""
    folder = tmp_path_factory.mktemp("collected")
    collect(TINY, folder, objects=1, episodes=EPISODES)
    return folder


@pytest.fixture
def copied(collected: Path, tmp_path: Path) -> Path:
    """The same data set, to be changed."""
    return Path(shutil.copytree(collected, tmp_path / "copied"))


@pytest.fixture(scope="session")
def eventful() -> Demonstration:
    """Three parcels, of which one slips, and controls that are perturbed, in more steps than two keyframes need."""
    recorder = Recorder(TINY, collection_settings(TINY, 3, seed=1, noise=0.7, slip_rate=0.02))
    episodes = (recorder.record(index)[0] for index in range(20))
    slipping = (episode for episode in episodes if any(event.startswith("slip") for _, event in episode.events))
    return next(episode for episode in slipping if episode.steps > 130)
