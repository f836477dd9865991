"""How often a policy succeeds, over many sizes and episodes that it was not made from, in parallel.

The results are lines, one for each episode, in a fixed order. A line depends on what is measured and on its number
alone, so it does not matter who ran the episode, or when: the same evaluation gives the same bytes. What episodes took
on this machine is in a file beside it; see `timings`. Both can be taken up again after the evaluation was stopped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

from bilevel.experiments.machines import forget_peak, own_peak
from bilevel.experiments.records import BEGINNING, IDENTITY, EpisodeRecord, read_record
from bilevel.experiments.timings import TIMING_BEGINNING, read_timings, timing_of, timings_path, with_timings
from bilevel.files import taken_by_another
from bilevel.json_files import read_bytes
from bilevel.methods.methods import EXPERT, EvaluatedPolicy, method_of
from bilevel.policies.episode import Episode, count_incidents
from bilevel.policies.rollout import rollout
from bilevel.processes import Work, in_order, spread
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.perception import PERFECT, Perception, read_perception
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from bilevel.versions import versions

MOST_EPISODES = 10**9  # for each number of objects


@dataclass(frozen=True)
class Evaluation:
    """What to measure: a policy on a task, so many episodes for each number of objects.

    Nothing is written; for that, see `open_results`.
    """

    policy: EvaluatedPolicy
    task: Task
    objects: Sequence[int]
    episodes: int = 10  # for each number of objects
    seed: int = 0
    noise: float = 0.0  # amplitude of the control noise
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the environment
    keep_incidents: bool = False  # the states in which the policy was at a loss
    perception: Perception = PERFECT

    @property
    def total(self) -> int:
        """The number of episodes for all numbers of objects together."""
        return len(self.objects) * self.episodes

    def job(self, index: int) -> tuple[int, int]:
        """Return the number of objects and that of the episode, in the order of the results."""
        return self.objects[index // self.episodes], index % self.episodes

    def check(self) -> None:
        """`BadInput` for what cannot be measured."""
        if not 1 <= self.episodes <= MOST_EPISODES:
            allowed = "at least 1" if self.episodes < 1 else f"at most {MOST_EPISODES}"
            raise BadInput(f"the number of episodes must be {allowed}, but is {self.episodes}")
        for objects in (min(self.objects), max(self.objects)):
            self.policy.check_run(self.task, objects, self.noise, self.arguments, self.perception)

    @cached_property
    def _versions(self) -> dict[str, str]:
        return versions(self.task.packages)

    def identity(self, objects: int, episode: int) -> dict[str, Any]:
        """What the result of an episode has to say of how it was made."""
        return {
            "task": self.task.name,
            "method": self.policy.method,
            "policy_digest": self.policy.digest,
            "settings": dict(self.policy.settings),
            "seed": evaluation_seed(self.seed, objects, episode),
            "noise": self.noise,
            "arguments": dict(self.arguments),
            "perception": str(self.perception),
            "versions": self._versions,
        }

    def run(self, workers: int | None = 1, begin: int = 0) -> Iterator[EpisodeRecord]:
        """The results in their order, from the given one on."""
        self.check()
        with closing(spread(partial(_start, self), range(begin, self.total), workers)) as done:
            yield from in_order(done, begin)


def _start(evaluation: Evaluation) -> Work[tuple[int, EpisodeRecord]]:
    """What runs the job of a number, and keeps the last environment for those of the same size."""
    runner = EpisodeRunner(evaluation.policy, evaluation.task, evaluation.arguments, evaluation.perception)

    def run(index: int) -> tuple[int, EpisodeRecord]:
        objects, episode = evaluation.job(index)
        identity = evaluation.identity(objects, episode)
        forget_peak()
        found = runner.run(objects, identity["seed"], evaluation.noise)
        return index, EpisodeRecord(
            **identity,
            policy=evaluation.policy.policy,
            policy_seed=evaluation.policy.seed,
            objects=objects,
            episode=episode,
            outcome=found.outcome,
            reason=found.reason,
            detail=found.detail,
            steps=found.steps,
            changes=found.counts,
            seconds={name: round(seconds, 4) for name, seconds in found.seconds._asdict().items()},
            peak_mebibytes=own_peak(),
            recovery=count_incidents(found.incidents),
            incidents=list(found.incidents) if evaluation.keep_incidents else None,
        )

    return run


class EpisodeRunner:
    """Runs episodes of one policy on one task; the environment is made anew only for another number of objects."""

    def __init__(
        self, policy: EvaluatedPolicy, task: Task, arguments: Mapping[str, Any], perception: Perception = PERFECT
    ) -> None:
        self._policy, self._task, self._arguments, self._perception = policy, task, arguments, perception
        self._made: tuple[int, SceneEnv, Any] | None = None

    def run(self, objects: int, seed: int, noise: float = 0.0) -> Episode:
        """Run the episode of a seed, with control noise of this amplitude."""
        policy = self._policy
        if policy.make is None:
            assert policy.measure is not None
            return policy.measure(self._task, objects, seed)
        if self._made is None or self._made[0] != objects:
            if self._made is not None:
                self._made[1].close()
            env = SceneEnv(
                self._task, objects, render_mode=policy.render_mode, perception=self._perception, **self._arguments
            )
            self._made = objects, env, policy.make(env)
        _, env, acting = self._made
        return rollout(env, acting, seed, noise=noise)


@dataclass
class Results:
    """A file of results in the making: what is in it, and what adds to it."""

    evaluation: Evaluation
    records: list[EpisodeRecord]
    file: BinaryIO
    timings: BinaryIO

    def collect(self, workers: int | None = 1) -> Iterator[EpisodeRecord]:
        """Run what is missing; each episode once its line is in the file."""
        for record in self.evaluation.run(workers, begin=len(self.records)):
            for file, line in ((self.timings, timing_of(record).line()), (self.file, record.line().encode())):
                file.write(line)
                file.flush()
            self.records.append(record)
            yield record


@contextmanager
def open_results(path: Path, evaluation: Evaluation) -> Iterator[Results]:
    """Begin a file of results, or take up one that was begun; others are kept out meanwhile."""
    evaluation.check()
    with _open(path) as file:
        if taken_by_another(file.fileno()):
            raise BadInput(f"{path}: another process is evaluating into it; wait for it or choose another --output")
        whole = _whole_lines(path, file, BEGINNING)
        records = list(read_results(path, whole))
        _compare(path, records, evaluation)
        beside = timings_path(path) if path.is_file() else Path(os.devnull)
        with _open(beside) as timings:
            timed = _whole_lines(beside, timings, TIMING_BEGINNING)
            for each, keep in ((file, len(whole)), (timings, len(timed) if records else 0)):
                if each.seek(0, os.SEEK_END) > keep:
                    each.truncate(keep)
            yield Results(evaluation, records, file, timings)


def _open(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b")
    except OSError as error:
        reason = error.strerror or "no file that can be taken up again"  # such as a pipe
        raise BadInput(f"{path}: cannot be written: {reason}") from None


def _whole_lines(path: Path, file: BinaryIO, beginning: bytes) -> bytes:
    """Return what is in a file but for a last line that a kill has torn; `BadInput` where that is no such line."""
    file.seek(0)
    data = file.read()
    torn = data[data.rfind(b"\n") + 1 :]
    if torn[: len(beginning)] != beginning[: len(torn)]:
        raise BadInput(f"{path}: holds something else than results; choose another --output")
    return data[: len(data) - len(torn)]


def read_results(path: Path, data: bytes | None = None) -> Iterator[EpisodeRecord]:
    """The records of a file of results, whose content may be known already, with the timings that are beside it."""
    timings = read_timings(path)
    lines = enumerate((read_bytes(path) if data is None else data).splitlines(), 1)
    return with_timings((read_record(line, f"{path}, line {number}") for number, line in lines), timings)


def _compare(path: Path, records: Iterable[EpisodeRecord], evaluation: Evaluation) -> None:
    """The records must be the first results of this very evaluation."""
    for index, record in enumerate(records):
        wanted = evaluation.identity(record.objects, record.episode)
        for key, other in IDENTITY.items():
            if getattr(record, key) != wanted[key]:
                raise BadInput(f"{path}: made with {other}; choose another --output")
        if index >= evaluation.total or (record.objects, record.episode) != evaluation.job(index):
            raise BadInput(f"{path}: made with other --objects or --episodes; choose another --output")


def evaluate(
    policy: Path | str | EvaluatedPolicy,
    task: Task,
    *,
    objects: Iterable[int] = range(1, 11),
    episodes: int = 10,
    seed: int = 0,
    noise: float = 0.0,
    workers: int | None = 1,
    perception: Perception | str = PERFECT,
    **arguments: Any,
) -> list[EpisodeRecord]:
    """Run a policy in episodes that it has not seen; a record for each. The policy is a folder, or the word "expert".

    With a `perception`, such as "noise=0.01,missed=0.05", that is what it sees of them; success is judged on what is.

    records = evaluate("build/policy", task, objects=[3, 10], episodes=20)
    rate = sum(record.success for record in records) / len(records)
    """
    from bilevel.experiments.methods import find_policy

    if not isinstance(policy, EvaluatedPolicy):
        folder = None if policy == EXPERT else Path(policy)
        policy = find_policy(method_of(folder), folder)
    seen = read_perception(perception) if isinstance(perception, str) else perception
    return list(
        Evaluation(policy, task, tuple(objects), episodes, seed, noise, arguments, perception=seen).run(workers)
    )
