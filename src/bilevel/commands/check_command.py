"""The command that checks a task before anything is learned."""

from __future__ import annotations

from dataclasses import dataclass

from bilevel.commands.arguments import EnvArguments, TaskName, count, env_arguments, print_json, require_at_least


@dataclass(frozen=True)
class Check:
    """Say what is wrong with a task, in words, before anything is learned.

    Makes the environment, resets and steps it with several seeds, with random controls and with the expert. Exits with
    1 if learning would fail.

    Example: bilevel check examples/own_world/own_world.py:task
    """

    task: TaskName
    """A task's name, or file.py:task, or module:task."""
    objects: int = 3
    """How many objects."""
    seeds: int = 3
    """How many episodes with random controls, and how many with the expert."""
    env_args: EnvArguments = ()
    """Further arguments of the environment."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        from bilevel.learning.task_checking import check_task
        from bilevel.tasks.registry import find_task

        require_at_least(1, seeds=self.seeds)
        task = find_task(self.task)
        findings = check_task(task, objects=self.objects, seeds=self.seeds, **env_arguments(self.env_args))
        errors = [finding for finding in findings if finding.is_error]
        if self.json:
            found = [{"error": finding.is_error, "message": finding.message} for finding in findings]
            print_json(task=task.name, learnable=not errors, findings=found)
        else:
            for finding in findings:
                print(finding)
            verdict = count(errors, "error") if errors else "no errors: a policy can be learned"
            advice = f"; {count(findings[len(errors) :], 'piece')} of advice" if len(findings) > len(errors) else ""
            print(f"{task.name}: {verdict}{advice}")
        return 1 if errors else 0
