"""The command that learns policies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from bilevel.commands.arguments import count, print_json, progress_bar, require_at_least
from bilevel.commands.demonstration_commands import Folder
from bilevel.files import taken_by_another
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.baselines.end_to_end_folder import SavedEndToEnd
    from bilevel.demonstrations.dataset import Dataset
    from bilevel.learning.bilevel import LearningConfig, Progress
    from bilevel.lowlevel.tensorboard import Note
    from bilevel.policies.policy_folder import SavedPolicy

PolicyFolder = Annotated[Path, tyro.conf.arg(metavar="POLICY")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]
OptionalCount = Annotated[int | None, tyro.conf.arg(metavar="N")]


@contextmanager
def needing_torch() -> Iterator[None]:
    """Learning is an extra beside the worlds: imported only by the commands that need it."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = "learning" if error.name == "torch" else "worlds"
        raise BadInput(f"{error.name} is missing; install it with: pip install 'bilevel[{extra}]'") from None


@dataclass(frozen=True)
class Learn:
    """Learn a policy from demonstrations: rules that decide and a network that moves the hand, or what a rival needs.

    Stopped or killed, it goes on where it was when the same command is given again, and comes to the same result.

    Example: bilevel learn build/blocks --output build/policy --workers 2
    """

    folder: Folder
    """Folder of the data set; see `bilevel collect`."""
    output: PolicyFolder
    """New folder for the policy: policy.json, rules.txt, domain.pddl, weights.safetensors, training.jsonl."""
    method: str = "bison"
    """What to learn: bison; or pddl-nn or pure-nn, a network that does all. det-plan, det-replan, ndt-plan and
    ndt-replan run on the same policy as bison."""
    recipe: Literal["best", "paper"] = "best"
    """`best` trains briefly, then practises and learns from what went wrong (DAgger); `paper` clones for 200 epochs."""
    seed: int = 0
    """Decides the first weights, the order of the samples, and how practice begins."""
    epochs: OptionalCount = None
    """How often training goes over the demonstrations (by default as the recipe says)."""
    dagger_rounds: OptionalCount = None
    """How often to practise and train again; 0 for never (by default as the recipe says)."""
    workers: int = 1
    """How many processes practise at the same time; the policy is the same for any number."""
    tensorboard: OptionalFolder = None
    """Write the losses here for TensorBoard, too; needs the extra `tensorboard`."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        self._check()
        with needing_torch():
            from bilevel.demonstrations.dataset import read_dataset
            from bilevel.experiments.training import check_learned
            from bilevel.learning.bilevel import RECIPES
            from bilevel.processes import WorkerDied
        check_learned(self.method)
        dataset = read_dataset(self.folder)
        config = self._config(RECIPES[self.recipe])
        with ExitStack() as open_things:
            watch = _Watch(self._notes(open_things))
            self._prepare_output(open_things)
            open_things.enter_context(watch.bar)
            try:
                saved = self._learn(dataset, config, watch)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"interrupted at {watch.far}; run the same command again to go on") from None
            except WorkerDied as error:
                raise BadInput(f"{error}; run the same command again to go on") from None
        self._tell(saved)
        return 0

    def _check(self) -> None:
        require_at_least(0, seed=self.seed, dagger_rounds=self.dagger_rounds)
        require_at_least(1, epochs=self.epochs, workers=self.workers)

    def _config(self, config: LearningConfig) -> LearningConfig:
        """The recipe with what was given instead."""
        if self.epochs is not None:
            config = replace(config, training=replace(config.training, epochs=self.epochs))
        if self.dagger_rounds is not None:
            config = replace(config, dagger=replace(config.dagger, rounds=self.dagger_rounds))
        return config

    def _prepare_output(self, open_things: ExitStack) -> None:
        """A folder with checkpoints is gone on with, by one process at a time; one with anything else is left alone."""
        from bilevel.policies.policy_folder import POLICY, UNFINISHED

        try:
            if (self.output / POLICY).exists():
                raise BadInput(f"{self.output}: already holds a policy; choose another --output or remove it")
            if self.output.exists() and not self.output.is_dir():
                raise BadInput(f"{self.output}: this is a file; choose a new folder as --output")
            if self.output.exists() and not (self.output / UNFINISHED).exists() and any(self.output.iterdir()):
                raise BadInput(f"{self.output}: holds other files; choose a new folder as --output")
            (self.output / UNFINISHED).mkdir(parents=True, exist_ok=True)
            handle = os.open(self.output, os.O_RDONLY)
        except OSError as error:
            raise BadInput(f"{self.output}: cannot be written: {error.strerror}") from None
        open_things.callback(os.close, handle)
        if taken_by_another(handle):
            raise BadInput(f"{self.output}: another process is learning here; wait for it or choose another --output")

    def _learn(self, dataset: Dataset, config: LearningConfig, watch: _Watch) -> SavedPolicy | SavedEndToEnd:
        from bilevel.experiments.training import train
        from bilevel.policies.policy_folder import UNFINISHED

        checkpoints = self.output / UNFINISHED
        saved = train(
            dataset,
            self.output,
            self.method,
            config,
            seed=self.seed,
            recipe=self.recipe,
            workers=self.workers,
            checkpoints=checkpoints,
            tell=watch,
        )
        shutil.rmtree(checkpoints, ignore_errors=True)
        return saved

    def _notes(self, open_things: ExitStack) -> Note | None:
        if self.tensorboard is None:
            return None
        from bilevel.lowlevel.tensorboard import loss_notes

        return open_things.enter_context(loss_notes(self.tensorboard))

    def _tell(self, saved: SavedPolicy | SavedEndToEnd) -> None:
        found, parameters, rules = saved.summary, saved.architecture.size, getattr(saved, "rules", None)
        if self.json:
            print_json(
                output=str(self.output),
                task=saved.task,
                method=self.method,
                rules=rules and [str(rule) for rule in rules],
                parameters=parameters,
                digest=saved.digest,
                **found,
            )
            return
        if rules is not None:
            print(saved.texts["rules.txt"])
        learned = f"{count(rules, 'rule')}, a network" if rules is not None else "a network"
        sources = f"{found['demonstrations']['episodes']} demonstrations, {found['samples']} samples"
        print(f"{learned} of {parameters} parameters; {sources}")
        print(f"validation loss {found['validation_loss']:.5f}, best at epoch {found['best_epoch']}")
        print(f"written to {self.output} in {found['seconds']:.1f} s")
        if self.method != saved.method:
            print(f"measure it with: bilevel evaluate --method {self.method} --policy {self.output} …")


class _Watch:
    """Shows how far learning is."""

    def __init__(self, note: Note | None) -> None:
        self.far = "the beginning"
        self.bar = progress_bar()
        self._row = self.bar.add_task("reading", total=None)
        self._note = note

    def __call__(self, progress: Progress) -> None:
        self.far = f"{progress.stage}, {progress.done} of {progress.total}"
        self.bar.update(self._row, description=progress.stage, completed=progress.done, total=progress.total)
        if self._note and progress.epoch:
            self._note(progress.stage, progress.epoch)
