"""From recorded arrays alone: OGBench's play, vectors and actions, without goals and without an expert.

    python recorded_play.py play.npz  # plays as OGBench's own data sets were made; or take one of those
    bilevel import play.npz --task first_cubes.py:task --perceive recorded_play.py:from_vector \\
        --hindsight recorded_play.py:hindsight --output play
    bilevel learn play --task first_cubes.py:task --dagger-rounds 0 --epochs 30 --output policy
    bilevel evaluate first_cubes.py:task --policy policy --objects 1,3,8 --episodes 20 --output play.jsonl
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from first_cubes import HAND, PLACE, SPEC, label
from ogbench.manipspace.oracles.markov.cube_markov import CubeMarkovOracle

from bilevel import Scene

SETTLING = 5  # steps after which a cube that is let go has come to rest


def from_vector(vector: Any) -> Scene:
    """The scene in a vector, in OGBench's units: 12 numbers of joints, seven of the hand, nine of each cube."""
    hand, cubes = vector[12:19], vector[19:].reshape(-1, 9)

    def place(numbers: Any, cos: float, sin: float) -> tuple[float, ...]:
        x, y, z = numbers / 10
        return x + 0.425, y, z, np.arctan2(sin, cos)

    agent = (*place(hand[:3], hand[3], hand[4]), hand[5] / 3)
    seen = {f"cube{i}": dict(zip(PLACE, place(cube[:3], *cube[7:]), strict=True)) for i, cube in enumerate(cubes)}
    return Scene(SPEC, dict(zip(HAND, agent, strict=True)), {"cube": seen, "spot": {}})


def hindsight(scenes: Sequence[Scene]) -> Iterator[tuple[int, int, list[Scene]]]:
    """Whenever a cube is let go, and not taken again at once, all cubes are where they should be: there are the spots.

    What follows begins where the hand opens, so that how it leaves the cube is shown, too.
    """
    held = [next((fact.terms[0] for fact in label(scene) if fact.predicate == "holding"), None) for scene in scenes]
    start = 0
    for now in range(1, len(scenes) - SETTLING):
        if held[now - 1] and not any(held[now : now + SETTLING]):
            end = now + SETTLING
            spots = {name.replace("cube", "spot"): features for name, features in cubes(scenes[end]).items()}
            yield start, end, [with_spots(scene, spots) for scene in scenes[start : end + 1]]
            start = now


def cubes(scene: Scene) -> dict[str, dict[str, float]]:
    return {cube.name: {name: cube[name] for name in PLACE} for cube in scene.of_type("cube")}


def with_spots(scene: Scene, spots: dict[str, dict[str, float]]) -> Scene:
    agent = {name: scene.agent[name] for name in HAND}
    return Scene(SPEC, agent, {"cube": cubes(scene), "spot": spots})


def play(path: str, episodes: int = 60, steps: int = 500) -> None:
    """Record what OGBench's own oracle does, with noise, in its mode for data; keep what its data sets keep."""
    env = gymnasium.make("cube-triple-v0", mode="data_collection", max_episode_steps=steps + 1)
    rng, rows = np.random.default_rng(0), []
    for episode in range(episodes):
        vector, info = env.reset(seed=episode)
        np.random.seed(episode)  # OGBench draws from there, too
        oracle = CubeMarkovOracle(env=env)
        for step in range(steps):
            if step == 0 or oracle.done:
                vector, info = env.unwrapped.set_new_target(p_stack=0)  # type: ignore[attr-defined]
                oracle.reset(vector, info)
            action = np.clip(oracle.select_action(vector, info) + rng.normal(0, 0.05, 5), -1, 1)
            rows.append((vector, action, step == steps - 1))
            vector, _, _, _, info = env.step(action)
    observations, actions, terminals = zip(*rows, strict=True)
    kept = {"observations": observations, "actions": actions, "terminals": terminals}
    np.savez_compressed(path, **{name: np.array(part, np.float32) for name, part in kept.items()})  # type: ignore[arg-type]


if __name__ == "__main__":
    play(sys.argv[1])
