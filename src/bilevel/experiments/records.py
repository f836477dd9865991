"""What is kept of each episode of an evaluation: one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bilevel.json_files import decode
from bilevel.methods.evaluated_policy import EvaluatedPolicy
from bilevel.policies.changes import Changes
from bilevel.policies.episode_run import EpisodeRun
from bilevel.tasks.scene_env import SUCCESS

BEGINNING = b'{"task": "'  # of every line

# What results that belong together have in common, and what a person says where they do not.
IDENTITY = {
    "task": "another task",
    "method": "another method",
    "policy_digest": "another policy",
    "settings": "other settings of the method",
    "seed": "another --seed",
    "noise": "another --noise",
    "arguments": "other --env-args",
    "versions": "other versions of bilevel or of what it uses",
}


@dataclass(frozen=True)
class EpisodeRecord:
    """How one episode went, and all that it depends on."""

    task: str
    method: str
    policy: str | None  # its folder, as it was given
    policy_digest: str | None
    policy_seed: int | None  # of learning it
    objects: int
    episode: int
    seed: int  # of the environment
    noise: float
    arguments: dict[str, Any]  # of the environment, besides the number of objects
    outcome: str
    reason: str | None  # why it did not succeed
    steps: int
    changes: Changes
    versions: dict[str, str]
    seconds: dict[str, float] = field(compare=False)
    settings: dict[str, Any] = field(default_factory=dict)  # of the method
    detail: str | None = None  # what the policy itself says about why it did not succeed
    peak_mebibytes: float | None = field(default=None, compare=False)  # of the process that ran it

    @property
    def success(self) -> bool:
        return self.outcome == SUCCESS

    def line(self) -> str:
        counts = {**asdict(self.changes), "unexpected": self.changes.unexpected}
        return json.dumps({**asdict(self), "changes": counts}) + "\n"


def make_record(
    policy: EvaluatedPolicy,
    task: str,
    run: EpisodeRun,
    *,
    objects: int,
    episode: int,
    noise: float = 0.0,
    arguments: Mapping[str, Any],
    versions: Mapping[str, str],
    peak_mebibytes: float | None = None,
) -> EpisodeRecord:
    """The record of an episode that this policy has just run."""
    return EpisodeRecord(
        task=task,
        method=policy.method,
        policy=policy.policy,
        policy_digest=policy.digest,
        policy_seed=policy.seed,
        settings=dict(policy.settings),
        objects=objects,
        episode=episode,
        seed=run.seed,
        noise=noise,
        arguments=dict(arguments),
        outcome=run.outcome,
        reason=run.reason,
        detail=run.detail,
        steps=run.steps,
        changes=run.changes,
        versions=dict(versions),
        seconds={name: round(seconds, 4) for name, seconds in run.seconds._asdict().items()},
        peak_mebibytes=peak_mebibytes,
    )


def read_record(line: bytes | str, where: object = "the record") -> EpisodeRecord:
    """`BadInput`, which says where it is, where the line is not that of an episode."""
    return decode(line, EpisodeRecord, f"{where}: not the result of an episode")
