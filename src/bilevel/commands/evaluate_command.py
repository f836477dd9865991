"""The command that measures how often a policy succeeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from bilevel.commands.arguments import (
    Output,
    count,
    print_json,
    progress_bar,
    require_amplitude,
    require_at_least,
    require_positive,
)
from bilevel.commands.demonstration_commands import needing_worlds
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.sweep import Evaluation, Results

OptionalTask = Annotated[str | None, tyro.conf.arg(metavar="TASK")]
OptionalPolicy = Annotated[Path | None, tyro.conf.arg(metavar="POLICY")]
Numbers = Annotated[str, tyro.conf.arg(metavar="N-M")]


@dataclass(frozen=True)
class Evaluate:
    """Run a policy in many episodes that it has not seen, and say how often it succeeds, and why it fails.

    Stopped or killed, it goes on where it was when the same command is given again. The results are the same for any
    number of workers.

    Example: bilevel evaluate --policy build/policy --objects 1-10 --episodes 10 --output build/results.jsonl
    """

    output: Output
    """Where to write the results: one line of JSON for each episode."""
    policy: OptionalPolicy = None
    """Folder of the policy; see `bilevel learn`."""
    method: str | None = None
    """Who acts: bison, expert, pure-nn, pddl-nn, det-plan, det-replan, ndt-plan, ndt-replan, smolvla, smolvla-metaworld
    or lama (by default as the policy was learned). See docs/methods.md for what each of them needs."""
    planner: str | None = None
    """What a method plans with: for det-plan and det-replan lama or search, for ndt-plan and ndt-replan fond or pr2."""
    planning_seconds: float | None = None
    """How long each plan may take (by default 100)."""
    task: OptionalTask = None
    """blocks, factory, colour, gacha, or one of them with -noisy; by default the one that the policy was learned on."""
    objects: Numbers = "1-10"
    """How many blocks, or in gacha target colours: 3, 1-10, or 1-3,10."""
    episodes: int = 10
    """How many episodes for each number of objects."""
    seed: int = 0
    """Decides everything that is random; no episode of `bilevel collect` is among those that it stands for."""
    workers: int = 1
    """How many processes run episodes at the same time."""
    noise: float = 0.0
    """Jostle the hand with bursts of this amplitude, such as 0.7."""
    teleport_rate: float | None = None
    """How probably an object at its goal teleports at a step (by default 0, in the noisy tasks 1/2000)."""
    draw: Literal["empty", "uniform"] | None = None
    """Gacha: draw among the colours whose trays are empty, or among all."""
    colours: int | None = None
    """Colour: how many colours there are."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> int:
        self._check()
        evaluation = self._evaluation()
        from bilevel.experiments.sweep import open_results

        with open_results(self.output, evaluation) as results:
            kept = len(results.records)
            try:
                self._collect(results)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"interrupted; {self._state(results)}") from None
            except BadInput as error:
                raise BadInput(f"{error}; {self._state(results)}") from None
        self._tell(results, kept)
        return 0

    def _check(self) -> None:
        require_at_least(1, workers=self.workers, episodes=self.episodes)
        require_at_least(0, seed=self.seed)
        require_amplitude(self.noise)
        require_positive(planning_seconds=self.planning_seconds)

    def _evaluation(self) -> Evaluation:
        with needing_worlds():
            from bilevel.experiments.methods import find_contender, method_of
            from bilevel.experiments.sweep import Evaluation
            from bilevel.tabletop.tasks import find_task

        method = self.method or method_of(self.policy)
        contender = find_contender(method, self.policy, self.planner, self.planning_seconds)
        name = self.task or contender.task
        if name is None:
            raise BadInput(f"the method '{method}' needs a --task")
        task = find_task(name)
        arguments = task.given(teleport_rate=self.teleport_rate, draw=self.draw, colours=self.colours)
        objects = parse_numbers(self.objects, contender.most(task))
        return Evaluation(contender, name, objects, self.episodes, self.seed, self.noise, arguments)

    def _collect(self, results: Results) -> None:
        failed = sum(not record.success for record in results.records)
        with progress_bar() as progress:
            bar = progress.add_task("", total=len(results.evaluation.jobs), completed=len(results.records))
            progress.update(bar, description=_description(failed))
            for record in results.collect(self.workers):
                failed += not record.success
                progress.update(bar, advance=1, description=_description(failed))

    def _state(self, results: Results) -> str:
        total = count(results.evaluation.jobs, "episode")
        return f"{len(results.records)} of {total} are in {self.output}; run the same command again to go on"

    def _tell(self, results: Results, kept: int) -> None:
        from bilevel.experiments.summary import make_row, rows_by_objects, table

        records, evaluation = results.records, results.evaluation
        if self.json:
            print_json(
                output=str(self.output),
                task=evaluation.task,
                method=evaluation.contender.method,
                policy=evaluation.contender.policy,
                already_there=kept,
                by_objects={str(size): row.as_json() for size, row in rows_by_objects(records).items()},
                total=make_row(records).as_json(),
            )
            return
        there = f", {kept} of them already there" if kept else ""
        print(f"{evaluation.task}, {evaluation.contender.method}: {count(records, 'episode')}{there}")
        print("\n".join(table(records)))
        print(f"written to {self.output}")


def _description(failed: int) -> str:
    return f"evaluating ({failed} failed)" if failed else "evaluating"


def parse_numbers(text: str, most: int) -> tuple[int, ...]:
    """Numbers of objects from 1 to `most`, such as 3, 1-10 or 1-3,10; in order, each of them once."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = _number(first, text), _number(last if dash else first, text)
        if low > high:
            raise BadInput(f"--objects: the range {part} ends before it begins")
        if low < 1 or high > most:
            raise BadInput(f"--objects: there can be 1 to {most} objects in this task, not {part}")
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def _number(word: str, text: str) -> int:
    word = word.strip()
    if not (word.isascii() and word.isdecimal() and len(word) < 10):
        raise BadInput(f"--objects takes numbers and ranges, such as 3, 1-10 or 1-3,10, not '{text}'")
    return int(word)
