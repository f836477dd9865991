"""A bilevel policy made of parts: python examples/own_policy.py [POLICY]

A program of your own decides. What moves the hand is the network of a learned policy, if its folder is given, and
otherwise the expert's hand-written skills.
"""

from __future__ import annotations

import sys
from typing import Any

import bilevel

SEED = 1
STEPS = 4096  # at most


class FirstOpenGoal(bilevel.HighLevelPolicy):
    """Place the block in hand where it belongs, else pick the first one that is not there."""

    def choose(self, state: frozenset[bilevel.Atom], goal: frozenset[bilevel.Atom]) -> bilevel.Action | None:
        missing = [fact.terms for fact in sorted(goal - state)]
        for block, place in missing:
            if bilevel.Atom("holding", (block,)) in state:
                return bilevel.Action("place", (block, place))
        return bilevel.Action("pick", missing[0][:1]) if missing else None


class Skills:
    """The expert's own low level."""

    def __init__(self, expert: bilevel.Expert) -> None:
        assert expert.control is not None
        self._control = expert.control

    def control(self, scene: bilevel.Scene, state: object, goal: object, action: bilevel.Action) -> Any:
        return self._control(scene, action)


def main(folder: str | None) -> None:
    task = bilevel.find_task("blocks")
    env = task.make_env(objects=2)
    expert = task.expert_for(env)
    assert expert is not None
    low = bilevel.load_policy(folder, task).low if folder else Skills(expert)
    policy = bilevel.BilevelPolicy(task.labels, FirstOpenGoal(), low)

    observation, info = env.reset(seed=SEED)
    scene, doing = task.perceive(observation, info, env), None
    for step in range(STEPS):
        control = policy.act(scene)
        if policy.action != doing:
            doing = policy.action
            print(f"{step:5}  {doing}")
        observation, _, terminated, truncated, info = env.step(control)
        scene = task.perceive(observation, info, env)
        if terminated or truncated:
            break
    print(f"{step + 1:5}  {'success' if info['success'] else 'no success'}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
