"""The command that proposes predicates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from bilevel.commands.arguments import DataFolder, Json, OptionalTask, Output, answer, count, progress_bar, task_of

if TYPE_CHECKING:
    from bilevel.domain_learning.predicates.proposal import Proposal

ENOUGH = 0.9  # of the actions: if fewer are as the rules say, something is missing
MISSING = "so something is missing: a predicate, or a part of the goal"

GOAL_HELP = (
    "What is wanted: `final`, what the last scenes have in common; `task`, the facts that are recorded as goals; or "
    "FILE.py:function, which says of a scene whether all is done."
)
GoalText = Annotated[str, tyro.conf.arg(metavar="final|task|FILE.py:function", help=GOAL_HELP)]


@dataclass(frozen=True)
class ProposePredicates:
    """Propose predicates for a task from what is seen in its demonstrations, as a Python file to read and edit.

    Only the spec, the scenes and the goal are looked at, no label. The predicates are written as PDDL beside the file.

    Example: bilevel domain predicates build/blocks --output labels.py
    """

    folder: DataFolder
    output: Output
    """Where to write the labelling functions; it must end in .py."""
    goal: GoalText = "final"
    task: OptionalTask = None
    """Where the task is, for a goal that only the task can tell: file.py:task or module:task."""
    seed: int = 0
    """Decides which demonstrations are held out."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.domain_learning.predicates.proposal import propose_predicates
        from bilevel.files import require_writable
        from bilevel.symbolic.domain import BadInput
        from bilevel.tasks.registry import find_function, registered_task

        if self.output.suffix != ".py":
            raise BadInput(f"--output {self.output}: name a Python file, such as labels.py")
        data = Demonstrations.read(self.folder)
        task = task_of(data.task, self.task, str(self.folder)) if self.task else registered_task(data.task)
        goal: Any = find_function(self.goal) if ":" in self.goal else self.goal
        require_writable(self.output)
        with progress_bar() as progress:
            bar = progress.add_task("choosing predicates", total=None)
            proposal = propose_predicates(
                data,
                task,
                goal=goal,
                seed=self.seed,
                callback=lambda number, bits: progress.update(
                    bar, completed=number, description=f"choosing predicates: {bits:.0f} bits"
                ),
            )
        beside = proposal.write(self.output)
        self._report(proposal, beside)
        return 0

    def _report(self, proposal: Proposal, beside: Path) -> None:
        found, learned = proposal.validation, proposal.validation.learned
        predicates = {str(one.name): (one.signature, one.comment) for one in proposal.definitions}
        held_out = count(found.demonstrations, "demonstration")
        others = f"{count(found.unexplained, 'change')} that no action explains"
        agreement = f"{found.agreeing} of {found.actions} actions are as the rules say"
        answer(
            {
                "predicates": {name: comment for name, (_, comment) in predicates.items()},
                "candidates": proposal.candidates,
                "goals": sorted(goal.text for goal in proposal.goals),
                "bits": round(proposal.description.bits, 1),
                "untold": proposal.description.untold,
                "rare": proposal.description.rare,
                "operators": {name: sum(counts) for name, counts in learned.counts.items()},
                "rules": [str(rule) for rule in found.rules],
                "held_out": found.demonstrations,
                "actions": found.actions,
                "unexplained": found.unexplained,
                "agreeing": found.agreeing,
                "solved": found.solved,
                "output": str(self.output),
            },
            self.json,
            f"{count(len(predicates), 'predicate')} of {count(proposal.candidates, 'candidate')}:",
            *(f"  {signature:28} {comment}" for signature, comment in predicates.values()),
            *(f"goal: {goal.text}" for goal in proposal.goals),
            self._left_over(proposal),
            f"learned with them: {', '.join(f'{name} ({sum(n)})' for name, n in learned.counts.items())}; "
            f"{count(found.rules, 'rule')}",
            f"in {held_out} held out: {agreement}; {others}; the rules solve {found.solved}",
            "" if found.agreeing > ENOUGH * found.actions else MISSING,
            f"written to {self.output} and {beside}",
        )

    def _left_over(self, proposal: Proposal) -> str:
        """Return what the predicates do not tell, where there is something."""
        about = proposal.description
        untold = f"{count(about.untold, 'interaction')} with objects that no predicate tells of" if about.untold else ""
        rare = f"{count(about.rare, 'change')} too rare to be an operator" if about.rare else ""
        return f"left over: {' and '.join(filter(None, (untold, rare)))}" if untold or rare else ""
