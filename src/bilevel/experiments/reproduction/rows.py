"""What was found, in a few lines of JSON: one for each row of the table, task and seed, one for each large problem.

The report is made of these lines alone, but for its films. They are small enough to be kept with a project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.expressions import read_text


@dataclass(frozen=True)
class Size:
    """All episodes with one number of objects."""

    objects: int
    episodes: int
    successes: int
    reasons: Mapping[str, int]  # of the failures, the commonest first
    mean_steps: float | None  # of the successes
    policy_microseconds: float | None  # for each step, with labels and all planning
    physics_microseconds: float | None
    peak_mebibytes: float | None  # of a process of its own for an episode, where that was measured


@dataclass(frozen=True)
class Training:
    """How the network came about. Methods may share one, and its cost."""

    seconds: float  # of the process that trained it, labels and DAgger included
    peak_mebibytes: float | None
    device: str  # cpu or cuda
    networks: int  # that were trained side by side in these seconds
    epochs: int
    samples: int
    validation_loss: float
    machine: Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """A row of the table on one task, with one seed."""

    task: str
    entrant: str  # in `VARIANTS`
    method: str
    recipe: str | None
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


@dataclass(frozen=True)
class Scaling:
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


@dataclass(frozen=True)
class About:
    """What the rows have in common."""

    experiment: Mapping[str, Any]
    command: str
    machines: Sequence[Mapping[str, Any]]  # that took part
    failures: Sequence[Mapping[str, str]]  # work that failed twice: unit, error
    rules: Mapping[str, str]  # the text of the rules that were learned, by task


KINDS: Mapping[str, type[Any]] = {"about": About, "row": Finding, "scaling": Scaling}


@dataclass(frozen=True)
class Findings:
    """All that was found in an experiment."""

    about: About
    rows: Sequence[Finding]
    scaling: Sequence[Scaling]

    def lines(self) -> str:
        """Return one line of JSON for each of them."""
        kinds = {kind: name for name, kind in KINDS.items()}
        found: Iterable[About | Finding | Scaling] = (self.about, *self.rows, *self.scaling)
        return "".join(f"{json.dumps({'kind': kinds[type(line)], **asdict(line)})}\n" for line in found)


def read_findings(path: Path) -> Findings:
    """Read what `Findings.lines` wrote; `BadInput` for anything else."""
    return parse_findings(read_text(path).splitlines(), str(path))


def parse_findings(lines: Iterable[str], where: str) -> Findings:
    found: dict[str, list[Any]] = {name: [] for name in KINDS}
    for number, line in enumerate(lines, 1):
        with refusing(f"{where}, line {number}: not a line that `bilevel reproduce` wrote"):
            value = msgspec.json.decode(line)
            found[value["kind"]].append(msgspec.convert(value, KINDS[value["kind"]]))
    if len(found["about"]) != 1:
        raise BadInput(f"{where}: a line that says how it was made is missing")
    return Findings(found["about"][0], found["row"], found["scaling"])


@contextmanager
def refusing(message: str) -> Iterator[None]:
    """Raise `BadInput` with this message where JSON is not what is read there."""
    try:
        yield
    except (msgspec.MsgspecError, KeyError, TypeError, RecursionError):
        raise BadInput(message) from None


Row = Finding
