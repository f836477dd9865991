"""Data sets that Minari's own recorder makes of an environment which knows nothing of this package.

Those in `demonstrations/data/minari` were made by `python tests/minari_recordings.py`, which needs minari[create].
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation

from bilevel.tasks.scene import Scene
from recorded_episodes import flat, raw
from tiny_task import TINY, perceive

FORMS = ("dictionary", "vector", "tuple")  # of the observations
SEEDS = (0, 1)
PARTS = ("agent", "arrived", "parcels", "spots")


def from_tuple(observation: tuple[Any, ...]) -> Scene:
    return perceive(dict(zip(PARTS, observation, strict=True)), {}, None)  # type: ignore[arg-type]


def wrapped(form: str) -> Any:
    """The environment with one parcel, and with observations of this form."""
    env = TINY.make_env(objects=1)
    if form == "vector":
        size = len(flat(raw(objects=1).observations[0]))
        return TransformObservation(env, lambda seen: flat(seen).astype(np.float32), spaces.Box(-9, 9, (size,)))
    if form == "tuple":
        space = spaces.Tuple([env.observation_space.spaces[name] for name in PARTS])
        return TransformObservation(env, lambda seen: tuple(seen[name] for name in PARTS), space)
    return env


def record(identifier: str, form: str) -> None:
    """Let Minari's recorder watch some episodes."""
    import minari

    collector = minari.DataCollector(wrapped(form))
    for seed in SEEDS:
        collector.reset(seed=seed)
        for action in raw(seed, objects=1).actions:
            collector.step(action)
    collector.create_dataset(identifier, algorithm_name="someone")
    collector.close()


if __name__ == "__main__":
    os.environ["MINARI_DATASETS_PATH"] = str(Path(__file__).parent / "demonstrations" / "data" / "minari")
    for each in sys.argv[1:] or FORMS:
        record(f"{each}-v0", each)
