"""Units of work: small values that are sent to whoever does them, and lose little when that is killed.

What a unit makes depends on the unit and the experiment alone. Here are those that make what is measured; those that
measure it are in `measurements`.
"""

from __future__ import annotations

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from bilevel.demonstrations.dataset import MANIFEST
from bilevel.experiments.machines import Machine, forget_peak, machine, own_peak
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder, read_intact
from bilevel.experiments.reproduction.recipes import PAPER, USUAL_WORLD, Recipe, World
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, encode
from bilevel.policies.folder import POLICY, read_policy
from bilevel.tabletop import TASKS
from bilevel.versions import versions

if TYPE_CHECKING:  # it needs torch, which only training does
    from bilevel.progress import Progress

SAVED_EVERY = 2.0  # seconds
PATIENCE = 10.0  # seconds, for workers of a killed run to leave a data set
Callback = Callable[[str], None]  # called now and then with how far a unit is, once that is in its files


@dataclass(frozen=True)
class Unit(ABC):
    """A unit of work. Files and folders are named by their paths within the folder of the experiment."""

    kind: ClassVar[str]
    is_training: ClassVar[bool] = False
    is_intermediate: ClassVar[bool] = False  # of use only to units that are still to be done
    needs_own_process: ClassVar[bool] = False  # so that its memory is not that of others, nor theirs its
    task: str

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """The files and folders that it makes, in an order in which they can be written elsewhere again."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The outputs of other units that it needs."""
        return ()

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Folders for what is of no use once it is done."""
        return ()

    @property
    def uses_gpu(self) -> bool:
        """Whether it is faster on a GPU."""
        return False

    @property
    def name(self) -> str:
        """What a person calls it: `train blocks/bison-paper-0`."""
        return f"{self.kind} {PurePosixPath(self.outputs[-1].partition('/')[2]).with_suffix('')}"

    def expected_seconds(self, experiment: Experiment) -> float:
        """Return about how long it takes, where a forecast knows nothing better."""
        return 20.0

    @abstractmethod
    def is_done(self, folder: ExperimentFolder) -> bool:
        """Return whether all that it makes is there, and made of what is there now."""

    @abstractmethod
    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        """Do it, or whatever of it is not there yet."""


class _Collected(msgspec.Struct, frozen=True):
    """What a manifest says about how far a data set is."""

    complete: bool = False
    episodes: Count = 0


@dataclass(frozen=True)
class Collect(Unit):
    """Collect the demonstrations of a task."""

    kind: ClassVar[str] = "collect"
    is_intermediate: ClassVar[bool] = True
    shown: int | None = None  # objects in each of them; `None` for as many as in the experiment
    world: World = USUAL_WORLD

    @property
    def outputs(self) -> tuple[str, ...]:
        endings = [f"-shown{self.shown}" if self.shown else "", f"-{self.world.name}" if self.world.name else ""]
        return (f"demonstrations/{self.task}{''.join(endings)}",)

    def is_done(self, folder: ExperimentFolder) -> bool:
        known = read_intact(folder.path / self.outputs[0] / MANIFEST, _Collected) or _Collected()
        return known.complete and known.episodes >= folder.experiment.demonstrations

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        from bilevel.demonstrations.collect import collect

        arguments: dict[str, Any] = dict(self.world.arguments)
        collect(
            TASKS[self.task],
            folder.path / self.outputs[0],
            objects=self.shown or folder.experiment.shown,
            episodes=folder.experiment.demonstrations,
            callback=lambda progress: callback(f"demonstration {progress.done} of {progress.total}"),
            **arguments,
        )


@dataclass(frozen=True)
class Train(Unit):
    """Train a network on a task: for which method, by which recipe, from which seed.

    Where the recipe takes the network of another, the rules above it alone are learned.
    """

    kind: ClassVar[str] = "train"
    is_training: ClassVar[bool] = True
    needs_own_process: ClassVar[bool] = True
    learner: str
    recipe: Recipe
    seed: int

    @property
    def policy(self) -> str:
        """The folder of the policy."""
        return f"policies/{self.task}/{self._key}"

    @property
    def cost(self) -> str:
        """The file with what training the network took."""
        return f"costs/{self.task}/{self.network._key}.json"

    @property
    def network(self) -> Train:
        """What trains the network: most often it does so itself."""
        return self if self.recipe.network is None else replace(self, recipe=self.recipe.network)

    @property
    def _key(self) -> str:
        return f"{self.learner}-{self.recipe.name}-{self.seed}"

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.policy,) if self.recipe.network else (self.cost, self.policy)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.collection.outputs, self.network.policy) if self.recipe.network else self.collection.outputs

    @property
    def collection(self) -> Collect:
        """What collects the demonstrations that it learns from."""
        return Collect(self.task, self.recipe.shown, self.recipe.world)

    @property
    def unfinished(self) -> tuple[str, ...]:
        return (f"unfinished/{self.task}-{self._key}",)

    @property
    def uses_gpu(self) -> bool:
        """DAgger is a matter of episodes, not of epochs."""
        return self.recipe.preset == PAPER and self.recipe.network is None

    def is_done(self, folder: ExperimentFolder) -> bool:
        return (folder.path / self.policy / POLICY).exists()

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.learning.learn import learn

        if self.is_done(folder):
            return
        checkpoints = folder.path / self.unfinished[0]
        cost = None if self.recipe.network else self._begin_cost(folder, checkpoints)
        checkpoints.mkdir(parents=True, exist_ok=True)

        def note(progress: Progress) -> None:
            if cost:
                cost.note(is_last=progress.done == progress.total)
            callback(f"{progress.stage}, {progress.done} of {progress.total}")

        recipe, demonstrations = self.recipe, Demonstrations.read(folder.path / self.inputs[0])
        if recipe.demonstrations is not None:
            demonstrations = demonstrations.first(recipe.demonstrations)
        config = folder.experiment.config(recipe)
        known = read_policy(folder.path / self.network.policy) if recipe.network else None
        learn(
            demonstrations,
            folder.path / self.policy,
            task=TASKS[self.task],
            method=self.learner,
            preset=recipe.preset,
            seed=self.seed,
            config=config,
            network=known,
            callback=note,
        )
        shutil.rmtree(checkpoints, ignore_errors=True)

    def _begin_cost(self, folder: ExperimentFolder, checkpoints: Path) -> TrainingCost:
        """Return what notes what training takes; it begins anew where nothing of the network is there any more."""
        if not checkpoints.exists():
            (folder.path / self.cost).unlink(missing_ok=True)
        return TrainingCost(folder.path / self.cost)


class Cost(msgspec.Struct, frozen=True):
    """What training a network took."""

    seconds: Amount  # of the process that trained it, labels and DAgger included
    peak_mebibytes: Amount | None
    device: str  # cpu or cuda
    networks: Count  # that were trained side by side in these seconds
    machine: Machine
    versions: Mapping[str, str] = {}


class TrainingCost:
    """Keeps what training a network takes, over all the times that it was begun, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        known = read_intact(path, Cost)
        self._seconds, self._peak = (known.seconds, known.peak_mebibytes or 0.0) if known else (0.0, 0.0)
        self._began, self._saved = time.monotonic(), 0.0
        forget_peak()

    def note(self, is_last: bool = False) -> None:
        """Write what it has taken so far, now and then and at the end."""
        from bilevel.lowlevel.training import find_device

        now = time.monotonic()
        if now - self._saved <= SAVED_EVERY and not is_last:
            return
        self._saved = now
        seconds, peak = round(self._seconds + now - self._began, 1), max(self._peak, own_peak())
        cost = Cost(seconds, peak, find_device().type, 1, machine(), versions(["torch"]))
        write_atomically(self._path, encode(cost, indent=0))
