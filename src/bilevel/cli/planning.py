"""Commands about problems: solve one by rules, plan for it, validate a plan, write a problem."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilevel.cli.options import argument, command, domain_argument, option, problem_argument, required, shared
from bilevel.cli.output import answer, count, say, wants_json
from bilevel.symbolic.domain import BadInput

PLANNERS = ("auto", "fast-downward", "lama", "search", "fond")
HOPE = "the domain is nondeterministic: the plan counts on the outcomes it names; a hope, not a promise"

if TYPE_CHECKING:
    from bilevel.planning.planner import ContingentPolicy, Deadline, PlanStep
    from bilevel.rules.rule import Rule
    from bilevel.rules.solving import Solution
    from bilevel.symbolic.domain import Domain, Problem
    from bilevel.symbolic.packed import PackedProblem


@command("solve", "domain.pddl huge.pddl --rules ferry.rules --plan huge.plan")
@domain_argument
@problem_argument
@required("--rules", "FILE", "Rule file.")
@option("--plan", "FILE", "Where to write the plan, in the format of the planning competitions.")
@option("--seed", "SEED", "Decides what nature does in a nondeterministic domain.", 0)
@option("--max-steps", "N", "How many actions to take at most (by default 10,000 and 1,000 more for each goal).")
@option("--memoryless", bool, "Choose afresh at every step, as a robot does, instead of staying with a goal.")
@option("--fallback", ("lama", "search"), "Where the rules stop short, plan from there, else from the start.")
@option("--timeout", "SECONDS", "With --fallback, how many seconds to plan at most from each of the two.", 60.0)
def solve(
    domain: Path, problem: Path, rules: Path, plan: Path | None, seed: int, max_steps: int | None, memoryless: bool,
    fallback: str | None, timeout: float,
) -> int:  # fmt: skip
    """Solve a problem by rules, without search, or with --fallback.

    Prints the plan, or writes it with --plan; exits with 1 and the reason when it stops short.
    """
    from bilevel.files import write_atomically
    from bilevel.rules.rule_file import read_rules
    from bilevel.rules.solving import solve, unpacked
    from bilevel.symbolic.plans import plan_chunks

    started, searched = time.perf_counter(), range(0)
    read_domain, read_problem = _read(domain, problem)
    read, commit = read_rules(rules, read_domain), not memoryless
    ready = time.perf_counter()
    if fallback is None:
        solution = solve(read_domain, read_problem, read, seed=seed, max_steps=max_steps, commit=commit)
    else:
        from bilevel.rule_learning.fallback import solve_with_fallback

        solution, searched = solve_with_fallback(
            read_domain, read_problem, read, fallback=fallback, time_limit=timeout, max_steps=max_steps, commit=commit
        )
    solved = time.perf_counter()
    steps, reason = len(solution.plan.actions), ""
    if not solution.is_solved:
        reason = _why_unsolved(read_domain, unpacked(read_problem), read, solution)
        reason += f"\n{fallback} found no plan either" if fallback else ""
    elif plan is not None:
        write_atomically(plan, plan_chunks(solution.plan))
    elif not wants_json():
        for block in plan_chunks(solution.plan):
            print(block.decode(), end="")
    values = {"outcome": solution.stop.name.lower().replace("_", "-"), "steps": steps, "reason": reason}
    values |= {"open_goals": solution.open_goals, "plan": str(plan) if plan and solution.is_solved else None}
    values["searched"] = [searched.start + 1, searched.stop] if searched else None
    answer(values | {"reading_seconds": round(ready - started, 4), "solving_seconds": round(solved - ready, 4)}, "")
    say(reason or f"solved in {steps} steps ({ready - started:.2f} s reading, {solved - ready:.2f} s solving)")
    say(f"steps {searched.start + 1} to {searched.stop} were searched by {fallback}" if searched else "")
    return 0 if solution.is_solved else 1


def _read(domain_path: Path, problem_path: Path) -> tuple[Domain, Problem | PackedProblem]:
    """Read a domain and a problem, which is packed where it can be."""
    from bilevel.files import read_bytes
    from bilevel.symbolic.packed import packed_problem
    from bilevel.symbolic.pddl import read_domain, read_problem

    domain = read_domain(domain_path)
    return domain, packed_problem(read_bytes(problem_path), domain) or read_problem(problem_path, domain)


def _why_unsolved(domain: Domain, problem: Problem, rules: Sequence[Rule], solution: Solution) -> str:
    """Return why solving stopped short: with the rules that came closest, where none applies."""
    from bilevel.rules.nearest import why_not
    from bilevel.rules.solving import Stop, final_state

    head = f"not solved: {solution.stop.value} after {len(solution.plan.actions)} steps"
    head += f", {solution.open_goals} of {len(problem.goal)} goals open"
    if solution.stop is Stop.NO_RULE:
        state, objects = final_state(domain, problem, solution.plan)
        return f"{head}; closest:\n{why_not(rules, domain, state, problem.goal, objects)}"
    return f"{head}: {solution.detail}" if solution.detail else head


@command("validate", "domain.pddl problem.pddl found.plan")
@domain_argument
@problem_argument
@argument("plan", "FILE", "Plan file: one (action argument ...) a line.")
def validate(domain: Path, problem: Path, plan: Path) -> int:
    """Check that a plan can be carried out and reaches the goal; exits with 1 and says where if it does not."""
    from bilevel.rules.solving import unpacked
    from bilevel.symbolic.plans import read_plan, validate

    read_domain, read_problem = _read(domain, problem)
    verdict = validate(read_domain, unpacked(read_problem), read_plan(plan, read_domain))
    answer({"valid": verdict.is_valid, "steps": verdict.steps, "text": str(verdict)}, str(verdict))
    return 0 if verdict.is_valid else 1


@command("problem", "blocks --objects 10000 --output blocks-10000.pddl")
@argument("name", "TEXT", "The family of problems, such as blocks or gacha; a wrong name lists them.")
@required("--output", "FILE", "Where to write the problem; its domain is written beside it.")
@option("--objects", "N", "How large: the number of blocks, items or colours.", 10)
@shared("seed")
def problem(name: str, output: Path, objects: int, seed: int) -> None:
    """Write a random problem of one of the shipped domains, of any size."""
    import random

    from bilevel.files import write_atomically
    from bilevel.symbolic.expressions import read_text
    from bilevel.symbolic.pddl import write_problem
    from bilevel.tabletop.problems import domain_text, generate_problem, shipped_domain

    made = generate_problem(name, objects, random.Random(seed))
    domain = shipped_domain(made.domain_name)
    text = domain_text(domain.name)
    beside = output.parent / f"{domain.name}-domain.pddl"
    if beside == output or (beside.is_file() and read_text(beside) != text):
        raise BadInput(f"{beside}: the domain belongs here, but there is another file; choose another folder")
    write_atomically(beside, text)
    write_atomically(output, write_problem(made, domain))
    answer({"problem": output, "domain": beside, "objects": len(made.objects)})


# Planning


@command("plan", "domain.pddl problem.pddl", "tireworld.pddl p1.pddl --output policy.json")
@domain_argument
@problem_argument
@option(
    "--planner",
    PLANNERS,
    "What plans: `auto` is `fond` where nature chooses, else `search`, then Fast Downward.",
    "auto",
)
@option("--timeout", "SECONDS", "How many seconds to plan at most.", 60.0)
@option("--memory", "GB", "Give up when planning takes more gigabytes of memory.", 4.0)
@option("--output", "FILE", "Where to write it instead of printing it: as JSON for a .json, else as text.")
@option("--max-states", "N>0", "Check a policy state by state up to so many, else decision by decision.", 20_000)
def plan(
    domain: Path, problem: Path, planner: str, timeout: float, memory: float, output: Path | None, max_states: int
) -> int:
    """Plan: a sequence of actions or, where the domain is nondeterministic, a policy for whatever nature does.

    A policy is strong-cyclic: if nature is fair, following it always ends in the goal. That is checked before it is
    shown. Exits with 1 where there is no plan or policy, or none was found in time.
    """
    from bilevel.files import require_writable, write_atomically
    from bilevel.planning.planner import Deadline, Status
    from bilevel.planning.planners import plan as find_plan
    from bilevel.symbolic.pddl import read_for_planning

    read_domain, read_problem = read_for_planning(domain, problem)
    if output is not None:
        require_writable(output)
    deadline, started = Deadline(timeout), time.perf_counter()
    result = find_plan(read_domain, read_problem, planner=planner, time_limit=timeout, memory_limit=memory * 1e9)
    seconds = time.perf_counter() - started
    message, text = result.message or f"{result.status.value}; the limits are {timeout:g} s and {memory:g} GB", ""
    values: dict[str, Any] = {"domain": read_domain.name, "problem": read_problem.name, "status": result.status.value}
    values |= {"message": message, "seconds": round(seconds, 4), "plan": None, "policy": None, "output": None}
    if result.status is Status.ERROR:
        raise BadInput(f"the planner failed on problem '{read_problem.name}': {message}")
    if result.status is Status.SOLVED:
        if result.policy is not None:
            values["checked"], remarks = _check(read_domain, read_problem, result.policy, deadline, max_states)
            values["policy"], text = _policy_found(result.policy)
        else:
            values["plan"], text = _plan_found(read_domain, read_problem, result.steps)
            remarks = [] if read_domain.is_deterministic else [HOPE]
        size = count(values["policy"], "decision") if result.policy else count(values["plan"], "step")
        values["remarks"], message = remarks, "\n".join([f"found in {seconds:.2f} s: {size}", *remarks])
        if output is not None:
            values["output"], as_json = str(output), output.suffix == ".json"
            write_atomically(output, json.dumps(values, ensure_ascii=False, indent=2) + "\n" if as_json else text)
    answer(values, "" if output else text.rstrip("\n"))
    say(message)
    return 0 if text else 1


def _check(
    domain: Domain, problem: Problem, policy: ContingentPolicy, deadline: Deadline, max_states: int
) -> tuple[str, list[str]]:
    """Check a policy state by state, else decision by decision; return the kind that it is, and remarks."""
    from dataclasses import replace

    from bilevel.planning.strong_cyclic import PolicyKind, check_policy, is_proved

    check = check_policy(domain, problem, policy.choose, max_states, deadline)
    if check.kind is PolicyKind.UNKNOWN and is_proved(domain, problem, policy, deadline):
        check = replace(check, kind=PolicyKind.STRONG_CYCLIC, reason=f"decision by decision, as {check.reason}")
    if check.is_refuted:
        raise BadInput(f"the planner failed on problem '{problem.name}': its policy is {check}")
    return check.kind.value, [str(check), *map(str, policy.placeholders)]


def _policy_found(policy: ContingentPolicy) -> tuple[list[dict[str, Any]], str]:
    """Return a policy for programs, and as text: `2: if tails(penny) do flip(penny)`, with the distance to the goal."""
    from bilevel.symbolic.pddl import users_action

    items, lines = [], []
    for decision in policy.decisions:
        holding, absent = (
            sorted(map(str, each)) for each in (decision.condition.positive, decision.condition.negative)
        )
        action, distance = str(users_action(decision.action)), decision.distance
        items.append({"if": holding, "if_not": absent, "do": action, "distance": distance})
        condition = " & ".join([*holding, *(f"not {atom}" for atom in absent)])
        lines.append(f"{distance}: if {condition or 'true'} do {action}\n")
    return items, "".join([*lines, f"; {count(items, 'decision')}; the first whose condition holds counts\n"])


def _plan_found(domain: Domain, problem: Problem, steps: Sequence[PlanStep]) -> tuple[list[dict[str, Any]], str]:
    """Return a plan for programs, and as text; outcomes count from 1 in both."""
    from bilevel.symbolic.pddl import users_action
    from bilevel.symbolic.plans import NaturesMove, Plan, write_plan
    from bilevel.symbolic.semantics import cost_of

    actions, moves, items = [], dict[int, NaturesMove](), []
    for number, step in enumerate(steps):
        actions.append(users_action(step.action))
        if not domain.schemas[step.action.name].is_deterministic:
            moves[number] = NaturesMove(step.outcome, dict(step.choice))
        items.append({"do": str(actions[-1]), "outcome": step.outcome + 1, "nature": dict(step.choice)})
    cost = None if problem.costs is None else sum(cost_of(step.action, domain, problem) for step in steps)
    return items, write_plan(Plan(actions, moves), cost)
