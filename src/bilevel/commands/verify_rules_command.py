"""The command that verifies rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bilevel.commands.arguments import (
    DomainFile,
    ProblemFiles,
    RulesFile,
    Words,
    print_json,
    read,
    require_at_least,
)
from bilevel.rules.explanation.why_not import why_not
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import read_rules
from bilevel.rules.verification.families import FamilyVerdict, verify_family
from bilevel.rules.verification.growing import Family, Starts, parse_counts
from bilevel.rules.verification.policies import MAX_STATES, Answer, Ending, ProblemVerdict, verify
from bilevel.symbolic.domain import BadInput, Domain, Problem


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
    grow: Words = ()
    """Verify the family of problems with up to this many objects of a type, such as block=4 place=4."""
    starts: Starts = "at-rest"
    """With --grow, where problems begin: the seed's state, or any state that actions lead to (with the hand free)."""
    complete_goals: bool = False
    """With --grow, only goals that ask something for every object that can have a goal."""
    max_states: int = MAX_STATES
    """Give up on a problem with more states than this."""
    json: bool = False
    """Print one JSON object per problem instead of text."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        domain, problems = read(self.domain, *self.problems)
        rules = read_rules(self.file, domain)
        if not problems:
            raise BadInput("no problems to verify; name at least one problem file after the domain")
        require_at_least(1, max_states=self.max_states)
        if self.grow:
            meant = Family(tuple(problems), parse_counts(self.grow), self.starts, self.complete_goals)
            family = verify_family(rules, domain, meant, self.max_states)
            return self._report("family", family, rules, domain, family.problem)
        verdicts = ((problem, verify(rules, domain, problem, self.max_states)) for problem in problems)
        return max([self._report(problem.name, verdict, rules, domain, problem) for problem, verdict in verdicts])

    def _report(
        self,
        name: str,
        verdict: ProblemVerdict | FamilyVerdict,
        rules: Sequence[Rule],
        domain: Domain,
        problem: Problem | None,
    ) -> int:
        """Print a verdict, with the rules that came closest where none applied, and return the exit code."""
        text, found = str(verdict), verdict.counterexample
        if problem is not None and found is not None and found.ending is Ending.NO_RULE:
            reasons = why_not(rules, domain, found.state, problem.goal, problem.all_objects(domain))
            text += "".join(f"\n  {reason}" for reason in reasons.splitlines())
        if self.json:
            print_json(problem=name, answer=verdict.answer.value, explored=verdict.explored, text=text)
        else:
            print(f"{name}: {text}")
        return 0 if verdict.answer is Answer.SOLVED else 1
