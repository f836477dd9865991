"""Earlier names, for callers that do not call `evaluate` yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilevel.experiments.evaluate import Evaluation as Evaluation
from bilevel.experiments.evaluate import evaluate as evaluate
from bilevel.experiments.records import Record, RecordFile, open_records, read_records
from bilevel.methods.methods import EvaluatedPolicy
from bilevel.policies.episode import Episode
from bilevel.policies.rollout import rollout
from bilevel.tasks.perception import PERFECT, Perception
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task

read_results = read_records


class EpisodeRunner:
    """Runs episodes of one policy on one task."""

    def __init__(
        self, policy: EvaluatedPolicy, task: Task, arguments: Mapping[str, Any], perception: Perception = PERFECT
    ) -> None:
        self._policy, self._task, self._arguments, self._perception = policy, task, arguments, perception

    def run(self, objects: int, seed: int, noise: float = 0.0) -> Episode:
        """Run the episode of a seed, with control noise of this amplitude."""
        assert self._policy.make
        env = SceneEnv(self._task, objects, perception=self._perception, **self._arguments)
        try:
            return rollout(env, self._policy.make(env), seed, noise=noise)
        finally:
            env.close()


@dataclass
class Results:
    """A file of records in the making."""

    evaluation: Evaluation
    file: RecordFile

    @property
    def records(self) -> list[Record]:
        """Those that are there."""
        return self.file.records

    def collect(self, workers: int | None = 1) -> Iterator[Record]:
        """Run what is missing."""
        for record in self.evaluation.run(workers, len(self.records)):
            self.file.add(record)
            yield record


@contextmanager
def open_results(path: Path, evaluation: Evaluation) -> Iterator[Results]:
    """Begin a file of records, or take up one that was begun."""
    evaluation.check()
    with open_records(path, evaluation.check_records) as file:
        yield Results(evaluation, file)
