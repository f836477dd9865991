"""Watch an expert at work, go back to an earlier timestep, run several worlds at once: python examples/worlds.py"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv

from bilevel.policies.policy import Policy, expert_policy
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Snapshot

SAVED_AT = 100  # steps


def watch(env: SceneEnv, expert: Policy, seed: int) -> tuple[Snapshot, Scene]:
    """Run an episode and print what the expert does and what happens; a snapshot from its middle, and its end."""
    expert.reset(env.reset(seed))
    action, snapshot = None, env.save()
    while not env.outcome:
        control = expert.act(env.scene)
        for event in env.events:
            print(f"{env.steps:5}  ({event})")
        if expert.action != action:
            action = expert.action
            print(f"{env.steps:5}  {action}")
        if env.steps == SAVED_AT:
            snapshot = env.save()
        env.step(control)
    print(f"{env.steps:5}  {env.outcome}")
    return snapshot, env.scene


def go_on(env: SceneEnv, expert: Policy, snapshot: Snapshot) -> Scene:
    """Run the rest of an episode from a snapshot; what is seen at its end."""
    expert.reset(env.restore(snapshot))
    while not env.outcome:
        env.step(expert.act(env.scene))
    return env.scene


def make_blocks() -> gymnasium.Env[Any, Any]:
    """Runs in another process, where nobody has registered the worlds; hence the module before the colon."""
    return gymnasium.make("bilevel.tabletop.gymnasium_ids:bilevel/Blocks-v0", objects=2)


def race(seeds: list[int]) -> list[int]:
    """Let an expert act in each of several worlds, which run in processes of their own; how many steps they take."""
    worlds = AsyncVectorEnv([make_blocks] * len(seeds))
    slots = worlds.get_attr("slots")[0]  # what is in which row, the same in all of them
    expert = expert_policy(SceneEnv(find_task("blocks"), objects=2))  # it has no memory, so one will do
    observations, _ = worlds.reset(seed=[*seeds])
    steps = np.zeros(len(seeds), int)
    running = np.ones(len(seeds), bool)
    while running.any():
        controls = np.zeros((len(seeds), 4), np.float32)
        for number in np.flatnonzero(running):
            scene = slots.scene({name: array[number] for name, array in observations.items()})
            controls[number] = expert.act(scene)
        observations, _, terminated, truncated, _ = worlds.step(controls)
        steps += running
        running &= ~(terminated | truncated)
    worlds.close()
    return [int(count) for count in steps]


def main() -> None:
    env = SceneEnv(find_task("factory"), objects=2)
    expert = expert_policy(env)

    scene = env.reset(seed=0)
    print("The goal:", *sorted(env.labels.goal(scene)))
    print("What holds:", *sorted(env.labels.state(scene)))
    block = scene["block1"]
    print(f"block1 is at ({block.x:.3f}, {block.y:.3f}, {block.z:.3f})\n")

    snapshot, end = watch(env, expert, seed=0)
    same = go_on(env, expert, snapshot) == end
    print(f"\nFrom step {SAVED_AT} once more: it ends {'the same, bit for bit' if same else 'otherwise'}")

    print("Three worlds at once take", *race([0, 1, 2]), "steps")
    env.close()


if __name__ == "__main__":
    main()
