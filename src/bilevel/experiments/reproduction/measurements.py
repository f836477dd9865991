"""Units that measure: episodes in worlds, and memory; and films to look at."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import ClassVar

import msgspec

from bilevel.experiments.evaluate import Evaluation
from bilevel.experiments.machines import Machine, machine
from bilevel.experiments.methods import METHODS, find_policy
from bilevel.experiments.records import Record, read_records, timing_line, timings_path
from bilevel.experiments.reproduction.conditions import PLAIN, Condition
from bilevel.experiments.reproduction.folder import ExperimentFolder, read_intact
from bilevel.experiments.reproduction.units import SAVED_EVERY, Callback, Unit
from bilevel.experiments.reproduction.variants import Variant
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, encode
from bilevel.methods.methods import RunnablePolicy, read_learned
from bilevel.policies.folder import POLICY
from bilevel.policies.recovery import parse_recovery
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.versions import versions


@dataclass(frozen=True)
class VariantUnit(Unit):
    """Something that is done with a row of the table, and the network that it runs on."""

    variant: Variant
    seed: int

    @property
    def inputs(self) -> tuple[str, ...]:
        training = self.variant.training(self.task, self.seed)
        return (training.policy,) if training else ()

    def load_policy(self, folder: ExperimentFolder) -> RunnablePolicy:
        """Return what is run; its policy is named as the folder knows it, wherever that is.

        A method that is not learned takes from a policy how it estimates what is there.
        """
        variant, method = self.variant, METHODS[self.variant.method]
        seconds = folder.experiment.planning_seconds if method.planners else None
        load = partial(find_policy, method.name, planner=variant.planner, planning_seconds=seconds)
        if not self.inputs:
            return load()
        policy = folder.path / self.inputs[0]
        if method.training:
            recovery = parse_recovery(variant.recovery) if variant.recovery else None
            found = load(policy, recovery=recovery, estimation=variant.estimation)
        else:
            found = load(estimation=str(policy))
        return replace(found, policy=self.inputs[0], digest=self.digest(folder))

    def digest(self, folder: ExperimentFolder) -> str | None:
        """Return that of the policy that is there now, if it needs one; `OSError` or `BadInput` where it is damaged."""
        return _digest(policy := folder.path / self.inputs[0], _changed(policy)) if self.inputs else None

    def evaluation(
        self, folder: ExperimentFolder, objects: int, episodes: int, condition: Condition = PLAIN
    ) -> Evaluation:
        """Return what runs so many episodes."""
        return Evaluation(
            self.load_policy(folder),
            TASKS[self.task],
            (objects,),
            episodes,
            self.seed,
            noise=condition.noise,
            arguments=dict((*self.variant.world.arguments, *condition.arguments)),
            perception=condition.perception,
        )


@dataclass(frozen=True)
class Evaluate(VariantUnit):
    """Run episodes with one number of objects, under a condition."""

    kind: ClassVar[str] = "evaluate"
    objects: int
    episodes: int
    condition: Condition = PLAIN

    @property
    def outputs(self) -> tuple[str, ...]:
        number = f"{self.objects:02d}" + (f"-{self.condition.name}" if self.condition.name else "")
        results = PurePosixPath(f"episodes/{self.task}/{self.variant.name}-{self.seed}/{number}.jsonl")
        return str(timings_path(results)), str(results)

    def records(self, folder: ExperimentFolder, to_resume: bool = False) -> list[Record]:
        """Return the episodes that are there as a whole, and of the policy that is there now; a torn last line is not.

        To go on with them, they must also have been made with the same versions of all that episodes depend on.
        """
        path = folder.path / self.outputs[1]
        try:
            records = read_records(path)
            digest = self.digest(folder)
        except (OSError, BadInput):  # what is wrong with a policy is told when it is to be run
            return []
        wanted = ((number, evaluation_seed(self.seed, self.objects, number), digest) for number in range(len(records)))
        found = [(record.episode, record.seed, record.policy_digest) for record in records]
        return records if found == list(wanted) and not (to_resume and self._are_old(records)) else []

    def _are_old(self, records: list[Record]) -> bool:
        """Return whether something that episodes depend on has another version by now; finding out takes a while."""
        now = versions(TASKS[self.task].packages)
        return any(record.versions != now for record in records)

    def is_done(self, folder: ExperimentFolder) -> bool:
        return len(self.records(folder)) >= self.episodes

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        records = self.records(folder, to_resume=True)
        saved = time.monotonic()
        for record in self.evaluation(folder, self.objects, self.episodes, self.condition).run(begin=len(records)):
            records.append(record)
            if time.monotonic() - saved > SAVED_EVERY or len(records) == self.episodes:
                timings, results = (folder.path / name for name in self.outputs)
                write_atomically(timings, b"".join(timing_line(record) for record in records))
                write_atomically(results, "".join(record.line() for record in records))
                saved = time.monotonic()
                callback(f"episode {len(records)} of {self.episodes}")


class Memory(msgspec.Struct, frozen=True):
    """How much memory an episode needed."""

    objects: Count
    peak_mebibytes: Amount | None
    machine: Machine = {}


@dataclass(frozen=True)
class MeasureMemory(VariantUnit):
    """Measure how much memory a process of its own needs for one episode."""

    kind: ClassVar[str] = "memory"
    needs_own_process: ClassVar[bool] = True
    objects: int

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"memory/{self.task}/{self.variant.name}.json",)

    def is_done(self, folder: ExperimentFolder) -> bool:
        known = read_intact(folder.path / self.outputs[0], Memory)
        return known is not None and known.objects >= self.objects

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        (record,) = self.evaluation(folder, self.objects, 1).run()
        found = Memory(self.objects, record.peak_mebibytes, machine())
        write_atomically(folder.path / self.outputs[0], encode(found, indent=0))


@dataclass(frozen=True)
class Film(VariantUnit):
    """Film an episode to look at; what has a timeline has a film."""

    kind: ClassVar[str] = "film"

    @property
    def outputs(self) -> tuple[str, ...]:
        return f"films/{self.task}.mp4", f"films/{self.task}.json"

    def is_done(self, folder: ExperimentFolder) -> bool:
        return (folder.path / self.outputs[1]).exists()

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        from bilevel.experiments.reproduction.films import FILMED, interesting_seed, make_film

        film, timeline = (folder.path / name for name in self.outputs)
        policy, task = self.load_policy(folder), TASKS[self.task]
        seed = interesting_seed(policy, task)
        write_atomically(timeline, make_film(policy, task, FILMED, seed, film, self.variant.name).text())


@cache
def _digest(policy: Path, changed: int) -> str:
    return read_learned(policy).digest


def _changed(policy: Path) -> int:
    """Tell a policy from one that was there before."""
    return (policy / POLICY).stat().st_mtime_ns
