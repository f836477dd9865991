"""Commands about rules: show and verify them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bilevel.commands.arguments import DomainFile, ProblemFiles, RulesFile, fitting_rules, print_json, read
from bilevel.rules.explanation.formats import explain
from bilevel.rules.explanation.why_not import why_not
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import read_rules
from bilevel.rules.verification.families import describe_family, verify_family
from bilevel.rules.verification.growing import Family, Starts, parse_counts
from bilevel.rules.verification.policies import MAX_STATES, Counterexample, Kind, Status, describe, verify
from bilevel.symbolic.domain import BadInput, Domain, Problem


@dataclass(frozen=True)
class ShowRules:
    """Print a rule file as text, as a Markdown table, as LaTeX like the paper's appendix, or in plain English."""

    file: RulesFile
    """Rule file."""
    format: Literal["text", "markdown", "latex", "english"] = "text"
    """How to print it."""
    json: bool = False
    """Print one JSON object per rule instead."""

    def run(self) -> int:
        rules = read_rules(self.file).rules
        if not self.json:
            print(explain(rules, self.format), end="")
            return 0
        for rule in rules:
            print_json(
                priority=rule.priority,
                variables={variable.name: variable.type for variable in rule.variables},
                conditions=list(rule.conditions()),
                action=str(rule.action),
            )
        return 0


@dataclass(frozen=True)
class VerifyRules:
    """Check that a policy always solves a problem, whatever nature does, or show a shortest counterexample.

    With --grow the problems are seeds of a family: every problem with up to so many objects of the given types, up to
    renaming, with every goal that can come up; `colour+tray=3` grows types together.

    Example: bilevel rules verify blocks.rules blocks.pddl p1.pddl --grow block=4 place=4
    """

    file: RulesFile
    """Rule file."""
    domain: DomainFile
    """PDDL domain file."""
    problems: ProblemFiles
    """PDDL problem files."""
    grow: tuple[str, ...] = ()
    """Verify the family of problems with up to this many objects of a type, such as block=4 place=4."""
    starts: Literal["initial", "at-rest", "any"] = "at-rest"
    """With --grow, where problems begin: the seed's state, or any state that actions lead to (with the hand free)."""
    complete_goals: bool = False
    """With --grow, only goals that ask something for every object that can have a goal."""
    max_states: int = MAX_STATES
    """Give up on a problem with more states than this."""
    json: bool = False
    """Print one JSON object per problem instead of text."""

    def run(self) -> int:
        domain, problems = read(self.domain, *self.problems)
        rules = fitting_rules(self.file, domain)
        if not problems:
            raise BadInput("no problems to verify; name at least one problem file after the domain")
        if self.max_states < 1:
            raise BadInput(f"--max-states must be at least 1, but is {self.max_states}")
        if self.grow:
            starts = Starts[self.starts.replace("-", "_").upper()]
            counts = parse_counts(self.grow)
            meant = Family(tuple(problems), counts, starts, complete_goals=self.complete_goals)
            family = verify_family(rules, domain, meant, self.max_states)
            near = _nearest(rules, domain, family.problem, family.counterexample)
            self._tell("family", family.status, describe_family(family) + near, family.explored)
            return 0 if family.status is Status.SOLVED else 1
        answers = []
        for problem in problems:
            verdict = verify(rules, domain, problem, self.max_states)
            answers.append(verdict.status)
            near = _nearest(rules, domain, problem, verdict.counterexample)
            self._tell(problem.name, verdict.status, describe(verdict) + near, verdict.explored)
        return 0 if all(answer is Status.SOLVED for answer in answers) else 1

    def _tell(self, name: str, answer: Status, text: str, explored: int) -> None:
        if self.json:
            print_json(problem=name, answer=answer.value, explored=explored, text=text)
        else:
            print(f"{name}: {text}")


def _nearest(rules: Sequence[Rule], domain: Domain, problem: Problem | None, found: Counterexample | None) -> str:
    """The rules that came closest where a counterexample ends with none that applies, a line each."""
    if problem is None or found is None or found.kind is not Kind.NO_RULE:
        return ""
    reasons = why_not(rules, domain, found.state, problem.goal, problem.all_objects(domain))
    return "".join(f"\n  {reason}" for reason in reasons.splitlines())
