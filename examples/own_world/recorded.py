"""Demonstrations as somebody else may have recorded them: vectors and controls in plain arrays, nothing else.

    python examples/own_world/recorded.py build/scrap.npz
    bilevel import build/scrap.npz --task examples/own_world/own_world.py:task \\
        --perceive examples/own_world/recorded.py:from_vector --output build/scrap
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from own_world import BIN, POND, SPEC, Scrapyard, choose, control, goal, label, perceive

from bilevel import Scene

PIECE = ("x", "y", "dirty", "held")


def from_vector(vector: Any) -> Scene:
    """Three numbers of the truck, then five of each piece, of which the last says whether it has fallen yet."""
    truck = dict(zip(("x", "y", "heading"), vector[:3], strict=True))
    rows = [row for row in vector[3:].reshape(-1, 5) if row[4]]
    scrap = {f"scrap{number}": dict(zip(PIECE, row[:4], strict=True)) for number, row in enumerate(rows)}
    return Scene(SPEC, truck, {"scrap": scrap, "pond": {"pond": POND}, "bin": {"bin": BIN}})


def recorded(episodes: int = 60, objects: int = 3) -> Iterator[tuple[Any, Any, bool]]:
    """A vector, a control and whether the episode ends there, at every timestep; here a program drives the truck."""
    env = Scrapyard(objects)
    for episode in range(episodes):
        observation, info = env.reset(seed=episode)
        done = False
        while not done:
            scene = perceive(observation, info, env)
            state, wanted = frozenset(label(scene)), frozenset(goal(scene))
            action = choose(state, wanted)
            done = action is None  # nothing is left to do
            driven = np.zeros(3, np.float32) if action is None else control(scene, action)
            fallen = np.arange(objects) < info["seen"]
            yield np.concatenate([observation["truck"], np.c_[observation["scrap"], fallen].ravel()]), driven, done
            observation, _, _, _, info = env.step(driven)


if __name__ == "__main__":
    vectors, controls, ends = zip(*recorded(), strict=True)
    np.savez_compressed(sys.argv[1], observations=vectors, actions=controls, terminals=ends)
