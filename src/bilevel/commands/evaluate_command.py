"""The commands that measure how often a policy succeeds, and list the methods that can be measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Optional

import tyro

from bilevel.commands.arguments import (
    EnvArguments,
    EstimationName,
    GivenTask,
    Json,
    LogTarget,
    Noise,
    Output,
    PerceptionText,
    RecoveryText,
    WorkerCount,
    answer,
    count,
    env_arguments,
    progress_bar,
    require_at_least,
    require_positive,
    resumable,
)
from bilevel.commands.help_text import two_columns
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.records import Record
    from bilevel.progress import Progress

OptionalPolicy = Annotated[Optional[Path], tyro.conf.arg(metavar="POLICY")]
Numbers = Annotated[str, tyro.conf.arg(metavar="N-M")]


@dataclass(frozen=True)
class Evaluate:
    """Run a policy in many episodes that it has not seen, and say how often it succeeds, and why it fails.

    Stopped or killed, it goes on where it was when the same command is given again. The results are the same for any
    number of workers.

    Examples: bilevel evaluate --policy build/policy --objects 1-10 --episodes 10 --output build/results.jsonl
              bilevel evaluate cubes.py:task --policy build/policy --output build/cubes.jsonl
    """

    output: Output
    """Where to write the results: one line of JSON for each episode. The seconds and the memory that
    they took go to a second file beside it, such as results.timings.jsonl."""
    task: GivenTask = None
    """The name of a task, or where it is: file.py:task (by default the one that the policy was learned on)."""
    policy: OptionalPolicy = None
    """Folder of the policy, see `bilevel learn`; or the name of a pretrained one, see `bilevel policies` (by default
    the pretrained policy of the task, if it has one)."""
    method: Optional[str] = None
    """Who acts: bison, expert, pure-nn, pddl-nn, det-plan, det-replan, ndt-plan, ndt-replan, smolvla, smolvla-metaworld
    or lama (by default as the policy was learned). See docs/methods.md for what each of them needs."""
    planner: Optional[str] = None
    """What a method plans with: for det-plan and det-replan lama or search, for ndt-plan and ndt-replan fond."""
    planning_seconds: Optional[float] = None
    """How long each plan may take (by default 100)."""
    objects: Numbers = "1-10"
    """How many objects, as the task counts them: 3, 1-10, or 1-3,10."""
    episodes: int = 10
    """How many episodes for each number of objects."""
    seed: int = 0
    """Decides everything that is random; no episode of `bilevel collect` is among those that it stands for."""
    workers: WorkerCount = None
    """How many processes run episodes at the same time (by default one for each core, where that saves time, and one
    in all for a policy that looks at pictures)."""
    noise: Noise = 0.0
    recovery: RecoveryText = None
    keep_incidents: bool = False
    """Keep the states in which the policy was at a loss, for `bilevel learn --from-episodes`."""
    perception: PerceptionText = ""
    estimation: EstimationName = None
    env_args: EnvArguments = ()
    log: LogTarget = None
    """Note the success rate on the way for TensorBoard or Weights & Biases; needs the extra of that name."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.experiments.evaluate import evaluate
        from bilevel.parallel import WorkerDied

        require_at_least(1, workers=self.workers, episodes=self.episodes)
        require_at_least(0, noise=self.noise, seed=self.seed)
        require_positive(planning_seconds=self.planning_seconds)
        done = kept = total = 0

        def state() -> str:
            return f"{done} of {count(total, 'episode')} are in {self.output}" if total else "nothing was run"

        with resumable(state, WorkerDied), progress_bar() as bar:
            shown = bar.add_task("evaluating", total=None)

            def show(progress: Progress) -> None:
                nonlocal done, kept, total
                kept = kept if total else progress.done
                done, total = progress.done, progress.total or 0
                rate = progress.values.get("success rate", 1.0)
                failed = f" ({round(done * (1 - rate))} failed)" if rate < 1 else ""
                bar.update(shown, total=total, completed=done, description=f"evaluating{failed}")

            records = evaluate(
                self.policy,
                self.task,
                objects=parse_numbers(self.objects, None),
                episodes=self.episodes,
                seed=self.seed,
                noise=self.noise,
                method=self.method,
                planner=self.planner,
                planning_seconds=self.planning_seconds,
                recovery=self.recovery,
                perception=self.perception,
                estimation=self.estimation,
                keep_incidents=self.keep_incidents,
                output=self.output,
                workers=self.workers,
                callback=show,
                log=self.log,
                **env_arguments(self.env_args),
            )
        self._report(records, kept)
        return 0

    def _report(self, records: list[Record], kept: int) -> None:
        from bilevel.experiments.statistics import summarise, summarise_by_objects, table

        there = f", {kept} of them already there" if kept else ""
        first = records[0]
        usual = " with the pretrained policy" if first.policy and self.policy is None else ""
        answer(
            {
                "output": str(self.output),
                "task": first.task,
                "method": first.method,
                "policy": first.policy,
                "already_there": kept,
                "by_objects": {str(size): row.as_json() for size, row in summarise_by_objects(records).items()},
                "total": summarise(records).as_json(),
            },
            self.json,
            f"{first.task}, {first.method}{usual}: {count(records, 'episode')}{there}",
            *table(records),
            f"written to {self.output}",
        )


def parse_numbers(text: str, most: int | None) -> tuple[int, ...]:
    """Numbers of objects from 1 to `most`, if there is one, such as 3, 1-10 or 1-3,10; in order, each of them once."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = _number(first, text), _number(last if dash else first, text)
        if low > high:
            raise BadInput(f"--objects: the range {part} ends before it begins")
        if low < 1 or (most is not None and high > most):
            wanted = f"1 to {most}" if most else "1 or more"
            raise BadInput(f"--objects: there can be {wanted} objects in this task, not {part}")
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def _number(word: str, text: str) -> int:
    word = word.strip()
    if not (word.isascii() and word.isdecimal() and len(word) < 10):
        raise BadInput(f"--objects takes numbers and ranges, such as 3, 1-10 or 1-3,10, not '{text}'")
    return int(word)


@dataclass(frozen=True)
class Methods:
    """List the methods that can be compared: what each of them is, how it is learned, and what it lacks here."""

    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.methods.methods import METHODS

        rows = [
            {
                "name": name,
                "title": method.title,
                "about": method.about,
                "training": method.training,
                "planners": method.planners,
                "missing": method.missing(),
            }
            for name, method in METHODS.items()
        ]
        lines = []
        for row in rows:
            learned = "" if row["training"] is None else f"; learned, {row['training']}"
            lines.append((str(row["name"]), f"{row['about']}{learned}"))
            lines += [("", f"not here: {row['missing']}")] if row["missing"] else []
        answer({"methods": rows}, self.json, dedent(two_columns(lines)))
        return 0
