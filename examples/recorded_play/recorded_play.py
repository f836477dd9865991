"""From recorded arrays alone: OGBench's play data, flat vectors and actions, without goals, scenes or an expert.

    python recorded_play.py play.npz  # plays as OGBench's own data sets were made; or take one of those
    bilevel import play.npz --task recorded_play.py:task --perceive recorded_play.py:from_vector \\
        --hindsight recorded_play.py:hindsight --output play
    bilevel learn play --task recorded_play.py:task --epochs 30 --output policy
    bilevel run recorded_play.py:task --policy policy --objects 8
"""

import sys
from collections.abc import Iterator, Sequence
from math import dist
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import ogbench  # noqa: F401  (registers the environments)
from gymnasium import spaces
from ogbench.manipspace.oracles.markov.cube_markov import CubeMarkovOracle

from bilevel import Angle, Atom, Position, Scalar, Scene, Spec, Task, read_domain

NAMES = {1: "single", 2: "double", 3: "triple", 4: "quadruple"}
PLACE: dict[str, Any] = {"x": Position, "y": Position, "z": Position}
HAND = PLACE | {"z": Position(absolute=True), "yaw": Angle(symmetry=2), "closed": Scalar, "contact": Scalar}
SPEC = Spec(HAND, {"cube": PLACE | {"yaw": Angle(symmetry=4)}, "spot": PLACE})


# What is seen


def from_vector(vector: Any, spots: Sequence[tuple[int, Any]] = ()) -> Scene:
    """The scene in a recorded vector: 12 numbers of joints, the hand, nine for each cube; and spots for some cubes."""
    hand, cubes = vector[12:19], vector[19:].reshape(-1, 9)
    agent = place(hand[:3] / 10 + [0.425, 0, 0]) | {"yaw": np.arctan2(hand[4], hand[3]), "closed": hand[5] / 3}
    seen = {
        f"cube{number}": place(cube[:3] / 10 + [0.425, 0, 0]) | {"yaw": np.arctan2(cube[8], cube[7])}
        for number, cube in enumerate(cubes)
    }
    targets = {f"spot{number}": place(spot) for number, spot in spots}
    return Scene(SPEC, agent | {"contact": hand[6]}, {"cube": seen, "spot": targets})


def place(xyz: Any) -> dict[str, float]:
    return dict(zip("xyz", xyz, strict=True))


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    hand, cubes = scene.agent, list(scene.of_type("cube"))
    nearest = min(cubes, key=lambda cube: apart(cube, hand))
    holds = hand.closed > 0.45 and hand.contact > 0.1 and apart(nearest, hand) < 0.035
    yield Atom("holding", (nearest.name,)) if holds else Atom("free")
    lying = [cube for cube in cubes if not (holds and cube.name == nearest.name)]
    yield from (Atom("lying", (cube.name,)) for cube in lying)
    for spot in scene.of_type("spot"):
        there = [cube.name for cube in lying if apart(cube, spot) < 0.04]
        yield from [Atom("at", (cube, spot.name)) for cube in there] or [Atom("open", (spot.name,))]


def apart(one: Any, other: Any) -> float:
    return dist((one.x, one.y, one.z), (other.x, other.y, other.z))


def goal(scene: Scene) -> Iterator[Atom]:
    """Each cube that has a spot shall be there."""
    return (Atom("at", (spot.name.replace("spot", "cube"), spot.name)) for spot in scene.of_type("spot"))


# What was wanted


def hindsight(scenes: Sequence[Scene]) -> Iterator[tuple[int, int, list[Scene]]]:
    """Where a cube is let go, and not taken again at once, it came to rest: that was its spot."""
    held = [next((fact.terms[0] for fact in label(scene) if fact.predicate == "holding"), None) for scene in scenes]
    start = 0
    for now in range(1, len(scenes) - 5):
        if held[now - 1] and not any(held[now : now + 5]):
            cube = scenes[now + 5][str(held[now - 1])]
            spot = {cube.name.replace("cube", "spot"): place((cube.x, cube.y, cube.z))}
            yield start, now + 5, [with_spots(scene, spot) for scene in scenes[start : now + 6]]
            start = now  # how the hand leaves is part of what it does next


def with_spots(scene: Scene, spots: dict[str, dict[str, float]]) -> Scene:
    cubes = {cube.name: {name: cube[name] for name in SPEC.objects["cube"]} for cube in scene.of_type("cube")}
    return Scene(SPEC, {name: scene.agent[name] for name in SPEC.agent}, {"cube": cubes, "spot": spots})


# Where it is tried: other layouts, with a spot for each cube


class Layouts(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Cubes and their spots anywhere, apart from each other; the vector comes with where the spots are."""

    def __init__(self, objects: int, **arguments: Any) -> None:
        env = gymnasium.make(f"cube-{NAMES.get(objects, 'octuple')}-v0", max_episode_steps=400 * objects, **arguments)
        env.unwrapped._num_cubes = self.objects = objects  # type: ignore[attr-defined]
        super().__init__(env)
        seen = env.observation_space.shape, (objects, 3)
        self.observation_space = spaces.Tuple([spaces.Box(-np.inf, np.inf, shape, np.float64) for shape in seen])
        self.action_space = spaces.Box(-1, 1, (5,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        rng, spots = np.random.default_rng(seed), np.zeros((0, 3))
        while len(spots) < 2 * self.objects:
            spot = rng.uniform([0.3, -0.3, 0.02], [0.55, 0.3, 0.02])
            if not (np.linalg.norm(spots - spot, axis=1) < 0.085).any():
                spots = np.vstack([spots, spot])
        init, self.spots = spots[: self.objects], spots[self.objects :]
        np.random.seed(None if seed is None else seed % 2**32)  # OGBench draws from there, too
        task = {"task_name": "layout", "init_xyzs": init, "goal_xyzs": self.spots}
        vector, info = self.env.reset(seed=seed, options={"task_info": task})
        return (vector, self.spots), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        vector, reward, _, truncated, info = self.env.step(action)
        del info["success"]  # which is said while the hand still holds the cube
        return (vector, self.spots), reward, False, truncated, info


def perceive(observation: Any, info: dict[str, Any], env: Any) -> Scene:
    vector, spots = observation
    return from_vector(vector, list(enumerate(spots)))


task = Task(
    "recorded-play",
    read_domain(Path(__file__).with_name("cubes.pddl")),
    Layouts,
    SPEC,
    perceive,
    label,
    goal,
    max_objects=8,
    steps_per_object=400,
    switches=[4],
    packages=["ogbench", "mujoco"],
)


def play(path: str, episodes: int = 30, steps: int = 500) -> None:
    """Record what OGBench's own oracle does, with noise, in its mode for data; keep what its data sets keep."""
    env = gymnasium.make("cube-triple-v0", mode="data_collection", max_episode_steps=steps + 1)
    rng, rows = np.random.default_rng(0), []
    for episode in range(episodes):
        vector, info = env.reset(seed=episode)
        np.random.seed(episode)
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
