"""CPU microseconds of a step and of its parts, in a process of its own: a line of JSON for each number of objects.

    python benchmarks/step_timing.py blocks 3 10

The expert's episode is recorded before the clock starts. Then its controls are carried out, its scenes are labelled and
the golden rules choose, and a network with random weights computes what it would do: each part alone, and all together.
The package may be that of another commit, whose environments gave observations instead of scenes; see `PYTHONPATH`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GOLDEN = Path(__file__).parents[1] / "tests" / "rules" / "golden"
SEED = 3
STEPS = 1000  # of an episode, at most
ROUNDS = 3  # of which the quickest counts


class Parts(NamedTuple):
    """What is timed. Policies act on what `step` and `reset` return, and `network` has the arguments of a low level."""

    reset: Callable[[], Any]
    step: Callable[[Any], Any]
    record: Callable[[Callable[[Any, Any], None]], Any]  # runs the expert, and hands over what it sees and does
    make_policy: Callable[[Any], Any]  # from a low level
    network: Any


class Idle:
    """A low level that does nothing, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def control(self, *arguments: Any) -> int:
        self.asked.append(arguments)
        return 0


def parts(task_name: str, objects: int) -> Parts:
    """Return those of this commit."""
    from bilevel.lowlevel.encoding import encoding_of
    from bilevel.lowlevel.numpy_network import NumpyNetwork, weight_shapes
    from bilevel.policies.policy import BilevelPolicy, expert_policy
    from bilevel.policies.rollout import rollout
    from bilevel.rules.rule_file import read_rules
    from bilevel.rules.rule_policy import RulePolicy
    from bilevel.tasks.registry import find_task
    from bilevel.tasks.scene_env import SceneEnv

    task = find_task(task_name)
    env = SceneEnv(task, objects)
    rules = read_rules(GOLDEN / f"{task.domain.name}.rules")
    encoding = encoding_of(task.domain, task.spec)
    shapes = weight_shapes(encoding, env.controls, 64, 2)
    return Parts(
        reset=lambda: env.reset(SEED),
        step=env.step,
        record=lambda note: rollout(
            env, expert_policy(env), SEED, callback=lambda step: note(step.scene, step.executed)
        ),
        make_policy=lambda low: BilevelPolicy(env.labels, RulePolicy(rules, task.domain), low),
        network=NumpyNetwork(encoding, env.controls, random_weights(shapes), 2),
    )


def earlier_parts(task_name: str, objects: int) -> Parts:
    """Return those of commits before tasks were values."""
    policies, rollout = import_module("bilevel.execution.policies"), import_module("bilevel.execution.rollout")
    architecture_of, encoding = (
        import_module("bilevel.lowlevel.architecture"),
        import_module("bilevel.lowlevel.encoding"),
    )
    rule_file, rule_policy = import_module("bilevel.rules.rule_file"), import_module("bilevel.rules.rule_policy")
    task = import_module("bilevel.tasks").find_task(task_name)
    env = task.make(objects)
    rules = rule_file.read_rules(GOLDEN / f"{task.domain.name}.rules").rules
    architecture = architecture_of.Architecture(encoding.encoding_of(task.domain))
    layers = architecture.layers.items()
    shapes = {f"{name}.weight": shape for name, shape in layers} | {f"{name}.bias": shape[1:] for name, shape in layers}
    gnn_policy = import_module("bilevel.lowlevel.gnn_policy")

    def record(note: Callable[[Any, Any], None]) -> Any:
        expert = task.expert(env.slots)
        return rollout.rollout(env, expert, SEED, watch=lambda moment: note(moment.observation, moment.executed))

    return Parts(
        reset=lambda: env.reset(seed=SEED)[0],
        step=lambda control: env.step(control)[0],
        record=record,
        make_policy=lambda low: policies.BilevelPolicy(
            task.labels(env.slots), rule_policy.RulePolicy(rules, task.domain), low
        ),
        network=gnn_policy.GnnPolicy(architecture, random_weights(shapes), env.slots),
    )


def random_weights(shapes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        name: np.ones(shape, np.float32) if len(shape) == 1 else rng.normal(scale=0.1, size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def microseconds(steps: int, prepare: Callable[[], Any], run: Callable[[Any], None]) -> float:
    """Return the CPU time of a step, of the quickest of some rounds."""
    seconds = []
    for _ in range(ROUNDS):
        prepared = prepare()
        began = time.process_time()
        run(prepared)
        seconds.append(time.process_time() - began)
    return 1e6 * min(seconds) / steps


def measure(found: Parts) -> dict[str, float]:
    seen: list[Any] = []
    controls: list[Any] = []

    def note(scene: Any, control: Any) -> None:
        if len(controls) < STEPS:
            seen.append(scene)
            controls.append(control)

    found.record(note)
    idle = Idle()
    idle_policy, policy = found.make_policy(idle), found.make_policy(found.network)
    idle_policy.reset(seen[0])
    for scene in seen:
        idle_policy.act(scene)
    situations = list(idle.asked)

    def carry_out(_: Any) -> None:
        for control in controls:
            found.step(control)

    def choose(_: Any) -> None:
        for scene in seen:
            idle_policy.act(scene)

    def compute(_: Any) -> None:
        for situation in situations:
            found.network.control(*situation)

    def do_all(scene: Any) -> None:
        policy.reset(scene)
        for control in controls:
            policy.act(scene)
            scene = found.step(control)

    steps = len(controls)
    return {
        "steps": steps,
        "environment": microseconds(steps, found.reset, carry_out),
        "labels and choice": microseconds(steps, lambda: idle_policy.reset(seen[0]), choose),
        "network": microseconds(steps, lambda: None, compute),
        "step": microseconds(steps, found.reset, do_all),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("objects", type=int, nargs="+")
    given = parser.parse_args()
    make = parts if find_spec("bilevel.lowlevel.numpy_network") else earlier_parts
    for objects in given.objects:
        print(json.dumps({"objects": objects, **measure(make(given.task, objects))}), flush=True)


if __name__ == "__main__":
    main()
