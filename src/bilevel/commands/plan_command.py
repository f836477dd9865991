"""The command that plans: a sequence of actions, or a policy for whatever nature does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from bilevel.commands.arguments import DomainFile, OptionalOutput, ProblemFile, count, print_json, require_at_least
from bilevel.files import require_writable, write_atomically
from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import ContingentPlanner, ContingentPolicy, Deadline, NoModel, PlanStep, Status
from bilevel.planning.planners import CONTINGENT_PLANNERS, PLANNERS
from bilevel.planning.policy_drawing import draw_policy, policy_dot
from bilevel.planning.policy_formats import document, plan_items, plan_text, policy_items, policy_text
from bilevel.planning.pr2 import pr2
from bilevel.planning.strong_cyclic import ActionGraph, PolicyCheck, PolicyKind, check_policy, graph_of_plan
from bilevel.planning.strong_cyclic_proofs import is_proved
from bilevel.symbolic.adl import Compiled, read_for_planning
from bilevel.symbolic.domain import BadInput, Domain

MOST_SECONDS = 1_000_000
A_HOPE = "the domain is nondeterministic: the plan counts on the outcomes it names; a hope, not a promise"

Shell = Annotated[str | None, tyro.conf.arg(metavar="COMMAND")]
Seconds = Annotated[float, tyro.conf.arg(metavar="SECONDS")]


class _Found(NamedTuple):
    """A plan or a policy in every form, and what there is to say of it."""

    kind: Literal["plan", "policy"]
    text: str
    items: list[dict[str, Any]]  # for JSON
    noun: str  # what the items are
    remarks: Sequence[str]
    states: int  # that it can get into, as far as is known
    graph: Callable[[], ActionGraph]
    check: PolicyCheck | None = None

    @property
    def size(self) -> str:
        return count(self.items, self.noun)


class _Answer(NamedTuple):
    """What there is in the end: the status, a line where nothing was found, and how long it took."""

    status: Status
    message: str
    seconds: float
    found: _Found | None = None


@dataclass(frozen=True)
class FindPlan:
    """Plan: a sequence of actions or, where the domain is nondeterministic, a policy for whatever nature does.

    A policy is strong-cyclic: if nature is fair, following it always ends in the goal. That is checked before it is
    shown. Exits with 1 where there is no plan or policy, or none was found in time.

    Examples: bilevel plan domain.pddl problem.pddl; bilevel plan tireworld.pddl p1.pddl --output policy.svg
    """

    domain: DomainFile
    """PDDL domain file."""
    problem: ProblemFile
    """PDDL problem file."""
    planner: Literal["auto", "fast-downward", "lama", "search", "fond", "pr2"] = "auto"
    """For plans: `search` is built in, `fast-downward` and its quick variant `lama` need the extra `planners`. For
    policies: `fond` is built in, `pr2` is a program of your own. `auto` is `fond` for a nondeterministic domain; for
    any other it is `search`, and Fast Downward, where it is installed, for what that cannot do."""
    timeout: Seconds = 60.0
    """Give up after so many seconds."""
    output: OptionalOutput = None
    """Where to write the plan or policy instead of printing it: as JSON where the name ends in .json, as a drawing in
    .svg or .dot, else as text."""
    max_states: int = 20_000
    """Check a policy state by state if it can get into at most so many states, else decision by decision."""
    pr2_command: Shell = None
    """How to run PR2 or PRP; else the environment variable BILEVEL_PR2 says so."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        self._check()
        compiled = read_for_planning(self.domain, self.problem)
        if self.output is not None:
            require_writable(self.output)
        planner = self._contingent_planner(compiled.domain)
        answer = self._plan(compiled) if planner is None else self._policy(compiled, planner)
        if answer.status is Status.ERROR:
            raise BadInput(f"the planner failed on problem '{compiled.problem.name}': {answer.message}")
        if answer.found and self.output is not None:
            write_atomically(self.output, _rendered(answer.found, self.output, compiled))
        self._print_json(answer) if self.json else self._print(answer)
        return 0 if answer.found else 1

    def _check(self) -> None:
        if not 0 < self.timeout <= MOST_SECONDS:
            raise BadInput(f"--timeout must be between 0 and {MOST_SECONDS} seconds, but is {self.timeout}")
        require_at_least(1, max_states=self.max_states)
        if self.pr2_command is not None and self.planner != "pr2":
            raise BadInput("--pr2-command is only for --planner pr2")

    def _contingent_planner(self, domain: Domain) -> ContingentPlanner | None:
        if self.planner == "pr2":
            return partial(pr2, command=self.pr2_command)
        if self.planner == "auto":
            return None if domain.is_deterministic else CONTINGENT_PLANNERS["fond"]
        return CONTINGENT_PLANNERS.get(self.planner)

    def _plan(self, compiled: Compiled) -> _Answer:
        started = time.perf_counter()
        result = PLANNERS[self.planner](compiled.domain, compiled.problem, self.timeout)
        seconds = time.perf_counter() - started
        if result.status is Status.SOLVED:
            return _Answer(result.status, "", seconds, _found_plan(compiled, result.steps))
        return _Answer(result.status, self._too_late(result.status) or result.message, seconds)

    def _policy(self, compiled: Compiled, planner: ContingentPlanner) -> _Answer:
        domain, problem = compiled.domain, compiled.problem
        for name in makers_of_new_objects(domain, problem):
            raise NoModel(
                f"action '{name}' makes new objects, for which there are no policies; "
                "use --planner search for a plan that hopes for the best"
            )
        deadline, started = Deadline(self.timeout), time.perf_counter()
        result = planner(domain, problem, self.timeout)
        seconds = time.perf_counter() - started
        if result.policy is None:
            return _Answer(result.status, self._too_late(result.status) or result.message, seconds)
        check = check_policy(domain, problem, result.policy, self.max_states, deadline)
        if check.kind is PolicyKind.UNKNOWN and is_proved(domain, problem, result.policy, deadline):
            check = replace(check, kind=PolicyKind.STRONG_CYCLIC, reason=f"decision by decision, as {check.reason}")
        if check.is_refuted:
            return _Answer(Status.ERROR, f"its policy is {check}", seconds)
        return _Answer(result.status, "", seconds, _found_policy(compiled, result.policy, check))

    def _too_late(self, status: Status) -> str:
        return f"not found in time ({self.timeout:g} s)" if status is Status.TIMED_OUT else ""

    def _print(self, answer: _Answer) -> None:
        if answer.found is None:
            print(answer.message, file=sys.stderr)
            return
        if self.output is None:
            print(answer.found.text, end="", flush=True)
        summary = f"found in {answer.seconds:.2f} s: {answer.found.size}"
        print("\n".join([summary, *answer.found.remarks]), file=sys.stderr)

    def _print_json(self, answer: _Answer) -> None:
        found = answer.found
        check = found.check if found else None
        print_json(
            status=answer.status.value,
            message=answer.message,
            seconds=round(answer.seconds, 4),
            sizes={"states": found.states, f"{found.noun}s": len(found.items)} if found else {},
            checked=check.kind.value if check else None,
            remarks=list(found.remarks) if found else [],
            **{kind: found.items if found and found.kind == kind else None for kind in ("plan", "policy")},
            output=str(self.output) if found and self.output else None,
        )


