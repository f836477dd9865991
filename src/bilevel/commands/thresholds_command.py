"""The command that fits thresholds of labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import tyro

from bilevel.commands.arguments import (
    DataFolder,
    Json,
    OptionalTask,
    PerceptionText,
    answer,
    count,
    progress_bar,
    task_of,
)

if TYPE_CHECKING:
    from bilevel.learning.thresholds import ThresholdFit

OptionalPolicy = Annotated[Optional[Path], tyro.conf.arg(metavar="POLICY")]


@dataclass(frozen=True)
class FitThresholds:
    """Fit the thresholds of a task's labels to imperfect perception, and say what is gained on held-out demonstrations.

    The demonstrations say what holds; what is seen of them with this perception should be labelled in the same way.

    Example: bilevel demonstrations thresholds build/blocks --perception noise=0.01 --policy build/policy
    """

    folder: DataFolder
    perception: PerceptionText
    policy: OptionalPolicy = None
    """Keep them in the folder of this policy, which will label with them; they are fitted to what its state estimation
    makes of what is seen."""
    estimation: Literal["on", "off"] = "on"
    """`off`: fit them to what is seen without the policy's state estimation."""
    task: OptionalTask = None
    """Where the task is, if it is not registered: file.py:task or module:task."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.learning.thresholds import fit_thresholds
        from bilevel.policies.policy_folder import keep_thresholds, read_policy
        from bilevel.tasks.perception import read_perception

        perception, data = read_perception(self.perception), Demonstrations.read(self.folder)
        task, estimation = task_of(data.task, self.task, str(self.folder)), None
        if self.policy:
            found = read_policy(self.policy)
            found.check_task(task)
            estimation = found.card.estimation if self.estimation == "on" else None
        with progress_bar() as progress:
            bar = progress.add_task("fitting")
            fit = fit_thresholds(
                data,
                task,
                perception,
                estimation,
                lambda done, total: progress.update(bar, completed=done, total=total),
            )
        if self.policy:
            keep_thresholds(self.policy, fit.fitted if fit.changed else {})
        self._report(fit)
        return 0

    def _report(self, fit: ThresholdFit) -> None:
        rows = [("threshold", "default", "fitted", "agreement if only this one is not")]
        rows += [
            (name, f"{fit.defaults[name]:g}", f"{value:g}", f"{fit.without[name]:.4f}")
            for name, value in fit.fitted.items()
        ]
        gained = f"{fit.before:.4f} with the defaults, {fit.after:.4f} fitted to {count(fit.demonstrations, 'other')}"
        answer(
            {
                "thresholds": dict(fit.fitted),
                "defaults": dict(fit.defaults),
                "agreement_before": fit.before,
                "agreement_after": fit.after,
                "agreement_without": fit.without,
                "demonstrations": fit.demonstrations,
                "held_out": fit.held_out,
            },
            self.json,
            *(f"{name:12} {default:>9} {value:>9}  {without}" for name, default, value, without in rows),
            f"agreement in {count(fit.held_out, 'held-out demonstration')}: {gained}",
            "" if fit.changed else "no other thresholds are better: the defaults are kept",
            f"written to {self.policy}" if self.policy and fit.changed else "",
        )
