"""Commands about problems: solve one by rules, validate a plan."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bilevel.commands.arguments import (
    Bound,
    DomainFile,
    Json,
    OptionalOutput,
    Output,
    PlanFile,
    ProblemFile,
    print_json,
    read_large,
)
from bilevel.symbolic.costs import digits, read_costs, wrong_claim
from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.packed import PackedProblem
from bilevel.symbolic.packed_plans import plan_chunks, validate_packed
from bilevel.symbolic.plans import read_plan, validate

if TYPE_CHECKING:
    from bilevel.rules.rule import Rule
    from bilevel.rules.solving import Solution


@dataclass(frozen=True)
class Solve:
    """Solve a problem by rules, without search.

    Prints the plan, or writes it with --plan; exits with 1 and the reason when it stops short.

    Example: bilevel solve domain.pddl huge.pddl --rules ferry.rules --plan huge.plan
    """

    domain: DomainFile
    problem: ProblemFile
    rules: Output
    """Rule file."""
    plan: OptionalOutput = None
    """Where to write the plan, in the format of the planning competitions."""
    seed: int = 0
    """Decides what nature does in a nondeterministic domain."""
    max_steps: Bound = None
    """Stop after so many actions (by default 10,000 and 1,000 more for each goal)."""
    memoryless: bool = False
    """Choose afresh at every step, as a robot does, instead of staying with a goal until it is achieved."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.rules.rule_file import read_rules
        from bilevel.rules.solving import solve

        started = time.perf_counter()
        domain, problem = read_large(self.domain, self.problem)
        rules = read_rules(self.rules, domain)
        if self.max_steps is not None and self.max_steps < 0:
            raise BadInput(f"--max-steps must not be negative, but is {self.max_steps}")
        ready = time.perf_counter()
        solution = solve(domain, problem, rules, seed=self.seed, max_steps=self.max_steps, commit=not self.memoryless)
        solved = time.perf_counter()
        steps = len(solution.plan.actions)
        reason = "" if solution.is_solved else self._reason(domain, _unpacked(problem), rules, solution)
        if solution.is_solved and self.plan is not None:
            from bilevel.files import write_atomically

            write_atomically(self.plan, plan_chunks(solution.plan, read_costs(self.domain, self.problem)))
        if self.json:
            print_json(
                outcome=solution.stop.name.lower().replace("_", "-"),
                steps=steps,
                open_goals=solution.open_goals,
                reason=reason,
                reading_seconds=round(ready - started, 4),
                solving_seconds=round(solved - ready, 4),
                writing_seconds=round(time.perf_counter() - solved, 4),
                plan=str(self.plan) if self.plan and solution.is_solved else None,
            )
        elif solution.is_solved:
            if self.plan is None:
                for block in plan_chunks(solution.plan, read_costs(self.domain, self.problem)):
                    print(block.decode(), end="")
            times = f"{ready - started:.2f} s reading, {solved - ready:.2f} s solving"
            print(f"solved in {steps} steps ({times})", file=sys.stderr)
        else:
            print(reason, file=sys.stderr)
        return 0 if solution.is_solved else 1

    def _reason(self, domain: Domain, problem: Problem, rules: Sequence[Rule], solution: Solution) -> str:
        from bilevel.rules.explanation.why_not import why_not
        from bilevel.rules.solving import Stop, final_state

        head = f"not solved: {solution.stop.value} after {len(solution.plan.actions)} steps"
        head += f", {solution.open_goals} of {len(problem.goal)} goals open"
        if solution.stop is Stop.NO_RULE:
            state, objects = final_state(domain, problem, solution.plan)
            return f"{head}; closest:\n{why_not(rules, domain, state, problem.goal, objects)}"
        return f"{head}: {solution.detail}" if solution.detail else head


@dataclass(frozen=True)
class Validate:
    """Check that a plan can be carried out and reaches the goal; exits with 1 and says where if it does not.

    Where actions have costs, it also says what the plan costs. A cost in the last line of the file must be right.
    """

    domain: DomainFile
    problem: ProblemFile
    plan: PlanFile
    """Plan file: one (action argument ...) a line."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        domain, problem = read_large(self.domain, self.problem)
        verdict = validate_packed(domain, problem, self.plan) if isinstance(problem, PackedProblem) else None
        if verdict is None:
            verdict = validate(domain, _unpacked(problem), read_plan(self.plan, domain))
        text, cost, is_valid = str(verdict), None, verdict.is_valid
        if is_valid:
            cost, told = self._cost(domain)
            wrong = wrong_claim(self.plan, verdict.steps, cost)
            text, is_valid = (f"not valid: {wrong}", False) if wrong else (text + told, True)
        if self.json:
            print_json(valid=is_valid, steps=verdict.steps, cost=cost if cost is None else float(cost), text=text)
        else:
            print(text)
        return 0 if is_valid else 1

    def _cost(self, domain: Domain) -> tuple[Decimal | None, str]:
        """Return what the plan costs, and that in words, where its actions have costs and these are known."""
        costs = read_costs(self.domain, self.problem)
        if costs is None:
            return None, ""
        try:
            cost = costs.total(read_plan(self.plan, domain).actions)
        except BadInput as error:
            return None, f"; cost unknown: {error}"
        return cost, f" at a cost of {digits(cost)}"


def _unpacked(problem: Problem | PackedProblem) -> Problem:
    return problem.unpacked if isinstance(problem, PackedProblem) else problem
