"""Policies and plans as text that a person reads and as JSON that a program reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bilevel.planning.planner import ContingentPolicy, PlanStep
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.plans import NaturesMove, Plan, write_plan
from bilevel.symbolic.semantics import Condition

FORMAT = 1


# --- Text


def policy_text(policy: ContingentPolicy) -> str:
    """One line per decision: `2: if tails(penny) & not lost() do flip(penny)`; the number is the distance."""
    width = len(str(max((decision.distance for decision in policy.decisions), default=0)))
    lines = [
        f"{decision.distance:{width}}: if {condition_text(decision.condition)} do {decision.action}"
        for decision in policy.decisions
    ]
    return "\n".join([*lines, f"; {_count(len(lines), 'decision')}; the first whose condition holds counts\n"])


def condition_text(condition: Condition) -> str:
    parts = [*map(str, sorted(condition.positive)), *(f"not {atom}" for atom in sorted(condition.negative))]
    return " & ".join(parts) or "true"


def plan_text(domain: Domain, steps: Sequence[PlanStep], named: Sequence[PlanStep] | None = None) -> str:
    """As the planning competitions write it; comments say what a plan in a nondeterministic domain counts on.

    `named` are the steps as they shall be called, where that is not as the domain calls them.
    """
    named = steps if named is None else named
    moves = {
        number: NaturesMove(step.outcome, dict(step.choice))
        for number, step in enumerate(steps[: len(named)])
        if not domain.schemas[step.action.name].is_deterministic
    }
    return write_plan(Plan([step.action for step in named], moves))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# --- JSON


def policy_items(policy: ContingentPolicy) -> list[dict[str, Any]]:
    """The decisions as JSON has them."""
    return [
        {
            "if": [str(atom) for atom in sorted(decision.condition.positive)],
            "if_not": [str(atom) for atom in sorted(decision.condition.negative)],
            "do": str(decision.action),
            "distance": decision.distance,
        }
        for decision in policy.decisions
    ]


def plan_items(steps: Sequence[PlanStep]) -> list[dict[str, Any]]:
    """The steps as JSON has them; outcomes count from 1, as in a plan file."""
    return [{"do": str(step.action), "outcome": step.outcome + 1, "nature": dict(step.choice)} for step in steps]


def document(domain: Domain, problem: Problem, kind: str, items: Sequence[Mapping[str, Any]]) -> str:
    """A file of JSON with the items of a plan or policy, a line each so that a person can read it too."""
    head = {"format": FORMAT, "domain": domain.name, "problem": problem.name}
    lines = ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in items)
    listed = f"[\n{lines}\n  ]" if items else "[]"
    return f"{json.dumps(head, ensure_ascii=False, indent=2)[:-2]},\n  {json.dumps(kind)}: {listed}\n}}\n"
