"""Findings made up for tests: as many as a test needs, with numbers that look like those of a real run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bilevel.experiments.machines import Machine
from bilevel.experiments.paper import TASKS
from bilevel.experiments.reproduction.findings import About, Finding, Findings, Size, Training
from bilevel.experiments.reproduction.folder import Experiment
from bilevel.experiments.reproduction.large_problems import Scaling
from bilevel.experiments.reproduction.variants import PAPERS_ROWS, VARIANTS

BLOCKS_RULES = """# Rules for the domain blocks
variables: ?b - block, ?p - place

1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)
"""
VERSIONS = {"bilevel": "0.1.0", "python": "3.11.7", "mujoco": "3.4.0"}
MACHINE: Machine = {"cpu": "AMD EPYC", "cores": 2, "system": "Linux"}
TRAINING = Training(
    seconds=60.0,
    peak_mebibytes=900.0,
    device="cpu",
    networks=1,
    machine=MACHINE,
    versions={"torch": "2.9.0"},
    epochs=200,
    samples=71_056,
    validation_loss=0.009,
)
CAUSES = {"det-plan": "plan broken", "ndt-plan": "plan broken", "pddl-nn": "stall", "pure-nn": "stall"}
# How much of an episode is lost with each object, roughly, and in the noisy twins.
DECAY = {"det-plan": (0.06, 0.16), "ndt-plan": (0.02, 0.14), "pddl-nn": (0.08, 0.1), "pure-nn": (0.16, 0.18)}


def about(**changes: Any) -> About:
    given = About(Experiment(), "bilevel reproduce --output build/all", [MACHINE], [], {"blocks": BLOCKS_RULES})
    return replace(given, **changes)


def size(objects: int, successes: int, episodes: int = 10, cause: str = "stall", microseconds: float = 100.0) -> Size:
    lost = episodes - successes
    steps = 85.0 * objects if successes else None
    return Size(objects, episodes, successes, {cause: lost} if lost else {}, steps, microseconds, 230.0, 400.0)


def row(task: str, variant: str, seed: int, sizes: Sequence[Size], **changes: Any) -> Finding:
    known = VARIANTS[variant]
    training = TRAINING if known.preset else None
    network = known.training(task, seed)
    digest = hashlib.sha256(network.policy.encode()).hexdigest() if network else None
    return replace(
        Finding(task, variant, known.method, known.preset, seed, sizes, training, [], {}, digest, VERSIONS), **changes
    )


def scaling(task: str, solver: str, objects: int, seconds: float, timed_out: bool = False) -> Scaling:
    actions = 0 if timed_out else 2 * objects
    return Scaling(task, solver, objects, seconds, not timed_out, timed_out, actions, 45.5, VERSIONS, MACHINE)


def large_problems(task: str = "blocks") -> list[Scaling]:
    rules = [scaling(task, "rules", n, 4e-5 * n + 0.002) for n in (10, 100, 1000, 10_000)]
    return [
        *rules,
        scaling(task, "lama", 10, 0.16),
        scaling(task, "lama", 100, 2.0),
        scaling(task, "lama", 1000, 100.0, True),
    ]


def successes(variant: str, task: str, seed: int, objects: int, episodes: int) -> int:
    """Some number that falls with the number of objects."""
    if variant not in DECAY:
        planned = variant.endswith("plan") and task.startswith("gacha")
        return 0 if planned else episodes
    if task.startswith("gacha") and variant != "pure-nn":
        return episodes if variant == "pddl-nn" else 0
    lost = DECAY[variant][task.endswith("-noisy")] * (objects - 1) + 0.03 * (seed - 1)
    return max(0, min(episodes, round(episodes * (1 - lost * 1.4))))


def run_like(
    tasks: Sequence[str] = tuple(TASKS),
    variants: Sequence[str] = PAPERS_ROWS,
    objects: Sequence[int] = tuple(range(1, 11)),
    seeds: Sequence[int] = (0, 1, 2),
    episodes: int = 10,
    changes: Mapping[str, Any] | None = None,
) -> Findings:
    """As a run of `bilevel reproduce` might find it."""
    rows = []
    for task in tasks:
        for number, variant in enumerate(variants):
            for seed in seeds:
                cause = "no model" if task.startswith("gacha") and "plan" in variant else CAUSES.get(variant, "time")
                sizes = [
                    size(n, successes(variant, task, seed, n, episodes), episodes, cause, 90.0 + 40 * number + n)
                    for n in objects
                ]
                rows.append(row(task, variant, seed, sizes))
    return Findings(about(**(changes or {})), rows, large_problems())
