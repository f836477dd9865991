"""What is kept of each episode of an evaluation: one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from bilevel.demonstrations import manifest
from bilevel.demonstrations.json_objects import NUMBER, Keys, checked
from bilevel.experiments.contenders import Contender
from bilevel.experiments.evaluation import Run, Trial
from bilevel.policies.changes import KINDS, Changes
from bilevel.tabletop.tabletop import SUCCESS

_NONE = type(None)
RECORD: Keys = {
    "task": str,
    "method": str,
    "policy": (str, _NONE),
    "policy_digest": (str, _NONE),
    "policy_seed": (int, _NONE),
    "settings": dict,
    "objects": int,
    "episode": int,
    "seed": int,
    "noise": NUMBER,
    "arguments": dict,
    "outcome": str,
    "reason": (str, _NONE),
    "detail": (str, _NONE),
    "steps": int,
    "changes": dict,
    "versions": dict,
    "seconds": dict,
    "peak_mebibytes": (*NUMBER, _NONE),
}
# Keys that records did not always have.
LATER: Mapping[str, Any] = {"settings": {}, "detail": None, "peak_mebibytes": None}
BEGINNING = b'{"task": "'  # of every line
CHANGES: Keys = dict.fromkeys((*KINDS, "unexpected"), int)
SECONDS: Keys = {"policy": NUMBER, "physics": NUMBER}

# What results that belong together have in common, and what a person says where they do not.
IDENTITY = {
    "task": "another task",
    "method": "another method",
    "policy_digest": "another policy",
    "settings": "other settings of the method",
    "seed": "another --seed",
    "noise": "another --noise",
    "arguments": "other arguments of the world",
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
    settings: Mapping[str, Any]  # of the method
    objects: int
    episode: int
    seed: int  # of the world
    noise: float
    arguments: Mapping[str, Any]  # of the environment, besides the number of objects
    outcome: str
    reason: str | None  # why it did not succeed
    detail: str | None  # what the policy itself says about that
    steps: int
    changes: Changes
    versions: Mapping[str, str]
    seconds: Mapping[str, float] = field(compare=False)
    peak_mebibytes: float | None = field(default=None, compare=False)  # of the process that ran it

    @property
    def success(self) -> bool:
        return self.outcome == SUCCESS

    def line(self) -> str:
        counts = {**asdict(self.changes), "unexpected": self.changes.unexpected}
        return json.dumps({**asdict(self), "changes": counts}) + "\n"


def make_record(
    contender: Contender, trial: Trial, episode: int, run: Run, peak_mebibytes: float | None = None
) -> EpisodeRecord:
    return EpisodeRecord(
        task=trial.task,
        method=contender.method,
        policy=contender.policy,
        policy_digest=contender.digest,
        policy_seed=contender.seed,
        settings=dict(contender.settings),
        objects=trial.objects,
        episode=episode,
        seed=run.seed,
        noise=trial.noise,
        arguments=dict(trial.arguments),
        outcome=run.outcome,
        reason=run.reason,
        detail=run.detail,
        steps=run.steps,
        changes=run.changes,
        versions=versions(),
        seconds={name: round(seconds, 4) for name, seconds in asdict(run.seconds).items()},
        peak_mebibytes=peak_mebibytes,
    )


versions = cache(manifest.versions)


def read_record(line: str) -> EpisodeRecord:
    """`BadInput` where the line is not that of an episode."""
    found = json.loads(line)
    value = checked({**LATER, **found} if isinstance(found, dict) else found, RECORD, "the record")
    counts = dict(checked(value["changes"], CHANGES, "'changes'"))
    del counts["unexpected"]
    checked(value["seconds"], SECONDS, "'seconds'")
    return EpisodeRecord(**{**value, "changes": Changes(**counts)})
