"""Measuring a policy over many sizes and episodes, in parallel, so that it can be stopped and taken up again.

The results are a file of one line for each episode, in a fixed order. A line depends on what is measured and on its
number alone, but for the seconds in it, so it does not matter who ran the episode, or when.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from bilevel.experiments.contenders import Contender
from bilevel.experiments.evaluation import Trial
from bilevel.experiments.machines import peak_memory
from bilevel.experiments.records import BEGINNING, IDENTITY, EpisodeRecord, make_record, read_record, versions
from bilevel.files import taken_by_another
from bilevel.processes import Work, in_order, spread
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import find_task


@dataclass(frozen=True)
class Evaluation:
    """What to measure: a policy on a task, so many episodes for each number of objects.

        records = list(Evaluation(find_contender("bison", folder), "blocks", objects=range(1, 11)).run(workers=2))

    Nothing is written; for that, see `open_results`.
    """

    contender: Contender
    task: str
    objects: Sequence[int]
    episodes: int = 10  # for each number of objects
    seed: int = 0
    noise: float = 0.0
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the environment

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """Numbers of objects and of episodes, in the order of the results."""
        return [(objects, episode) for objects in self.objects for episode in range(self.episodes)]

    def check(self) -> None:
        """`BadInput` for what cannot be measured."""
        task = find_task(self.task)
        if self.episodes < 1:
            raise BadInput(f"the number of episodes must be at least 1, but is {self.episodes}")
        for objects in (min(self.objects), max(self.objects)):
            self.contender.check(task, objects, self.noise, self.arguments)

    def run(self, workers: int = 1, begin: int = 0) -> Iterator[EpisodeRecord]:
        """The results in their order, from the given one on."""
        self.check()
        with closing(spread(partial(_start, self), range(begin, len(self.jobs)), workers)) as done:
            yield from in_order(done, begin)

    def record(self, index: int) -> EpisodeRecord:
        """Run one of the jobs."""
        objects, episode = self.jobs[index]
        trial = Trial(self.task, objects, self.episodes, self.seed, self.noise, self.arguments)
        with peak_memory() as peak:
            run = self.contender.run(trial, episode)
        return make_record(self.contender, trial, episode, run, peak.mebibytes)


def _start(evaluation: Evaluation) -> Work[tuple[int, EpisodeRecord]]:
    return lambda index: (index, evaluation.record(index))


@dataclass
class Results:
    """A file of results in the making: what is in it, and what adds to it."""

    evaluation: Evaluation
    records: list[EpisodeRecord]
    file: BinaryIO

    def collect(self, workers: int = 1) -> Iterator[EpisodeRecord]:
        """Run what is missing; each episode once its line is in the file."""
        for record in self.evaluation.run(workers, begin=len(self.records)):
            self.file.write(record.line().encode())
            self.file.flush()
            self.records.append(record)
            yield record


@contextmanager
def open_results(path: Path, evaluation: Evaluation) -> Iterator[Results]:
    """Begin a file of results, or take up one that was begun; others are kept out meanwhile."""
    evaluation.check()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")  # noqa: SIM115 (closed below)
    except OSError as error:
        reason = error.strerror or "no file that can be taken up again"  # such as a pipe
        raise BadInput(f"{path}: cannot be written: {reason}") from None
    with file:
        if taken_by_another(file.fileno()):
            raise BadInput(f"{path}: another process is evaluating into it; wait for it or choose another --output")
        yield Results(evaluation, _resume(path, file, evaluation), file)


def _resume(path: Path, file: BinaryIO, evaluation: Evaluation) -> list[EpisodeRecord]:
    """The results that are there; a last line that is torn is removed, and run again."""
    file.seek(0)
    data = file.read()
    whole, torn = data[: data.rfind(b"\n") + 1], data[data.rfind(b"\n") + 1 :]
    if torn[: len(BEGINNING)] != BEGINNING[: len(torn)]:
        raise BadInput(f"{path}: holds something else than results; choose another --output")
    records = list(read_results(path, whole))
    _compare(path, records, evaluation)
    if torn:
        file.truncate(len(whole))
    file.seek(0, os.SEEK_END)
    return records


def read_results(path: Path, data: bytes | None = None) -> Iterator[EpisodeRecord]:
    """The records of a file of results, whose content may be known already."""
    for number, line in enumerate((path.read_bytes() if data is None else data).splitlines(), 1):
        yield _read_line(f"{path}, line {number}", line)


def _read_line(where: str, line: bytes) -> EpisodeRecord:
    try:
        return read_record(line.decode())
    except (ValueError, RecursionError, BadInput) as error:
        raise BadInput(f"{where}: not the result of an episode: {error}") from None


def _compare(path: Path, records: Iterable[EpisodeRecord], evaluation: Evaluation) -> None:
    """The records must be the first results of this very evaluation."""
    jobs = evaluation.jobs
    for index, record in enumerate(records):
        wanted = {
            "task": evaluation.task,
            "method": evaluation.contender.method,
            "policy_digest": evaluation.contender.digest,
            "settings": dict(evaluation.contender.settings),
            "seed": evaluation_seed(evaluation.seed, record.episode),
            "noise": evaluation.noise,
            "arguments": dict(evaluation.arguments),
            "versions": versions(),
        }
        for key, other in IDENTITY.items():
            if getattr(record, key) != wanted[key]:
                raise BadInput(f"{path}: made with {other}; choose another --output")
        if index >= len(jobs) or (record.objects, record.episode) != jobs[index]:
            raise BadInput(f"{path}: made with other --objects or --episodes; choose another --output")
