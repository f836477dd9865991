"""The commands that measure beyond the paper's table: the hard suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bilevel.commands.arguments import Json, answer
from bilevel.commands.evaluate_command import parse_numbers
from bilevel.commands.experiment_options import Count, ExperimentOptions, Names, Numbers
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.hard.selection import HardSelection
    from bilevel.experiments.reproduction.folder import Experiment


@dataclass(frozen=True)
class BenchmarkHard(ExperimentOptions):
    """Measure how far each method gets as one thing after the other is made harder: a curve for each.

    It works as `bilevel reproduce` does, and in the same folder uses the same policies: it can be stopped or killed at
    any time, and the same command goes on. Axes that are asked for later are added to those that are there.

    Examples: bilevel benchmark hard --output build/hard
              bilevel benchmark hard --axes teleports control-noise --tasks blocks --output build/hard
              bilevel benchmark hard --quick --output build/quick-hard
    """

    episodes: Count = None
    """For each point of a curve, with each seed (by default 4, or 3 if quick)."""
    axes: Names = ()
    """What is made harder (by default everything; `bilevel benchmark axes` lists it). `perception` stands for all axes
    whose names begin with it."""
    methods: Names = ()
    """Methods (by default bison, bison-paper, expert, det-replan, ndt-replan and pddl-nn)."""
    tasks: Names = ()
    """Tasks (by default blocks, factory, colour, gacha and swap); where objects teleport, their noisy twins."""
    objects: Numbers = None
    """How many objects there are on axes that are not about their number (by default 10, for perception 5, and 3 if
    quick)."""
    quick: bool = False
    """A smaller version, labelled as such: 50 demonstrations, short training, 3 objects, 3 episodes, 1 seed. What you
    give besides counts instead."""
    no_report: bool = False
    """Write no page, tables and figures."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.experiments.hard.request import hard_request

        self.check_options()
        experiment = self.experiment_like(self._usual_experiment())
        return self.start(hard_request(self._selection(), experiment, not self.no_report), experiment)

    def _usual_experiment(self) -> Experiment:
        """Return the experiment of the folder, if there is one, so that its policies are used."""
        from bilevel.experiments.hard.selection import HARD
        from bilevel.experiments.reproduction.folder import EXPERIMENT, QUICK, read_experiment

        if (self.output / EXPERIMENT).is_file() and not self.quick:
            return read_experiment(self.output)
        return QUICK if self.quick else HARD

    def _selection(self) -> HardSelection:
        from bilevel.experiments.hard.axes import METHODS, TASKS, find_axes
        from bilevel.experiments.hard.selection import HardSelection
        from bilevel.experiments.reproduction.selection import room
        from bilevel.experiments.reproduction.variants import find_variant

        for task in self.tasks:
            if task not in TASKS:
                raise BadInput(f"unknown task '{task}'; tasks of the hard suite: {', '.join(TASKS)}")
        tasks = tuple(dict.fromkeys(self.tasks or TASKS))
        objects, episodes, seeds = ("3", 3, 1) if self.quick else (None, 4, 3)
        given = self.objects or objects
        return HardSelection(
            axes=tuple(axis.name for axis in find_axes(self.axes)),
            tasks=tasks,
            methods=tuple(find_variant(name).name for name in dict.fromkeys(self.methods or METHODS)),
            objects=parse_numbers(given, max(map(room, tasks))) if given else (),
            episodes=self.episodes or episodes,
            seeds=self.seeds or seeds,
        )


@dataclass(frozen=True)
class BenchmarkAxes:
    """List the axes of the hard suite: what each makes harder, from which value to which, on which tasks.

    Example: bilevel benchmark axes
    """

    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.experiments.hard.axes import AXES

        rows = [
            {"axis": axis.name, "about": axis.about, "values": list(axis.values), "tasks": list(axis.tasks.values())}
            for axis in AXES.values()
        ]
        lines = []
        for axis in AXES.values():
            lines += [f"{axis.name}: {axis.about}", f"    {', '.join(map(axis.show, axis.values))} {axis.title}"]
            lines += [f"    on {', '.join(axis.tasks.values())}"]
        answer({"axes": rows}, self.json, *lines)
        return 0
