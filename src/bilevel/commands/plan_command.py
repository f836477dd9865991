"""The command that plans for a problem."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from bilevel.commands.arguments import (
    DomainFile,
    Json,
    OptionalOutput,
    ProblemFile,
    count,
    print_json,
    require_at_least,
)
from bilevel.files import require_writable, write_atomically
from bilevel.planning.planner import ContingentPolicy, Deadline, PlanStep, Status
from bilevel.planning.planners import plan
from bilevel.planning.strong_cyclic import ActionGraph, PolicyKind, check_policy, graph_of_plan, is_proved
from bilevel.symbolic.adl import read_for_planning
from bilevel.symbolic.adl_actions import DUE, is_own, users_action
from bilevel.symbolic.costs import Costs, read_costs
from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.plans import NaturesMove, Plan, write_plan

FORMAT = 1  # of JSON files
MOST_SECONDS = 1_000_000
NOTHING_FOUND: dict[str, Any] = {"sizes": {}, "checked": None, "remarks": [], "plan": None, "policy": None}
A_HOPE = "the domain is nondeterministic: the plan counts on the outcomes it names; a hope, not a promise"

Seconds = Annotated[float, tyro.conf.arg(metavar="SECONDS")]
Gigabytes = Annotated[float, tyro.conf.arg(metavar="GB")]


class _Found(NamedTuple):
    """A plan or a policy: as text, how large it is, its graph, which is large for long plans, and all else as JSON."""

    text: str
    size: str
    graph: Callable[[], ActionGraph]
    values: dict[str, Any]


@dataclass(frozen=True)
class FindPlan:
    """Plan: a sequence of actions or, where the domain is nondeterministic, a policy for whatever nature does.

    A policy is strong-cyclic: if nature is fair, following it always ends in the goal. That is checked before it is
    shown. Exits with 1 where there is no plan or policy, or none was found in time.

    Examples: bilevel plan domain.pddl problem.pddl
              bilevel plan tireworld.pddl p1.pddl --output policy.svg
    """

    domain: DomainFile
    problem: ProblemFile
    planner: Literal["auto", "fast-downward", "lama", "search", "fond"] = "auto"
    """For plans: `search` is built in, `fast-downward` and its quick variant `lama` need the extra `planners`. For
    policies: `fond`, built in. `auto` is `fond` for a nondeterministic domain; for any other it is `search`, and Fast
    Downward, where it is installed, for what that cannot do."""
    timeout: Seconds = 60.0
    """Give up after so many seconds."""
    memory: Gigabytes = 4.0
    """Give up when planning and what it is about take more gigabytes of memory."""
    output: OptionalOutput = None
    """Where to write the plan or policy instead of printing it: as JSON where the name ends in .json, as a drawing in
    .svg or .dot, else as text."""
    max_states: int = 20_000
    """Check a policy state by state if it can get into at most so many states, else decision by decision."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        if not 0 < self.timeout <= MOST_SECONDS:
            raise BadInput(f"--timeout must be between 0 and {MOST_SECONDS} seconds, but is {self.timeout}")
        if not self.memory > 0:
            raise BadInput(f"--memory must be more than 0 gigabytes, but is {self.memory}")
        require_at_least(1, max_states=self.max_states)
        domain, problem = read_for_planning(self.domain, self.problem)
        if self.output is not None:
            require_writable(self.output)
        deadline, started = Deadline(self.timeout), time.perf_counter()
        limit = self.memory * 1e9
        result = plan(domain, problem, planner=self.planner, time_limit=self.timeout, memory_limit=limit)
        seconds = time.perf_counter() - started
        if result.status is Status.ERROR:
            raise BadInput(f"the planner failed on problem '{problem.name}': {result.message}")
        if result.status is Status.TIMED_OUT:
            result = replace(result, message=f"not found in time ({self.timeout:g} s)")
        if result.status is Status.OUT_OF_MEMORY:
            message = f"not found within {self.memory:g} GB of memory; --memory sets the limit"
            result = replace(result, message=message)
        found = None
        if result.policy is not None:
            found = self._found_policy(domain, problem, result.policy, deadline)
        elif result.status is Status.SOLVED:
            found = _found_plan(domain, problem, result.steps, read_costs(self.domain, self.problem))
        if found and self.output is not None:
            write_atomically(self.output, _rendered(found, self.output, domain, problem))
        if self.json:
            head = {"status": result.status.value, "message": result.message, "seconds": round(seconds, 4)}
            output = str(self.output) if found and self.output else None
            print_json(**head, **{**NOTHING_FOUND, **(found.values if found else {})}, output=output)
        elif found is None:
            print(result.message, file=sys.stderr)
        else:
            if self.output is None:
                print(found.text, end="", flush=True)
            print(f"found in {seconds:.2f} s: {found.size}", *found.values["remarks"], sep="\n", file=sys.stderr)
        return 0 if found else 1

    def _found_policy(self, domain: Domain, problem: Problem, policy: ContingentPolicy, deadline: Deadline) -> _Found:
        check = check_policy(domain, problem, policy.choose, self.max_states, deadline)
        if check.kind is PolicyKind.UNKNOWN and is_proved(domain, problem, policy, deadline):
            check = replace(check, kind=PolicyKind.STRONG_CYCLIC, reason=f"decision by decision, as {check.reason}")
        if check.is_refuted:
            raise BadInput(f"the planner failed on problem '{problem.name}': its policy is {check}")
        items = policy_items(policy)
        sizes = {"states": len(check.graph.choices), "decisions": len(items)}
        remarks = [str(check), *map(str, policy.placeholders)]
        values = {"sizes": sizes, "checked": check.kind.value, "remarks": remarks, "policy": items}
        return _Found(policy_text(items), count(items, "decision"), lambda: check.graph, values)


