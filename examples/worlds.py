"""Watch an expert at work, go back to an earlier moment, run several worlds at once: python examples/worlds.py"""

from __future__ import annotations

from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv
from numpy.typing import NDArray

import bilevel.tabletop  # noqa: F401 (registers the worlds)
from bilevel.policies.policies import BilevelPolicy
from bilevel.tabletop.observation import Observation, features
from bilevel.tabletop.tabletop import Snapshot, Tabletop
from bilevel.tabletop.tasks import find_task

SAVED_AT = 100  # steps


def watch(world: Tabletop, expert: BilevelPolicy, seed: int) -> tuple[Snapshot, Observation]:
    """Run an episode and print what the expert does and what happens; a snapshot from its middle, and its end."""
    observation, info = world.reset(seed=seed)
    expert.reset(observation)
    action, step, snapshot = None, 0, world.save()
    while not info["outcome"]:
        control = expert.act(observation)
        assert control is not None, "the expert always knows what to do"
        for event in info["events"]:
            print(f"{step:5}  ({event})")
        if expert.action != action:
            action = expert.action
            print(f"{step:5}  {action}")
        if step == SAVED_AT:
            snapshot = world.save()
        observation, _, _, _, info = world.step(control)
        step += 1
    print(f"{step:5}  {info['outcome']}")
    return snapshot, observation


def go_on(world: Tabletop, expert: BilevelPolicy, snapshot: Snapshot) -> Observation:
    """Run the rest of an episode from a snapshot; what is seen at its end."""
    observation, info = world.restore(snapshot)
    expert.reset(observation)
    while not info["outcome"]:
        control = expert.act(observation)
        assert control is not None
        observation, _, _, _, info = world.step(control)
    return observation


def make_blocks() -> gymnasium.Env[Any, Any]:
    """Runs in another process, where nobody has imported the worlds; hence the module before the colon."""
    return gymnasium.make("bilevel.tabletop:bilevel/Blocks-v0", objects=2)


def race(seeds: list[int]) -> list[int]:
    """Let an expert act in each of several worlds, which run in processes of their own; how many steps they take."""
    worlds = AsyncVectorEnv([make_blocks] * len(seeds))
    experts = [find_task("blocks").expert(slots) for slots in worlds.get_attr("slots")]
    observations, _ = worlds.reset(seed=[*seeds])
    for number, expert in enumerate(experts):
        expert.reset(one_of(observations, number))
    steps = np.zeros(len(seeds), int)
    running = np.ones(len(seeds), bool)
    while running.any():
        controls = np.zeros((len(seeds), 4), np.float32)
        for number, expert in enumerate(experts):
            if running[number]:
                controls[number] = expert.act(one_of(observations, number))
        observations, _, terminated, truncated, _ = worlds.step(controls)
        steps += running
        running &= ~(terminated | truncated)
    worlds.close()
    return [int(count) for count in steps]


def one_of(observations: dict[str, NDArray[Any]], number: int) -> Observation:
    """What one of several worlds shows."""
    return cast(Observation, {name: array[number] for name, array in observations.items()})


def main() -> None:
    world = cast(Tabletop, gymnasium.make("bilevel/Factory-v0", objects=2).unwrapped)
    expert = find_task("factory").expert(world.slots)

    observation, info = world.reset(seed=0)
    print("The goal:", *sorted(info["goal"]))
    print("What holds:", *sorted(expert.labels.state(observation)))
    x, y, z = (features(world.slots, observation, "block1")[axis] for axis in "xyz")
    print(f"block1 is at ({x:.3f}, {y:.3f}, {z:.3f})\n")

    snapshot, end = watch(world, expert, seed=0)
    again = go_on(world, expert, snapshot)
    same = all(np.array_equal(end[name], again[name]) for name in ("agent", "objects", "visible"))
    print(f"\nFrom step {SAVED_AT} once more: it ends {'the same, bit for bit' if same else 'otherwise'}")

    print("Three worlds at once take", *race([0, 1, 2]), "steps")
    world.close()


if __name__ == "__main__":
    main()
