"""The kinds of work: each makes something out of what others made, and loses little when it is killed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilevel.experiments.machines import machine
from bilevel.experiments.reproduction.folder import Kept, read_json
from bilevel.experiments.reproduction.measurements import kept_records, measure_lama, measure_rules, measured
from bilevel.experiments.reproduction.settings import PAPER, Entrant
from bilevel.experiments.reproduction.training_cost import Cost
from bilevel.experiments.reproduction.unit import Tick, Unit
from bilevel.files import write_atomically

if TYPE_CHECKING:  # it needs torch, which only training does
    from bilevel.learning.bilevel import Progress

RULES, LAMA = "rules", "lama"
SAVED_EVERY = 2.0  # seconds


@dataclass(frozen=True)
class Collect(Unit):
    """Demonstrations of a task."""

    kind: ClassVar[str] = "collect"

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"demonstrations/{self.task}",)

    @property
    def is_means(self) -> bool:
        return True

    def is_done(self, kept: Kept) -> bool:
        return kept.has_demonstrations(self.task)

    def sources(self, kept: Kept) -> Sequence[Path]:
        return self.products(kept)

    def products(self, kept: Kept) -> Sequence[Path]:
        return [kept.demonstrations(self.task)]

    def perform(self, kept: Kept, tick: Tick) -> None:
        from bilevel.demonstrations.collection import open_when_free
        from bilevel.demonstrations.recording import make_recipe

        recipe, slots = make_recipe(self.task, kept.experiment.shown)
        wanted = kept.experiment.demonstrations
        with open_when_free(kept.demonstrations(self.task), recipe, slots, wanted) as collection:
            for _ in collection.collect():
                tick(f"demonstration {len(collection.entries)} of {wanted}")


@dataclass(frozen=True)
class Train(Unit):
    """Networks, one for each seed; on a GPU they are trained side by side."""

    kind: ClassVar[str] = "train"
    learner: str
    recipe: str
    seeds: tuple[int, ...]

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple(f"policies/{self.task}/{self.learner}-{self.recipe}-{seed}" for seed in self.seeds)

    @property
    def needs(self) -> tuple[str, ...]:
        return Collect(self.task).gives

    @property
    def is_training(self) -> bool:
        return True

    @property
    def likes_gpu(self) -> bool:
        """Practice is a matter of episodes, not of epochs."""
        return self.recipe == PAPER

    def missing(self, kept: Kept) -> list[int]:
        return [seed for seed in self.seeds if not kept.has_policy(self.task, self.learner, self.recipe, seed)]

    def is_done(self, kept: Kept) -> bool:
        return not self.missing(kept)

    def sources(self, kept: Kept) -> Sequence[Path]:
        return [kept.demonstrations(self.task), *self.products(kept)]

    def products(self, kept: Kept) -> Sequence[Path]:
        folders = [kept.policy(self.task, self.learner, self.recipe, seed) for seed in self.seeds]
        costs = [kept.cost(self.task, self.learner, self.recipe, seed) for seed in self.seeds]
        return [self._checkpoints(kept), *costs, *folders]

    def _checkpoints(self, kept: Kept) -> Path:
        seeds = "-".join(map(str, self.seeds))
        return kept.checkpoints(self.task, self.learner, f"{self.recipe}-{seeds}")

    def perform(self, kept: Kept, tick: Tick) -> None:
        from bilevel.demonstrations.dataset import read_dataset
        from bilevel.experiments.training import train_together

        missing = self.missing(kept)
        if not missing:
            return
        costs = [kept.cost(self.task, self.learner, self.recipe, seed) for seed in missing]
        checkpoints = self._checkpoints(kept)
        if not checkpoints.exists():  # then they are what networks took that are there no more
            for path in costs:
                path.unlink(missing_ok=True)
        checkpoints.mkdir(parents=True, exist_ok=True)
        cost = Cost(costs)

        def tell(progress: Progress) -> None:
            cost.note(progress)
            tick(f"{progress.stage}, {progress.done} of {progress.total}")

        train_together(
            read_dataset(kept.demonstrations(self.task)),
            {seed: kept.policy(self.task, self.learner, self.recipe, seed) for seed in missing},
            self.learner,
            kept.experiment.config(self.learner, self.recipe),
            recipe=self.recipe,
            checkpoints=checkpoints,
            tell=tell,
        )
        shutil.rmtree(checkpoints, ignore_errors=True)

    def leftovers(self, kept: Kept) -> Sequence[Path]:
        return [self._checkpoints(kept)]


@dataclass(frozen=True)
class Evaluate(Unit):
    """Episodes of an entrant with one number of objects."""

    kind: ClassVar[str] = "evaluate"
    entrant: Entrant
    seed: int
    objects: int
    episodes: int

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"episodes/{self.task}/{self.entrant.name}-{self.seed}/{self.objects}",)

    @property
    def needs(self) -> tuple[str, ...]:
        if self.entrant.learner is None or self.entrant.recipe is None:
            return ()
        return Train(self.task, self.entrant.learner, self.entrant.recipe, (self.seed,)).gives

    def _file(self, kept: Kept) -> Path:
        return kept.episodes(self.task, self.entrant.name, self.seed, self.objects)

    def is_done(self, kept: Kept) -> bool:
        return len(kept_records(kept, self.task, self.entrant, self.seed, self.objects)) >= self.episodes

    def sources(self, kept: Kept) -> Sequence[Path]:
        policy = kept.policy_of(self.entrant, self.task, self.seed)
        return [*([policy] if policy else []), *self.products(kept)]

    def products(self, kept: Kept) -> Sequence[Path]:
        return [self._file(kept)]

    def perform(self, kept: Kept, tick: Tick) -> None:
        records = kept_records(kept, self.task, self.entrant, self.seed, self.objects, to_go_on=True)
        evaluation = measured(kept, self.task, self.entrant, self.seed, self.objects, self.episodes)
        saved = time.monotonic()
        for index in range(len(records), self.episodes):
            records.append(evaluation.record(index))
            if time.monotonic() - saved > SAVED_EVERY or len(records) == self.episodes:
                write_atomically(self._file(kept), "".join(record.line() for record in records))
                saved = time.monotonic()
                tick(f"episode {len(records)} of {self.episodes}")


@dataclass(frozen=True)
class Weigh(Unit):
    """How much memory an entrant needs: that of a process of its own for one episode."""

    kind: ClassVar[str] = "weigh"
    entrant: Entrant
    seed: int
    objects: int

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"memory/{self.task}/{self.entrant.name}",)

    @property
    def needs(self) -> tuple[str, ...]:
        return Evaluate(self.task, self.entrant, self.seed, self.objects, 1).needs

    @property
    def is_alone(self) -> bool:
        return True

    def is_done(self, kept: Kept) -> bool:
        known = read_json(kept.memory(self.task, self.entrant.name)) or {}
        return int(known.get("objects", 0)) >= self.objects

    def sources(self, kept: Kept) -> Sequence[Path]:
        policy = kept.policy_of(self.entrant, self.task, self.seed)
        return [policy] if policy else []

    def products(self, kept: Kept) -> Sequence[Path]:
        return [kept.memory(self.task, self.entrant.name)]

    def perform(self, kept: Kept, tick: Tick) -> None:
        record = measured(kept, self.task, self.entrant, self.seed, self.objects, 1).record(0)
        found = {"objects": self.objects, "peak_mebibytes": record.peak_mebibytes, "machine": machine()}
        write_atomically(kept.memory(self.task, self.entrant.name), json.dumps(found) + "\n")


@dataclass(frozen=True)
class Scale(Unit):
    """How long learned rules, or LAMA, take for a large problem of the task's domain."""

    kind: ClassVar[str] = "scale"
    solver: str
    objects: int
    rules: Train | None  # whose rules, for `RULES`

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"scaling/{self.task}/{self.solver}-{self.objects}",)

    @property
    def needs(self) -> tuple[str, ...]:
        return self.rules.gives[:1] if self.rules else ()

    @property
    def is_alone(self) -> bool:
        return True

    def is_done(self, kept: Kept) -> bool:
        return read_json(kept.scaling(self.task, self.solver, self.objects)) is not None

    def sources(self, kept: Kept) -> Sequence[Path]:
        return [self._policy(kept, self.rules)] if self.rules else []

    def products(self, kept: Kept) -> Sequence[Path]:
        return [kept.scaling(self.task, self.solver, self.objects)]

    def perform(self, kept: Kept, tick: Tick) -> None:
        found = (
            measure_rules(self.task, self.objects, self._policy(kept, self.rules))
            if self.rules
            else measure_lama(self.task, self.objects, kept.experiment.lama_seconds)
        )
        write_atomically(kept.scaling(self.task, self.solver, self.objects), json.dumps(asdict(found)) + "\n")

    @staticmethod
    def _policy(kept: Kept, source: Train) -> Path:
        return kept.policy(source.task, source.learner, source.recipe, source.seeds[0])


@dataclass(frozen=True)
class Film(Unit):
    """An episode to look at."""

    kind: ClassVar[str] = "film"
    entrant: Entrant
    seed: int

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"films/{self.task}",)

    @property
    def needs(self) -> tuple[str, ...]:
        return Evaluate(self.task, self.entrant, self.seed, 1, 1).needs

    def is_done(self, kept: Kept) -> bool:
        return kept.timeline(self.task).exists()

    def sources(self, kept: Kept) -> Sequence[Path]:
        policy = kept.policy_of(self.entrant, self.task, self.seed)
        assert policy is not None
        return [policy]

    def products(self, kept: Kept) -> Sequence[Path]:
        return [kept.film(self.task), kept.timeline(self.task)]

    def perform(self, kept: Kept, tick: Tick) -> None:
        from bilevel.experiments.reproduction.films import FILMED, interesting_seed, make_film

        policy = kept.policy_of(self.entrant, self.task, self.seed)
        assert policy is not None
        seed = interesting_seed(policy, self.task, FILMED)
        timeline = make_film(policy, self.task, FILMED, seed, kept.film(self.task), self.entrant.name)
        write_atomically(kept.timeline(self.task), timeline.text())
