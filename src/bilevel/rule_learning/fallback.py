"""Plan where rules stop short: from where they stopped or, where no plan is found from there, from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bilevel.planning.planner import Status
from bilevel.planning.planners import plan
from bilevel.rules.engine import effects_of
from bilevel.rules.rule import Rule
from bilevel.rules.solving import Solution, Stop, final_state, solve, unpacked
from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.packed import PackedProblem
from bilevel.symbolic.plans import Plan

MEMORY = 4e9  # bytes that the planner may use


def solve_with_fallback(
    domain: Domain,
    problem: Problem | PackedProblem,
    rules: Sequence[Rule],
    *,
    fallback: str = "search",
    time_limit: float = 60.0,
    max_steps: int | None = None,
    commit: bool = True,
) -> tuple[Solution, range]:
    """Follow the rules and, where they stop short, plan to the goal; return the solution and the planned steps.

    `fallback` names the planner, which may take `time_limit` seconds, once from where the rules stopped and once from
    the start. Of rules that went round in circles the steps stay up to where the fewest goals were open.
    """
    if not domain.is_deterministic:
        raise BadInput(f"'{domain.name}' is nondeterministic: there a plan is no fallback for rules")
    solution = solve(domain, problem, rules, max_steps=max_steps, commit=commit)
    if solution.is_solved:
        return solution, range(0)
    task = replace(unpacked(problem), costs=None)  # rules do not know of them
    place = len(solution.plan.actions)
    if solution.stop in (Stop.LOOP, Stop.STEP_BOUND):
        place = _fewest_open_goals(domain, task, solution.plan)
    for kept in dict.fromkeys((place, 0)):
        actions = solution.plan.actions[:kept]
        state, _ = final_state(domain, task, Plan(actions))
        found = plan(domain, replace(task, state=state), planner=fallback, time_limit=time_limit, memory_limit=MEMORY)
        if found.status is Status.ERROR:
            raise BadInput(f"the planner failed on problem '{task.name}': {found.message}")
        if found.plan is not None:
            whole = Plan([*actions, *found.plan])
            return Solution(Stop.SOLVED, whole, 0), range(kept, len(whole.actions))
    return solution, range(0)


def _fewest_open_goals(domain: Domain, problem: Problem, plan: Plan) -> int:
    """Return after how many of the plan's steps there were, for the first time, the fewest open goals."""
    open_goals = problem.goal - problem.state
    counts = [len(open_goals)]
    for action in plan.actions:
        added, deleted = effects_of(domain, action)
        open_goals = (open_goals | (deleted & problem.goal)) - added
        counts.append(len(open_goals))
    return counts.index(min(counts))
