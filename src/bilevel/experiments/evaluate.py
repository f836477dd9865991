"""How often a policy succeeds, over many sizes and episodes that it was not learned from, in parallel.

The result is a record for each episode, in a fixed order. A record depends on what is evaluated and on its number
alone, so the same evaluation gives the same records for any number of workers, stopped and taken up again or not.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bilevel.experiments.machines import forget_peak, own_peak
from bilevel.experiments.records import IDENTITY, Record, open_records
from bilevel.methods.methods import RunnablePolicy, find_policy
from bilevel.metrics import open_log
from bilevel.parallel import in_order, parallel
from bilevel.policies.episode import Episode, count_incidents
from bilevel.policies.recovery import Recovery
from bilevel.policies.rollout import rollout
from bilevel.progress import Callback, Progress, silent
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.perception import PERFECT, Perception, read_perception
from bilevel.tasks.registry import find_task, registered_task
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from bilevel.versions import versions


def evaluate(
    policy: Path | str | RunnablePolicy | None = None,
    task: Task | str | None = None,
    *,
    objects: Iterable[int] = range(1, 11),
    episodes: int = 10,
    seed: int = 0,
    noise: float = 0.0,
    method: str | None = None,
    planner: str | None = None,
    planning_seconds: float | None = None,
    recovery: Recovery | str | None = None,
    perception: Perception | str = "",
    estimation: str | None = None,
    keep_incidents: bool = False,
    output: Path | str | None = None,
    workers: int | None = 1,
    callback: Callback = silent,
    log: str | None = None,
    **arguments: Any,
) -> list[Record]:
    """Run a policy in episodes that it has not seen, and return a record for each.

        records = evaluate("build/policy", objects=[3, 10], episodes=20)
        rate = sum(record.success for record in records) / len(records)

    The policy is a folder, the name of a pretrained one, or "expert"; by default the pretrained policy of the task. The
    task is by default the one that the policy was learned on. With a `perception`, such as "noise=0.01,missed=0.05",
    that is what the policy sees; success is judged on what is. The records are added one by one to the file `output`,
    from where the same evaluation goes on if it was stopped. Further `arguments` are those of the environment.
    """
    task = find_task(task) if isinstance(task, str) else task
    if not isinstance(policy, RunnablePolicy):
        policy = find_policy(
            policy,
            task=task,
            method=method,
            planner=planner,
            planning_seconds=planning_seconds,
            recovery=recovery,
            estimation=estimation,
        )
    evaluation = Evaluation(
        policy,
        task or _task_of(policy),
        tuple(objects),
        episodes,
        seed,
        noise,
        arguments,
        keep_incidents,
        read_perception(perception) if isinstance(perception, str) else perception,
    )
    evaluation.check()
    if workers is None and policy.render_mode:
        workers = 1  # pictures take the whole machine
    about = {"task": evaluation.task.name, "method": policy.method, "policy": policy.policy, "seed": seed}
    path = None if output is None else Path(output)
    with open_records(path, evaluation.check_records) as file, open_log(log, {**about, "noise": noise}) as note:
        successes = sum(record.success for record in file.records)
        begin = len(file.records)
        callback(Progress("evaluating", begin, evaluation.total))
        with closing(evaluation.run(workers, begin)) as records:
            for done, record in enumerate(records, begin + 1):
                file.add(record)
                successes += record.success
                note({"success rate": successes / done}, done)
                callback(Progress("evaluating", done, evaluation.total, {"success rate": successes / done}))
        return file.records


def _task_of(policy: RunnablePolicy) -> Task:
    """Return the task that a policy was learned on; `BadInput` where nobody knows it."""
    if policy.task is None:
        raise BadInput(f"the method '{policy.method}' needs a task: bilevel evaluate TASK")
    task = registered_task(policy.task)
    if task is None:
        reason = f"is of the task '{policy.task}', which is not registered here"
        raise BadInput(f"{policy.policy} {reason}; name it: bilevel evaluate file.py:task")
    return task


@dataclass(frozen=True)
class Evaluation:
    """What to evaluate: a policy on a task, in so many episodes for each number of objects."""

    policy: RunnablePolicy
    task: Task
    objects: Sequence[int]
    episodes: int = 10  # for each number of objects
    seed: int = 0
    noise: float = 0.0  # amplitude of the control noise
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the environment
    keep_incidents: bool = False
    perception: Perception = PERFECT

    @property
    def total(self) -> int:
        """The number of episodes for all numbers of objects together."""
        return len(self.objects) * self.episodes

    def job(self, number: int) -> tuple[int, int]:
        """Return the number of objects and that of the episode, in the order of the records."""
        return self.objects[number // self.episodes], number % self.episodes

    def check(self) -> None:
        """Raise `BadInput` for what cannot be evaluated."""
        if not 1 <= self.episodes <= 10**9:
            raise BadInput(f"the number of episodes must be 1 to 1,000,000,000, but is {self.episodes}")
        for objects in (min(self.objects), max(self.objects)):
            self.policy.check_run(self.task, objects, self.noise, self.arguments, self.perception)

    def check_records(self, path: Path, records: Sequence[Record]) -> None:
        """Raise `BadInput` unless these are the first records of this very evaluation."""
        for number, record in enumerate(records):
            wanted = self.identity(record.objects, record.episode)
            for key, other in IDENTITY.items():
                if getattr(record, key) != wanted[key]:
                    raise BadInput(f"{path}: made with {other}; choose another --output")
            if number >= self.total or (record.objects, record.episode) != self.job(number):
                raise BadInput(f"{path}: made with other --objects or --episodes; choose another --output")

    @cached_property
    def _versions(self) -> dict[str, str]:
        return versions(self.task.packages)

    def identity(self, objects: int, episode: int) -> dict[str, Any]:
        """Return what the record of an episode says of how it was made."""
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

    def run(self, workers: int | None = 1, begin: int = 0) -> Generator[Record, None, None]:
        """Yield the records in their order, from the given number on."""
        with closing(parallel(_EpisodeRunner(self), range(begin, self.total), workers)) as records:
            yield from in_order(records, begin)


class _EpisodeRunner:
    """Runs the episodes of an evaluation by their numbers; keeps the environment for those with as many objects."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._made: tuple[int, SceneEnv, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _EpisodeRunner, (self._evaluation,)  # other processes make environments of their own

    def __call__(self, number: int) -> tuple[int, Record]:
        evaluation = self._evaluation
        objects, episode = evaluation.job(number)
        identity = evaluation.identity(objects, episode)
        forget_peak()
        found = self._run(objects, identity["seed"])
        record = Record(
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
        return number, record

    def _run(self, objects: int, seed: int) -> Episode:
        evaluation, policy = self._evaluation, self._evaluation.policy
        if policy.make is None:
            assert policy.measure is not None
            return policy.measure(evaluation.task, objects, seed)
        if self._made is None or self._made[0] != objects:
            if self._made is not None:
                self._made[1].close()
            env = SceneEnv(
                evaluation.task,
                objects,
                render_mode=policy.render_mode,
                perception=evaluation.perception,
                **evaluation.arguments,
            )
            self._made = objects, env, policy.make(env)
        _, env, acting = self._made
        return rollout(env, acting, seed, noise=evaluation.noise)