def _found_plan(domain: Domain, problem: Problem, steps: Sequence[PlanStep], costs: Costs | None) -> _Found:
    items = plan_items(steps)
    sizes = {"states": len(items) + 1, "steps": len(items)}
    values = {"sizes": sizes, "remarks": [] if domain.is_deterministic else [A_HOPE], "plan": items}
    graph = partial(graph_of_plan, domain, problem, steps)
    return _Found(plan_text(domain, steps, costs), count(items, "step"), graph, values)


def _rendered(found: _Found, path: Path, domain: Domain, problem: Problem) -> str:
    """In the format that the file's name asks for."""
    headline = f"{problem.name}: {found.size}"
    match path.suffix.lower():
        case ".json":
            head = {"format": FORMAT, "domain": domain.name, "problem": problem.name}
            items = {kind: found.values[kind] for kind in ("plan", "policy") if kind in found.values}
            return dumps({**head, **items}, ensure_ascii=False, indent=2) + "\n"
        case ".svg":
            from bilevel.planning.policy_drawing import draw_policy

            return draw_policy(found.graph(), headline)
        case ".dot":
            from bilevel.planning.policy_drawing import policy_dot

            return policy_dot(found.graph(), headline)
    return found.text


def policy_text(decisions: Sequence[dict[str, Any]]) -> str:
    """One line per decision: `2: if tails(penny) & not lost() do flip(penny)`; the number is the distance."""
    width = len(str(max((item["distance"] for item in decisions), default=0)))
    lines = []
    for item in decisions:
        condition = " & ".join([*item["if"], *(f"not {atom}" for atom in item["if_not"])])
        lines.append(f"{item['distance']:{width}}: if {condition or 'true'} do {item['do']}")
    return "\n".join([*lines, f"; {count(lines, 'decision')}; the first whose condition holds counts\n"])


def plan_text(domain: Domain, steps: Sequence[PlanStep], costs: Costs | None = None) -> str:
    """As the planning competitions write it; comments say what a plan in a nondeterministic domain counts on."""
    steps = [step for step in steps if not is_own(step.action.name)]
    moves = {
        number: NaturesMove(step.outcome, dict(step.choice))
        for number, step in enumerate(steps)
        if not domain.schemas[step.action.name].is_deterministic
    }
    return write_plan(Plan([users_action(step.action) for step in steps], moves), costs)


def policy_items(policy: ContingentPolicy) -> list[dict[str, Any]]:
    """The decisions as JSON has them, in the words of the user's domain."""
    return [
        {
            "if": [str(atom) for atom in sorted(decision.condition.positive)],
            "if_not": [str(atom) for atom in sorted(decision.condition.negative - {DUE})],
            "do": str(users_action(decision.action)),
            "distance": decision.distance,
        }
        for decision in policy.decisions
        if not is_own(decision.action.name)
    ]


def plan_items(steps: Sequence[PlanStep]) -> list[dict[str, Any]]:
    """The steps as JSON has them; outcomes count from 1, as in a plan file."""
    return [
        {"do": str(users_action(step.action)), "outcome": step.outcome + 1, "nature": dict(step.choice)}
        for step in steps
        if not is_own(step.action.name)
    ]
