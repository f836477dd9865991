"""The kinds of work: each makes something out of what others made, and loses little when it is killed.

Here, in `measurements` and in `films` is all that the experiment asks of the rest of the package.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

from bilevel.demonstrations.manifest import MANIFEST
from bilevel.experiments.machines import machine
from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.reproduction.folder import ExperimentFolder, read_json
from bilevel.experiments.reproduction.measurements import (
    TrainingCost,
    load_variant,
    make_evaluation,
    measure_lama,
    measure_rules,
    read_episodes,
)
from bilevel.experiments.reproduction.settings import PAPER, Network, Variant
from bilevel.experiments.reproduction.unit import Callback, Unit
from bilevel.files import write_atomically
from bilevel.policies.policy_folder import POLICY
from bilevel.tabletop import TASKS

if TYPE_CHECKING:  # it needs torch, which only training does
    from bilevel.learning.networks import Progress

SAVED_EVERY = 2.0  # seconds
PATIENCE = 10.0  # seconds, for workers of a killed run to leave a data set


@dataclass(frozen=True)
class Collect(Unit):
    """Collect the demonstrations of a task."""

    kind: ClassVar[str] = "collect"
    is_intermediate: ClassVar[bool] = True

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"demonstrations/{self.task}",)

    def is_done(self, folder: ExperimentFolder) -> bool:
        manifest = read_json(folder.path / self.outputs[0] / MANIFEST) or {}
        return manifest.get("complete") is True and manifest.get("episodes", 0) >= folder.experiment.demonstrations

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        from bilevel.demonstrations.collection import open_collection
        from bilevel.demonstrations.recording import collection_settings

        task, wanted = TASKS[self.task], folder.experiment.demonstrations
        settings = collection_settings(task, folder.experiment.shown)
        with open_collection(task, folder.path / self.outputs[0], settings, wanted, PATIENCE) as collection:
            for _ in collection.record_missing():
                callback(f"demonstration {len(collection.entries)} of {wanted}")


@dataclass(frozen=True)
class Train(Unit):
    """Train a network."""

    kind: ClassVar[str] = "train"
    is_training: ClassVar[bool] = True
    needs_own_process: ClassVar[bool] = True
    learner: str
    preset: str
    seed: int

    @property
    def network(self) -> Network:
        return Network(self.task, self.learner, self.preset, self.seed)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.network.cost, self.network.policy

    @property
    def inputs(self) -> tuple[str, ...]:
        return Collect(self.task).outputs

    @property
    def unfinished(self) -> tuple[str, ...]:
        return (f"unfinished/{self.task}-{self.learner}-{self.preset}-{self.seed}",)

    @property
    def uses_gpu(self) -> bool:
        """DAgger is a matter of episodes, not of epochs."""
        return self.preset == PAPER

    def is_done(self, folder: ExperimentFolder) -> bool:
        return (folder.path / self.network.policy / POLICY).exists()

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.methods.training import train

        if self.is_done(folder):
            return
        network, checkpoints = self.network, folder.path / self.unfinished[0]
        if not checkpoints.exists():  # then it is what a network took that is there no more
            (folder.path / network.cost).unlink(missing_ok=True)
        checkpoints.mkdir(parents=True, exist_ok=True)
        cost = TrainingCost(folder.path / network.cost)

        def note(progress: Progress) -> None:
            cost.note(is_last=progress.done == progress.total)
            callback(f"{progress.stage}, {progress.done} of {progress.total}")

        train(
            Demonstrations.read(folder.path / self.inputs[0]),
            folder.path / network.policy,
            self.learner,
            task=TASKS[self.task],
            preset=self.preset,
            config=folder.experiment.config(self.learner, self.preset),
            seed=self.seed,
            checkpoints=checkpoints,
            callback=note,
        )
        shutil.rmtree(checkpoints, ignore_errors=True)


@dataclass(frozen=True)
class _VariantUnit(Unit):
    """Something that is done with a row of the table, and the network that it runs on."""

    variant: Variant
    seed: int

    @property
    def inputs(self) -> tuple[str, ...]:
        network = self.variant.network(self.task, self.seed)
        return (network.policy,) if network else ()


@dataclass(frozen=True)
class Evaluate(_VariantUnit):
    """Run episodes with one number of objects."""

    kind: ClassVar[str] = "evaluate"
    objects: int
    episodes: int

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"episodes/{self.task}/{self.variant.name}-{self.seed}/{self.objects:02d}.jsonl",)

    def records(self, folder: ExperimentFolder, to_resume: bool = False) -> list[EpisodeRecord]:
        policy = folder.path / self.inputs[0] if self.inputs else None
        return read_episodes(folder.path / self.outputs[0], TASKS[self.task], policy, to_resume)

    def is_done(self, folder: ExperimentFolder) -> bool:
        return len(self.records(folder)) >= self.episodes

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        records = self.records(folder, to_resume=True)
        evaluation = make_evaluation(folder, self.task, self.variant, self.seed, self.objects, self.episodes)
        saved = time.monotonic()
        for record in evaluation.run(begin=len(records)):
            records.append(record)
            if time.monotonic() - saved > SAVED_EVERY or len(records) == self.episodes:
                write_atomically(folder.path / self.outputs[0], "".join(record.line() for record in records))
                saved = time.monotonic()
                callback(f"episode {len(records)} of {self.episodes}")


@dataclass(frozen=True)
class MeasureMemory(_VariantUnit):
    """Measure how much memory a process of its own needs for one episode."""

    kind: ClassVar[str] = "memory"
    needs_own_process: ClassVar[bool] = True
    objects: int

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"memory/{self.task}/{self.variant.name}.json",)

    def is_done(self, folder: ExperimentFolder) -> bool:
        known = read_json(folder.path / self.outputs[0]) or {}
        return int(known.get("objects", 0)) >= self.objects

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        (record,) = make_evaluation(folder, self.task, self.variant, self.seed, self.objects, 1).run()
        found = {"objects": self.objects, "peak_mebibytes": record.peak_mebibytes, "machine": machine()}
        write_atomically(folder.path / self.outputs[0], json.dumps(found) + "\n")


@dataclass(frozen=True)
class Scale(Unit):
    """Measure how long learned rules, or LAMA, take for a large problem of the task's domain."""

    kind: ClassVar[str] = "scale"
    needs_own_process: ClassVar[bool] = True
    solver: str
    objects: int
    network: Network | None = None  # with the rules, for `RULES`

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"scaling/{self.task}-{self.solver}-{self.objects}.json",)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.network.policy,) if self.network else ()

    def is_done(self, folder: ExperimentFolder) -> bool:
        return read_json(folder.path / self.outputs[0]) is not None

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        if self.network:
            found = measure_rules(self.task, self.objects, folder.path / self.network.policy)
        else:
            found = measure_lama(self.task, self.objects, folder.experiment.lama_seconds)
        write_atomically(folder.path / self.outputs[0], json.dumps(msgspec.to_builtins(found)) + "\n")


@dataclass(frozen=True)
class Film(_VariantUnit):
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
        policy, task = load_variant(folder, self.task, self.variant, self.seed), TASKS[self.task]
        seed = interesting_seed(policy, task)
        write_atomically(timeline, make_film(policy, task, FILMED, seed, film, self.variant.name).text())
