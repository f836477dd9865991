"""Policies and plans as text that a person reads and as JSON that a program reads, and policies back from JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from bilevel.planning.contingent import ContingentPolicy, Decision
from bilevel.planning.planner import Step
from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Facts, Problem
from bilevel.symbolic.expressions import NAME_PATTERN, quoted, read_text
from bilevel.symbolic.plans import NaturesMove, Plan, write_plan
from bilevel.symbolic.semantics import Condition, ground_action

FORMAT = 1

_CALL = re.compile(rf"(?P<head>=|{NAME_PATTERN})\((?P<terms>[^()]*)\)")
_NAME = re.compile(NAME_PATTERN)


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


def plan_text(domain: Domain, steps: Sequence[Step], named: Sequence[Step] | None = None) -> str:
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


def policy_object(policy: ContingentPolicy) -> list[dict[str, Any]]:
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


def plan_object(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The steps as JSON has them; outcomes count from 1, as in a plan file."""
    return [{"do": str(step.action), "outcome": step.outcome + 1, "nature": dict(step.choice)} for step in steps]


def policy_json(domain: Domain, problem: Problem, policy: ContingentPolicy) -> str:
    return _document(domain, problem, "policy", policy_object(policy))


def plan_json(domain: Domain, problem: Problem, steps: Sequence[Step]) -> str:
    return _document(domain, problem, "plan", plan_object(steps))


def _document(domain: Domain, problem: Problem, kind: str, items: Sequence[Mapping[str, Any]]) -> str:
    """A line per item, so that a person can read it too."""
    head = {"format": FORMAT, "domain": domain.name, "problem": problem.name}
    lines = ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in items)
    listed = f"[\n{lines}\n  ]" if items else "[]"
    return f"{json.dumps(head, ensure_ascii=False, indent=2)[:-2]},\n  {json.dumps(kind)}: {listed}\n}}\n"


def read_policy_json(path: str | PathLike[str], domain: Domain, problem: Problem) -> ContingentPolicy:
    """The policy of a file; `BadInput` where it is not one, or not one for this domain and these objects."""
    return parse_policy_json(read_text(path), domain, problem, fspath(path))


def parse_policy_json(text: str, domain: Domain, problem: Problem, filename: str = "<policy>") -> ContingentPolicy:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{filename}: not JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(document, dict) or not isinstance(document.get("policy"), list):
        raise BadInput(f'{filename}: not a policy: expected an object with a list "policy"')
    if document.get("format") != FORMAT:
        raise BadInput(f"{filename}: of format {_shown(document.get('format'))}, but this version reads {FORMAT}")
    reader = _PolicyReader(domain, problem)
    try:
        return ContingentPolicy(tuple(reader.decision(item) for item in document["policy"]))
    except BadInput as error:
        raise BadInput(f"{filename}: decision {reader.count}: {error}") from None


class _PolicyReader:
    """Decisions that fit a domain and a problem; `count` of them have been looked at."""

    def __init__(self, domain: Domain, problem: Problem) -> None:
        self.count = 0
        self.domain = domain
        self.objects = problem.all_objects(domain)

    def decision(self, item: Any) -> Decision:
        self.count += 1
        if not isinstance(item, dict) or set(item) != {"if", "if_not", "do", "distance"}:
            raise BadInput('expected an object with "if", "if_not", "do" and "distance"')
        distance = item["distance"]
        if not isinstance(distance, int) or isinstance(distance, bool) or distance < 0:
            raise BadInput(f'"distance" is a number of steps, not {_shown(distance)}')
        action = Action(*self._call(item["do"]))
        ground_action(self.domain, action)
        return Decision(Condition(self._facts(item["if"]), self._facts(item["if_not"])), action, distance)

    def _facts(self, texts: Any) -> Facts:
        if not isinstance(texts, list):
            raise BadInput(f"expected a list of facts, not {_shown(texts)}")
        return frozenset(self._fact(text) for text in texts)

    def _fact(self, text: Any) -> Atom:
        atom = Atom(*self._call(text))
        predicate = self.domain.predicates.get(atom.predicate)
        if atom.predicate == "=" and len(atom.terms) == 2:
            return atom
        if predicate is None or predicate.arity != len(atom.terms):
            raise BadInput(f"domain '{self.domain.name}' has no predicate like {_shown(text)}")
        return atom

    def _call(self, text: Any) -> tuple[str, tuple[str, ...]]:
        """The name and the objects of `name(object, ...)`."""
        match = _CALL.fullmatch(text) if isinstance(text, str) else None
        terms = [term.strip() for term in match["terms"].split(",")] if match and match["terms"].strip() else []
        if match is None or not _are_names(terms):
            raise BadInput(f"expected something like name(object, ...) but found {_shown(text)}")
        unknown = [term for term in terms if term not in self.objects]
        if unknown:
            raise BadInput(f"there is no object {quoted(unknown[0])} in {_shown(text)}")
        return match["head"], tuple(terms)


def _are_names(words: Iterable[str]) -> bool:
    return all(_NAME.fullmatch(word) for word in words)


def _shown(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else quoted(json.dumps(value)).strip("'")
