"""The command that learns policies."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

if TYPE_CHECKING:
    from bilevel.learning.networks import LearningConfig
    from bilevel.policies.folder import LearnedNetwork
    from bilevel.progress import Progress

PolicyFolder = Annotated[Path, tyro.conf.arg(metavar="POLICY")]
EpisodeFiles = Annotated[Paths, tyro.conf.arg(metavar="FILE...")]
Rate = Annotated[Optional[float], tyro.conf.arg(metavar="X")]
OptionalCount = Annotated[Optional[int], tyro.conf.arg(metavar="N")]


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
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.learning.learn import learn
        from bilevel.learning.networks import PRESETS
        from bilevel.parallel import WorkerDied
        from bilevel.tasks.registry import find_task

        began, far = time.perf_counter(), "the beginning"
        with progress_bar() as bar, resumable(lambda: f"learning came to {far}", WorkerDied):
            row = bar.add_task("reading", total=None)

            def watch(progress: Progress) -> None:
                nonlocal far
                far = f"{progress.stage}, {progress.done} of {progress.total}"
                bar.update(row, description=progress.stage, completed=progress.done, total=progress.total)

            learned = learn(
                Demonstrations.read(self.folder),
                self.output,
                task=find_task(self.task) if self.task else None,
                method=self.method,
                preset=self.preset,
                seed=self.seed,
                config=self._config(PRESETS[self.preset]),
                from_episodes=self.from_episodes,
                learn_domain=self.learn_domain,
                workers=self.workers,
                callback=watch,
                log=self.log,
            )
        if not self.json:
            for remark in learned.card.summary.get("remarks", ()):
                print(remark, file=sys.stderr)
        self._report(learned, time.perf_counter() - began)
        return 0

    def _config(self, config: LearningConfig) -> LearningConfig:
        """The preset with what was given instead."""
        from msgspec.structs import replace

        from bilevel.methods.methods import BILEVEL, find_method

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
        return replace(config, dagger=replace(config.dagger, **_given(rounds=self.dagger_rounds)))

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
