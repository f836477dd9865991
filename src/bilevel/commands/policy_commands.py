"""The command that learns policies."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import tyro

from bilevel.commands.arguments import (
    Algorithm,
    DataFolder,
    Json,
    LogTarget,
    OptionalTask,
    Paths,
    WorkerCount,
    answer,
    count,
    progress_bar,
    require_at_least,
    require_positive,
    resumable,
)
from bilevel.files import alone_in, remove_leftovers, write_atomically
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.learning.networks import LearningConfig, LearningOptions, Progress
    from bilevel.metrics import Log
    from bilevel.policies.policy_folder import LearnedNetwork
    from bilevel.symbolic.domain import Problem

PolicyFolder = Annotated[Path, tyro.conf.arg(metavar="POLICY")]
EpisodeFiles = Annotated[Paths, tyro.conf.arg(metavar="FILE...")]
Rate = Annotated[Optional[float], tyro.conf.arg(metavar="X")]
OptionalCount = Annotated[Optional[int], tyro.conf.arg(metavar="N")]

PICTURE = "training.png"


@dataclass(frozen=True)
class Learn:
    """Learn a policy from demonstrations: rules that decide and a network that acts, or what a rival needs.

    Stopped or killed, it goes on where it was when the same command is given again, and comes to the same result.

    Example: bilevel learn build/blocks --output build/policy
    """

    folder: DataFolder
    output: PolicyFolder
    """New folder for the policy: policy.json, rules.txt, domain.pddl, weights.safetensors; and how it was trained, in
    training.jsonl and, where matplotlib is installed, training.png."""
    task: OptionalTask = None
    """The task, for its labels and for DAgger (by default the one registered under the data set's name; without one,
    the recorded labels are used, and there is no DAgger)."""
    method: str = "bison"
    """What to learn: bison; or pddl-nn or pure-nn, a network that does all. det-plan, det-replan, ndt-plan and
    ndt-replan run on the same policy as bison."""
    preset: Literal["best", "paper"] = "best"
    """`best` completes the rules, trains briefly, then lets the policy act and learns from what went wrong (DAgger);
    `paper` clones for 200 epochs."""
    seed: int = 0
    """Decides the first weights, the order of the samples, and how DAgger rollouts begin."""
    epochs: OptionalCount = None
    """How often training goes over the demonstrations (by default as the preset says: `best` goes over few ones more
    often)."""
    updates: OptionalCount = None
    """So many steps of training over all epochs, however many samples there are; 0 for one pass over the samples an
    epoch (by default as the preset says: `best` 5000 without --epochs)."""
    relevance: Optional[Literal["on", "off"]] = None
    """Whether to leave out arguments of actions that play no part in how these are done (by default as the preset says:
    `best` does)."""
    symmetries: Optional[Literal["on", "off"]] = None
    """Whether to train on mirrored samples, too, where the task's spec names symmetries (by default as the preset says:
    `best` does)."""
    batch_size: OptionalCount = None
    """How many samples each step of training is made of (by default 128)."""
    learning_rate: Rate = None
    """Of training at first; it falls to 0 along a cosine (by default 0.001)."""
    hidden: OptionalCount = None
    """How wide the layers of the network are (by default 64 for bison; for pddl-nn and pure-nn such that they have as
    many parameters as bison's)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """What to train on; `auto` takes a GPU where torch can use one."""
    dagger_rounds: OptionalCount = None
    """How many rounds of DAgger; 0 for none (by default as the preset says)."""
    completion: Optional[Literal["on", "off"]] = None
    """Whether to add rules for what no demonstration shows (by default as the preset says: `best` does)."""
    algorithm: Algorithm = "single-goal"
    """How rules are learned: from one goal at a time; or `printed`, by Algorithm 1 as the paper prints it, to see what
    comes of it (with --preset paper, or without completion and DAgger)."""
    recorded_actions: Optional[Literal["on", "off"]] = None
    """Before a change that no action explains, such as a teleport: whether steps count as what the expert was recorded
    to be doing, or are left out (by default as the preset says: `best` uses them, `paper` does not)."""
    from_episodes: EpisodeFiles = ()
    """Results of `bilevel evaluate --keep-incidents`: learn from the states in which a policy was at a loss, too."""
    learn_domain: bool = False
    """Learn the actions of the domain from the demonstrations, too, whatever domain they have."""
    workers: WorkerCount = None
    """How many processes run DAgger rollouts at the same time (by default one for each core, where that saves time);
    the policy is the same for any number."""
    log: LogTarget = None
    """Note losses, learning rate and successes of DAgger rollouts for TensorBoard or Weights & Biases, too; needs the
    extra of that name."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        require_at_least(0, seed=self.seed, dagger_rounds=self.dagger_rounds, updates=self.updates)
        require_at_least(1, epochs=self.epochs, workers=self.workers, batch_size=self.batch_size, hidden=self.hidden)
        require_positive(learning_rate=self.learning_rate)
        from bilevel.commands.unfinished import finish, go_on_with
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.learning.learn import require_actions
        from bilevel.learning.networks import PRESETS, LearningOptions
        from bilevel.methods.methods import check_learned, train
        from bilevel.metrics import open_log
        from bilevel.policies.episode import read_problems
        from bilevel.policies.policy_folder import UNFINISHED
        from bilevel.processes import WorkerDied
        from bilevel.tasks.registry import find_task, registered_task

        began = time.perf_counter()
        check_learned(self.method)
        demonstrations = Demonstrations.read(self.folder)
        met: Sequence[Problem] = ()
        if not self.learn_domain:
            require_actions(demonstrations)
            met = read_problems(self.from_episodes, demonstrations.domain)
        config = self._config(PRESETS[self.preset])
        task = find_task(self.task) if self.task else registered_task(demonstrations.task)
        with ExitStack() as open_things:
            about = self._about(config)
            watch = _Watch(open_things.enter_context(open_log(self.log, {"task": demonstrations.task, **about})))
            self._prepare_output(open_things)
            go_on_with(self.output / UNFINISHED, self.output, about)
            open_things.enter_context(watch.bar)
            open_things.enter_context(resumable(lambda: f"learning came to {watch.far}", WorkerDied))
            options = LearningOptions(
                task, self.preset, config, self.seed, self.workers, self.output / UNFINISHED, watch, met
            )
            if self.learn_domain:
                demonstrations, options = self._learn_domain(demonstrations, options)
            self._say_whether_dagger(demonstrations, options)
            learned = train(demonstrations, self.output, self.method, options)
            self._draw_curve(learned)
            finish(self.output / UNFINISHED)
        self._report(learned, time.perf_counter() - began)
        return 0

    def _learn_domain(
        self, demonstrations: Demonstrations, options: LearningOptions
    ) -> tuple[Demonstrations, LearningOptions]:
        """Learn the domain first, and what an earlier policy met is then told in it."""
        from bilevel.learning.learn import with_learned_domain
        from bilevel.learning.networks import Progress
        from bilevel.policies.episode import read_problems

        options.callback(Progress("learning the domain", 0, 1))
        demonstrations, options = with_learned_domain(demonstrations, options)
        return demonstrations, replace(options, met=read_problems(self.from_episodes, demonstrations.domain))

    def _config(self, config: LearningConfig) -> LearningConfig:
        """The preset with what was given instead."""
        from msgspec.structs import replace

        from bilevel.lowlevel.training import find_device
        from bilevel.methods.methods import BILEVEL, find_method
        from bilevel.policies.policy_folder import MAX_HIDDEN

        if self.hidden is not None and self.hidden > MAX_HIDDEN:
            raise BadInput(f"--hidden must be at most {MAX_HIDDEN}, but is {self.hidden}")
        find_device(self.device)
        training = _given(
            epochs=self.epochs,
            updates=0 if self.updates is None and self.epochs is not None else self.updates,
            symmetries=_switch(self.symmetries),
            batch=self.batch_size,
            learning_rate=self.learning_rate,
        )
        is_bilevel = find_method(self.method).training == BILEVEL
        both = _given(
            complete=_switch(self.completion),
            relevance=_switch(self.relevance),
            recorded_actions=_switch(self.recorded_actions),
            **{"hidden" if is_bilevel else "end_to_end_hidden": self.hidden},
        )
        config = replace(config, algorithm=self.algorithm, **both)
        config = replace(config, training=replace(config.training, device=self.device, **training))
        config = replace(config, dagger=replace(config.dagger, **_given(rounds=self.dagger_rounds)))
        if self.from_episodes and not config.complete:
            raise BadInput("--from-episodes is for completing rules: add --completion on")
        return config

    def _say_whether_dagger(self, demonstrations: Demonstrations, options: LearningOptions) -> None:
        """Say why there is no DAgger, or about which learned actions it cannot ask."""
        from bilevel.learning.learn import why_no_dagger
        from bilevel.methods.methods import BILEVEL, find_method

        if self.json or not options.settings.dagger.rounds:
            return
        why = why_no_dagger(demonstrations, options, is_bilevel=find_method(self.method).training == BILEVEL)
        asked_as = options.learned.summary["asked_as"] if options.learned else {}
        unknown = [name for name, known in asked_as.items() if not known]
        if why:
            print(f"{why}: learning without DAgger", file=sys.stderr)
        elif unknown:
            print(f"the expert cannot be asked about {', '.join(unknown)}: it was never seen to do it", file=sys.stderr)

    def _prepare_output(self, open_things: ExitStack) -> None:
        """A folder with checkpoints is gone on with, by one process at a time; one with anything else is left alone."""
        from bilevel.commands.unfinished import is_begun
        from bilevel.policies.policy_folder import POLICY, UNFINISHED

        try:
            begun = is_begun(self.output / UNFINISHED)
            if (self.output / POLICY).exists() and not begun:
                shutil.rmtree(self.output / UNFINISHED, ignore_errors=True)
                raise BadInput(f"{self.output}: already holds a policy; choose another --output or remove it")
            if self.output.exists() and not self.output.is_dir():
                raise BadInput(f"{self.output}: this is a file; choose a new folder as --output")
            if self.output.exists() and not begun and any(path.name != UNFINISHED for path in self.output.iterdir()):
                raise BadInput(f"{self.output}: holds other files; choose a new folder as --output")
            (self.output / UNFINISHED).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self.output}: cannot be written: {error.strerror}") from None
        open_things.enter_context(alone_in(self.output, "learning"))

    def _about(self, config: LearningConfig) -> dict[str, Any]:
        """All options that decide what is learned."""
        from msgspec import to_builtins

        names = ("method", "preset", "seed", "learn_domain")
        return {**{name: getattr(self, name) for name in names}, **to_builtins(config)}

    def _draw_curve(self, learned: LearnedNetwork) -> None:
        """Draw how it was trained, where that is possible."""
        from bilevel.learning.learn import CURVES

        if find_spec("matplotlib") is None:
            return
        from bilevel.learning.training_curve import draw_training_curve

        lines = [json.loads(line) for line in (self.output / CURVES).read_text(encoding="utf-8").splitlines()]
        picture = draw_training_curve(lines, learned.card.summary["best_epoch"])
        remove_leftovers(self.output / PICTURE)
        write_atomically(self.output / PICTURE, picture)

    def _report(self, learned: LearnedNetwork, seconds: float) -> None:
        found, rules = learned.card.summary, getattr(learned, "rules", None)
        values = {
            "output": str(self.output),
            "task": learned.card.task,
            "method": self.method,
            "rules": rules and [str(rule) for rule in rules],
            "digest": learned.digest,
            **found,
            "seconds": round(seconds, 1),
        }
        what = f"{count(rules, 'rule')}, a network" if rules is not None else "a network"
        sources = f"{found['demonstrations']['episodes']} demonstrations, {found['samples']} samples"
        others = self.method != learned.card.method
        answer(
            values,
            self.json,
            learned.texts().get("rules.txt", ""),
            _domain_line(found.get("domain")),
            _irrelevant_line(found.get("irrelevant", {})),
            f"{what} of {learned.parameters} parameters; {sources}",
            f"validation loss {found['validation_loss']:.5f}, best at epoch {found['best_epoch']}",
            f"written to {self.output} in {seconds:.1f} s",
            f"measure it with: bilevel evaluate --method {self.method} --policy {self.output} …" if others else "",
        )


def _given(**options: float | None) -> dict[str, Any]:
    """Only the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _switch(word: str | None) -> bool | None:
    return None if word is None else word == "on"


def _domain_line(found: Mapping[str, Any] | None) -> str:
    """Say what was learned of the domain, if anything was."""
    if found is None:
        return ""
    seen = (f"{name} {sum(counts)}" for name, counts in found["seen"].items())
    return f"the domain was learned: {', '.join(seen)}; {count(found['dropped'], 'change')} left out"


def _irrelevant_line(found: Mapping[str, Sequence[str]]) -> str:
    """Say which arguments of actions the network is not told of, if any."""
    named = ", ".join(f"{' '.join(parameters)} in {name}" for name, parameters in found.items())
    return f"left out, as it plays no part in how the action is done: {named}" if named else ""


class _Watch:
    """Shows how far learning is, and notes what is measured on the way."""

    def __init__(self, log: Log) -> None:
        self.far = "the beginning"
        self.bar = progress_bar()
        self._row = self.bar.add_task("reading", total=None)
        self._log, self._began = log, time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        self.far = f"{progress.stage}, {progress.done} of {progress.total}"
        self.bar.update(self._row, description=progress.stage, completed=progress.done, total=progress.total)
        values: dict[str, float] = {}
        if epoch := progress.epoch:
            values = {"loss/training": epoch.training_loss, "loss/validation": epoch.validation_loss}
            values |= {"learning rate": epoch.learning_rate, "seconds": time.perf_counter() - self._began}
        if found := progress.rollouts:
            values = {"DAgger/success rate": found.successes / found.rollouts, "DAgger/round": found.round}
        if values:
            self._log(values, progress.epochs)