def _found_plan(compiled: Compiled, steps: Sequence[PlanStep]) -> _Found:
    domain, problem = compiled.domain, compiled.problem
    named = [step._replace(action=compiled.users_action(step.action)) for step in steps]
    return _Found(
        "plan",
        plan_text(domain, steps, named),
        plan_items(named),
        "step",
        [] if domain.is_deterministic else [A_HOPE],
        len(named) + 1,
        lambda: _users_graph(compiled, graph_of_plan(domain, problem, steps)),  # which is large for long plans
    )


def _found_policy(compiled: Compiled, policy: ContingentPolicy, check: PolicyCheck) -> _Found:
    named = [replace(decision, action=compiled.users_action(decision.action)) for decision in policy.decisions]
    policy = ContingentPolicy(tuple(named))
    return _Found(
        "policy",
        policy_text(policy),
        policy_items(policy),
        "decision",
        [str(check)],
        len(check.graph.choices),
        lambda: _users_graph(compiled, check.graph),
        check,
    )


def _users_graph(compiled: Compiled, graph: ActionGraph) -> ActionGraph:
    """The graph with the actions in the words of the user's domain."""
    choices = {
        state: tuple(replace(choice, label=compiled.users_action(choice.label)) for choice in choices)
        for state, choices in graph.choices.items()
    }
    return replace(graph, choices=choices)


def _rendered(found: _Found, path: Path, compiled: Compiled) -> str:
    """In the format that the file's name asks for."""
    headline = f"{compiled.problem.name}: {found.size}"
    match path.suffix.lower():
        case ".json":
            return document(compiled.domain, compiled.problem, found.kind, found.items)
        case ".svg":
            return draw_policy(found.graph(), headline)
        case ".dot":
            return policy_dot(found.graph(), headline)
    return found.text
