"""The command that checks a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from bilevel.commands.arguments import EnvArguments, Json, TaskName, answer, count, env_arguments, require_at_least


@dataclass(frozen=True)
class Check:
    """Say what is wrong with a task, in words, before anything is learned.

    Makes the environment, resets and steps it with several seeds, with random controls and with the expert. Exits with
    1 if learning would fail.

    Example: bilevel check examples/own_world/own_world.py:task
    """

    task: TaskName
    objects: Optional[int] = None
    """How many objects; 3, or the most that the task takes."""
    seeds: int = 3
    """How many episodes with random controls, and how many with the expert."""
    env_args: EnvArguments = ()
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.learning.task_checking import check_task
        from bilevel.tasks.registry import find_task

        require_at_least(1, seeds=self.seeds)
        task = find_task(self.task)
        findings = check_task(task, objects=self.objects, seeds=self.seeds, **env_arguments(self.env_args))
        errors = [finding for finding in findings if finding.is_error]
        found = [{"error": finding.is_error, "message": finding.message} for finding in findings]
        verdict = count(errors, "error") if errors else "no errors: a policy can be learned"
        advice = f"; {count(findings[len(errors) :], 'piece')} of advice" if len(findings) > len(errors) else ""
        values = {"task": task.name, "learnable": not errors, "findings": found}
        answer(values, self.json, *map(str, findings), f"{task.name}: {verdict}{advice}")
        return 1 if errors else 0
