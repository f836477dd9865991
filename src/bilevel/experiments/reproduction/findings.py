"""What was found, in a few lines of JSON: one for each row of the table, task and seed, one for each large problem.

The report is made of these lines alone, but for its films. They are small enough to be kept with a project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bilevel.experiments.machines import Machine
from bilevel.experiments.reproduction.completeness import Asked, missing_episodes, missing_problems
from bilevel.experiments.reproduction.folder import (
    Experiment,
)
from bilevel.experiments.reproduction.large_problems import Scaling
from bilevel.experiments.reproduction.units import Cost
from bilevel.json_files import Amount, Count, Plain, decode
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.expressions import read_text


class Size(msgspec.Struct, frozen=True):
    """All episodes with one number of objects."""

    objects: Count
    episodes: Count
    successes: Count
    reasons: Mapping[str, Count]  # of the failures, the commonest first
    mean_steps: Amount | None  # of the successes
    policy_microseconds: Amount | None  # for each step, with labels and all planning
    physics_microseconds: Amount | None
    peak_mebibytes: Amount | None  # of a process of its own for an episode, where that was measured


class Training(Cost, frozen=True, kw_only=True):
    """How the network came about. Methods may share one, and its cost."""

    epochs: Count
    updates: Count = 0  # of cloning, where their number was given; else they are one pass over the samples an epoch
    learning_rate: Amount = 1e-3  # at first
    samples: Count
    validation_loss: float
    parameters: Count | None = None  # that were learned, where it is known


RENAMED = {"variant": "entrant", "preset": "recipe"}  # what fields are called in files


class Finding(msgspec.Struct, frozen=True, tag_field="kind", tag="row", rename=RENAMED):
    """A row of the table on one task, with one seed."""

    task: str
    variant: str  # in `VARIANTS`
    method: str
    preset: str | None
    seed: Count
    sizes: Annotated[Sequence[Size], msgspec.Meta(min_length=1)]
    training: Training | None
    details: Sequence[str]  # what policies said about failures of theirs, at most three
    settings: Mapping[str, Plain]  # of the method
    digest: str | None  # of the policy
    versions: Mapping[str, str]

    @property
    def successes(self) -> int:
        """How many episodes of all sizes succeeded."""
        return sum(size.successes for size in self.sizes)

    @property
    def episodes(self) -> int:
        """How many episodes of all sizes were run."""
        return sum(size.episodes for size in self.sizes)


class Failure(msgspec.Struct, frozen=True):
    """Work that failed twice."""

    unit: str
    error: str


class About(msgspec.Struct, frozen=True, tag_field="kind", tag="about"):
    """What the rows have in common."""

    experiment: Experiment
    command: str
    machines: Sequence[Machine]  # that took part
    failures: Sequence[Failure]  # work that failed twice
    rules: Mapping[str, str]  # the text of the rules that were learned, by task
    dates: Sequence[str] = ()  # the days on which runs were started, in their order
    left_out: Sequence[str] = ()  # files of the folder that are damaged, or of a policy that is there no more
    asked: Sequence[Asked] = ()  # what runs were asked for; nothing where that was not kept


Line = About | Finding | Scaling


class Findings(msgspec.Struct, frozen=True):
    """All that was found in an experiment."""

    about: About
    rows: Sequence[Finding]
    scaling: Sequence[Scaling]

    def missing(self) -> list[str]:
        """Return what was asked for and is not there, a sentence each; ask `about.asked` whether that is known."""
        episodes = {
            (row.task, row.variant, row.seed, size.objects): size.episodes for row in self.rows for size in row.sizes
        }
        memory = {(row.task, row.variant) for row in self.rows for size in row.sizes if size.peak_mebibytes is not None}
        problems = {(one.task, one.solver, one.objects) for one in self.scaling}
        lines: dict[str, None] = {}
        for asked in self.about.asked:
            for (task, row), (there, wanted) in missing_episodes(asked, episodes).items():
                lines[f"{row} on {task}: {there or 'none'} of {wanted} episodes."] = None
            for task, rows in asked.memory.items():
                if unmeasured := [row for row in rows if (task, row) not in memory]:
                    lines[f"Memory on {task}: {', '.join(unmeasured)}."] = None
            for task, solver, sizes in missing_problems(asked, problems):
                lines[f"Large problems of {task}, {solver}: {', '.join(f'{size:,}' for size in sizes)} objects."] = None
        return list(lines)

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
