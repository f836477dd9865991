"""What was found, in a few lines of JSON: one for each row of the table, task and seed, one for each large problem.

The report is made of these lines alone, but for its films. They are small enough to be kept with a project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bilevel.json_files import decode
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.expressions import read_text


class Size(msgspec.Struct, frozen=True):
    """All episodes with one number of objects."""

    objects: int
    episodes: int
    successes: int
    reasons: Mapping[str, int]  # of the failures, the commonest first
    mean_steps: float | None  # of the successes
    policy_microseconds: float | None  # for each step, with labels and all planning
    physics_microseconds: float | None
    peak_mebibytes: float | None  # of a process of its own for an episode, where that was measured


class Training(msgspec.Struct, frozen=True):
    """How the network came about. Methods may share one, and its cost."""

    seconds: float  # of the process that trained it, labels and DAgger included
    peak_mebibytes: float | None
    device: str  # cpu or cuda
    networks: int  # that were trained side by side in these seconds
    epochs: int
    samples: int
    validation_loss: float
    machine: Mapping[str, Any]


RENAMED = {"variant": "entrant", "preset": "recipe"}  # what fields are called in files


class Finding(msgspec.Struct, frozen=True, tag_field="kind", tag="row", rename=RENAMED):
    """A row of the table on one task, with one seed."""

    task: str
    variant: str  # in `VARIANTS`
    method: str
    preset: str | None
    seed: int
    sizes: Sequence[Size]
    training: Training | None
    details: Sequence[str]  # what policies said about failures of theirs, at most three
    settings: Mapping[str, Any]  # of the method
    digest: str | None  # of the policy
    versions: Mapping[str, str]

    @property
    def successes(self) -> int:
        return sum(size.successes for size in self.sizes)

    @property
    def episodes(self) -> int:
        return sum(size.episodes for size in self.sizes)


class Scaling(msgspec.Struct, frozen=True, tag_field="kind", tag="scaling"):
    """How long a large problem took, symbols alone."""

    task: str
    solver: str  # rules or lama
    objects: int
    seconds: float  # on one core
    solved: bool
    timed_out: bool
    actions: int
    peak_mebibytes: float
    versions: Mapping[str, str]
    machine: Mapping[str, Any]


class About(msgspec.Struct, frozen=True, tag_field="kind", tag="about"):
    """What the rows have in common."""

    experiment: Mapping[str, Any]
    command: str
    machines: Sequence[Mapping[str, Any]]  # that took part
    failures: Sequence[Mapping[str, str]]  # work that failed twice: unit, error
    rules: Mapping[str, str]  # the text of the rules that were learned, by task


Line = About | Finding | Scaling


class Findings(msgspec.Struct, frozen=True):
    """All that was found in an experiment."""

    about: About
    rows: Sequence[Finding]
    scaling: Sequence[Scaling]

    def lines(self) -> str:
        """Return one line of JSON for each of them."""
        found: Iterable[Line] = (self.about, *self.rows, *self.scaling)
        return "".join(f"{json.dumps(msgspec.to_builtins(line))}\n" for line in found)


def read_findings(path: Path) -> Findings:
    """Read what `Findings.lines` wrote; `BadInput` for anything else."""
    return parse_findings(read_text(path).splitlines(), str(path))


def parse_findings(lines: Iterable[str], where: str) -> Findings:
    """Read lines; `BadInput`, which says where they come from, for any that `bilevel reproduce` has not written."""
    kind: Any = Line
    found: list[Line] = [
        decode(line, kind, f"{where}, line {number}: not a line that `bilevel reproduce` wrote")
        for number, line in enumerate(lines, 1)
    ]
    about = [line for line in found if isinstance(line, About)]
    if len(about) != 1:
        raise BadInput(f"{where}: a line that says how it was made is missing")
    rows = [line for line in found if isinstance(line, Finding)]
    return Findings(about[0], rows, [line for line in found if isinstance(line, Scaling)])
