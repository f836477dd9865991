"""The command that runs the whole experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bilevel.commands.evaluate_command import parse_numbers
from bilevel.commands.experiment_options import ExperimentOptions, Names, Numbers
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.reproduction.selection import Selection

PARTS = ("table", "memory", "scaling", "films", "report")


@dataclass(frozen=True)
class Reproduce(ExperimentOptions):
    """Run the whole experiment: collect, train, evaluate and report whatever is not there yet.

    It can be stopped or killed at any time: the same command goes on, here or on another machine that sees the folder.
    Several of them may work in one folder at the same time, and share the work. Results do not depend on who did what.

    Examples: bilevel reproduce --quick --output build/quick
              bilevel reproduce --tasks blocks gacha --methods bison det-replan --output build/some
              bilevel reproduce --backend ray --address auto --output build/all
    """

    methods: Names = ()
    """Rows of the table (by default all but smolvla and smolvla-metaworld, which need a download; a name that is none
    gets you the list)."""
    tasks: Names = ()
    """Tasks of the tabletop (by default the eight of the paper)."""
    objects: Numbers = None
    """How many blocks, or in gacha target colours (by default 1-10)."""
    quick: bool = False
    """A smaller version, labelled as such, which ends within 30 minutes on two cores: the rows of the paper and ours,
    50 demonstrations, short training, 1, 3 and 6 objects, 3 episodes, 1 seed. What you give besides counts instead."""
    parts: Names = PARTS
    """What to make: the table, memory (what each row needs), scaling (large problems for rules and planners), films (an
    episode of each task), report."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.experiments.reproduction.folder import QUICK, Experiment
        from bilevel.experiments.reproduction.selection import request

        self.check_options()
        if unknown := [part for part in self.parts if part not in PARTS]:
            raise BadInput(f"unknown part '{unknown[0]}'; there are: {', '.join(PARTS)}")
        return self.start(request(self._selection()), self.experiment_like(QUICK if self.quick else Experiment()))

    def _selection(self) -> Selection:
        from bilevel.experiments.reproduction.selection import Selection, find_task_names, room
        from bilevel.experiments.reproduction.variants import PAPERS_ROWS, USUAL, find_variant

        tasks = find_task_names(self.tasks)
        rows, objects, episodes, seeds = (PAPERS_ROWS, "1,3,6", 3, 1) if self.quick else (USUAL, "1-10", 10, 3)
        return Selection(
            tasks=tasks,
            variants=[find_variant(name) for name in dict.fromkeys(self.methods or rows)],
            objects=parse_numbers(self.objects or objects, max(map(room, tasks))),
            episodes=self.episodes or episodes,
            seeds=range(self.seeds or seeds),
            parts=self.parts,
        )
