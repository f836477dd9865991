"""`bilevel run --replay`: from the record of an evaluated episode to the options that run it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.records import Record

RECORDED = ("method", "seed", "noise", "recovery", "planner", "planning_seconds", "perception", "env_args")


@dataclass(frozen=True)
class _Settings:
    """What a record says of the options of a method; more may be there."""

    recovery: str | None = None
    planner: str | None = None
    planning_seconds: float | None = None
    estimation: str | None = None


def recorded_options(given: Mapping[str, Any]) -> tuple[dict[str, Any], Record]:
    """Return the options of `bilevel run` that run an episode as it was recorded, and the record.

    `given` are the options that a user gave. Among these may be what a record cannot say: where the task is, where the
    policy is now, whose estimation it was.
    """
    from bilevel.experiments.compare import find_record
    from bilevel.experiments.records import read_records
    from bilevel.json_files import decode
    from bilevel.methods.methods import EXPERT

    for name in RECORDED:
        if name in given:
            option = name.replace("_", "-")
            raise BadInput(f"--{option} does not go with --replay, which runs the episode as it was recorded")
    results: Path = given["replay"]
    record = find_record(read_records(results), results, given.get("objects"), given.get("episode"))
    settings = decode(json.dumps(record.settings), _Settings, f"{results}: the settings of the episode")
    options = {
        "replay": None,
        "episode": None,
        "task": _task(given.get("task"), results, record),
        "policy": given.get("policy", record.policy or EXPERT),
        "method": record.method,
        "objects": record.objects,
        "seed": record.seed,
        "noise": record.noise,
        "recovery": settings.recovery,
        "planner": settings.planner,
        "planning_seconds": settings.planning_seconds,
        "perception": record.perception,
        "estimation": given.get("estimation") or _estimation(settings),
        "env_args": tuple(f"{name}={json.dumps(value)}" for name, value in record.arguments.items()),
    }
    return options, record


def _task(given: str | None, results: Path, record: Record) -> str:
    """Where the task is: as it is given, else the one that is registered by the name in the record."""
    from bilevel.tasks.registry import find_task, registered_task

    if given is None and registered_task(record.task) is None:
        place = f"bilevel run file.py:task --replay {results}"
        raise BadInput(f"the episode is of the task '{record.task}', which is not registered here; say where: {place}")
    if given is not None and find_task(given).name != record.task:
        raise BadInput(f"the episode is of the task '{record.task}', not of '{find_task(given).name}'")
    return given or record.task


def _estimation(settings: _Settings) -> str | None:
    if settings.estimation not in (None, "off"):
        raise BadInput("the episode was run with the state estimation of another policy: name its folder: --estimation")
    return settings.estimation
