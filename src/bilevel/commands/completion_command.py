"""The command that completes rules."""

from __future__ import annotations

import time
from dataclasses import dataclass

import bilevel
from bilevel.commands.arguments import (
    DomainFile,
    OptionalOutput,
    ProblemFiles,
    RulesFile,
    Words,
    count,
    print_json,
    progress_bar,
    read,
    require_at_least,
)
from bilevel.files import write_atomically
from bilevel.planning.planners import bounded_plan
from bilevel.rules.completion import Completion, complete_rules, problems_from_rules
from bilevel.rules.completion.completing import BUDGET, MAX_STATES, RANDOM_PROBLEMS
from bilevel.rules.rule_file import domain_line, format_rules, read_rules
from bilevel.rules.verification.growing import parse_counts


@dataclass(frozen=True)
class CompleteRules:
    """Find where rules run out, plan from there, and put what is learned behind them, until nothing is missing.

    Every state that any actions lead to is looked at, with every goal, in problems with up to so many objects; so what
    is said of these is proved. Larger ones are drawn at random and tried. The rules that were given stay as they are,
    in front.

    Example: bilevel rules complete swap.rules swap.pddl p1.pddl --objects block=3 place=3 --output complete.rules
    """

    file: RulesFile
    """Rule file."""
    domain: DomainFile
    """PDDL domain file."""
    problems: ProblemFiles = ()
    """PDDL problem files to begin from (by default, problems in which a rule just applies)."""
    objects: Words = ()
    """Look at all problems with up to this many objects of a type, such as block=3 place=4 or colour+tray=2 (by default
    up to as many as each problem has)."""
    output: OptionalOutput = None
    """Where to write the rules."""
    random_problems: int = RANDOM_PROBLEMS
    """How many larger problems to draw and try."""
    max_states: int = MAX_STATES
    """Leave out a problem with more states, or goals, than this."""
    budget: int = BUDGET
    """Stop when so many states with goals have been looked at."""
    seed: int = 0
    """Decides which larger problems are drawn."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        require_at_least(1, max_states=self.max_states, budget=self.budget)
        require_at_least(0, random_problems=self.random_problems)
        domain, problems = read(self.domain, *self.problems)
        rules = read_rules(self.file, domain)
        began = time.perf_counter()
        with progress_bar() as progress:
            bar = progress.add_task("completing", total=None)
            found = complete_rules(
                rules,
                domain,
                problems or problems_from_rules(rules, domain),
                objects=parse_counts(self.objects),
                plan_for=bounded_plan,
                random_problems=self.random_problems,
                max_states=self.max_states,
                budget=self.budget,
                seed=self.seed,
                callback=lambda what, done, total: progress.update(bar, description=what, completed=done, total=total),
            )
        about = [domain_line(domain.name), f"completed by bilevel {bilevel.__version__}", *str(found).splitlines()]
        text = format_rules(found.rules, about)
        if self.output is not None:
            write_atomically(self.output, text)
        self._report(found, text, time.perf_counter() - began)
        return 0 if found.is_proved else 1

    def _report(self, found: Completion, text: str, seconds: float) -> None:
        if self.json:
            print_json(
                rules=len(found.rules),
                given=found.given,
                proved=found.is_proved,
                commit=found.commit,
                sizes=found.sizes,
                problems=found.problems,
                tried=found.tried,
                solved=found.solved,
                text=str(found),
                output=str(self.output) if self.output else None,
                seconds=round(seconds, 2),
            )
            return
        if self.output is None:
            print(text)
        written = f"; written to {self.output}" if self.output else ""
        new = len(found.rules) - found.given
        print(f"{count(found.given, 'rule')} and {new} more in {seconds:.1f} s{written}", str(found), sep="\n")
