"""How often a policy succeeds, over many sizes and episodes that it was not learned from, in parallel.

The result is a record for each episode, in a fixed order. A record depends on what is evaluated and on its number
alone, so the same evaluation gives the same records for any number of workers, stopped and taken up again or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilevel.experiments.records import IDENTITY, Record, open_records
from bilevel.methods.methods import RunnablePolicy, find_policy
from bilevel.parallel import parallel
from bilevel.policies.episode import INCIDENT_KINDS, Episode
from bilevel.policies.policy import Policy
from bilevel.policies.recovery import Recovery
from bilevel.policies.rollout import rollout
from bilevel.progress import Callback, Progress, open_log, silent
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.perception import Perception, read_perception
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
        how: dict[str, Any] = {"method": method, "planner": planner, "recovery": recovery, "estimation": estimation}
        policy = find_policy(policy, task=task, planning_seconds=planning_seconds, **how)
    perception = read_perception(perception) if isinstance(perception, str) else perception
    task = task or registered_task(policy.task or "")
    if task is None:
        raise BadInput(f"the method '{policy.method}' needs a task: bilevel evaluate TASK, or file.py:task")
    if not 1 <= episodes <= 10**9:
        raise BadInput(f"the number of episodes must be 1 to 1,000,000,000, but is {episodes}")
    known = versions(task.packages)
    evaluation = _Evaluation(
        policy, task, tuple(objects), episodes, seed, noise, arguments, perception, keep_incidents, known
    )
    policy.check(task)
    for number in (min(evaluation.objects), max(evaluation.objects)):
        if policy.make:
            SceneEnv(task, number, **arguments).close()
    if workers is None and policy.pictures:
        workers = 1  # pictures take the whole machine
    about = {"task": task.name, "method": policy.method, "policy": policy.policy, "seed": seed, "noise": noise}
    path = None if output is None else Path(output)
    with open_records(path, evaluation.check_records) as (records, add), open_log(log, about) as note:
        total, begin = len(evaluation.objects) * episodes, len(records)
        successes = sum(record.success for record in records)
        callback(Progress("evaluating", begin, total))
        with closing(parallel(evaluation, range(begin, total), workers)) as results:
            for record in results:
                add(record)
                successes += record.success
                values = {"success rate": successes / len(records)}
                note(values, len(records))
                callback(Progress("evaluating", len(records), total, values))
        return records


@dataclass
class _Evaluation:
    """What to evaluate; called with the number of an episode, it runs that one, and returns its record.

    The environment is kept for the next episode with as many objects; other processes make environments of their own.
    """

    policy: RunnablePolicy
    task: Task
    objects: Sequence[int]
    episodes: int  # for each number of objects
    seed: int
    noise: float
    arguments: Mapping[str, Any]
    perception: Perception
    keep_incidents: bool
    versions: Mapping[str, str]  # of what the records depend on
    made: tuple[int, SceneEnv, Policy] | None = None  # for so many objects

    def check_records(self, path: Path, records: Sequence[Record]) -> None:
        """Raise `BadInput` unless these are the first records of this very evaluation."""
        for number, record in enumerate(records):
            wanted = self.identity(record.objects, record.episode)
            unlike = [other for key, other in IDENTITY.items() if getattr(record, key) != wanted[key]]
            size, episode = divmod(number, self.episodes)
            if size >= len(self.objects) or (record.objects, record.episode) != (self.objects[size], episode):
                unlike.append("other --objects or --episodes")
            if unlike:
                raise BadInput(f"{path}: made with {unlike[0]}; choose another --output")

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
            "versions": dict(self.versions),
        }

    def __call__(self, number: int) -> Record:
        objects, episode = self.objects[number // self.episodes], number % self.episodes
        identity = self.identity(objects, episode)
        found = self._run(objects, identity["seed"])
        met = Counter(incident.kind for incident in found.incidents)
        return Record(
            **identity,
            policy=self.policy.policy,
            policy_seed=self.policy.seed,
            objects=objects,
            episode=episode,
            outcome=found.outcome,
            reason=found.reason,
            detail=found.detail,
            steps=found.steps,
            changes=found.counts,
            seconds={name: round(seconds, 4) for name, seconds in found.seconds._asdict().items()},
            recovery={kind: met[kind] for kind in INCIDENT_KINDS if met[kind]},
            incidents=list(found.incidents) if self.keep_incidents else None,
        )

    def _run(self, objects: int, seed: int) -> Episode:
        if self.policy.make is None:
            assert self.policy.measure is not None
            return self.policy.measure(self.task, objects, seed)
        if self.made is None or self.made[0] != objects:
            if self.made is not None:
                self.made[1].close()
            settings = {**self.policy.pictures, "perception": self.perception, **self.arguments}
            env = SceneEnv(self.task, objects, **settings)
            self.made = objects, env, self.policy.make(env)
        _, env, acting = self.made
        return rollout(env, acting, seed, noise=self.noise)
