"""Commands about rules: learn, show and verify them."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Literal, NamedTuple

import bilevel
from bilevel.commands.arguments import (
    DomainFile,
    Output,
    ProblemFiles,
    RulesFile,
    count,
    fitting_rules,
    print_json,
    progress_bar,
    read,
)
from bilevel.files import write_atomically
from bilevel.planning.planner import plan_function, planner_named
from bilevel.rules.explanation.formats import explain
from bilevel.rules.explanation.why_not import why_not
from bilevel.rules.learning import learn_rules
from bilevel.rules.practice import Practice, practise_one, together
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import domain_line, format_rules, read_rules
from bilevel.rules.verification.families import describe_family, verify_family
from bilevel.rules.verification.growing import Family, Starts, parse_counts
from bilevel.rules.verification.policies import MAX_STATES, Counterexample, Kind, Status, describe, verify
from bilevel.symbolic.domain import BadInput, Domain, Problem

MOST_SECONDS = 1_000_000


@dataclass(frozen=True)
class LearnRules:
    """Learn a rule policy from small problems and write it to a file.

    For each problem the goals are taken one at a time in a few random orders; a planner achieves each from the state
    reached so far, and the rules are what these plans have in common.

    Example: bilevel rules learn domain.pddl training/*.pddl --output ferry.rules
    """

    domain: DomainFile
    """PDDL domain file."""
    problems: ProblemFiles
    """PDDL problem files to learn from: small ones, a few objects each."""
    output: Output
    """Where to write the rules."""
    seed: int = 0
    """Decides the orders of the goals and, in a nondeterministic domain, nature's choices."""
    orders: int = 3
    """In how many random orders to take each problem's goals."""
    planner: Literal["auto", "fast-downward", "search"] = "auto"
    """`search` is built in; `fast-downward` needs the extra `planners`; `auto` gives `search` a fifth of the time limit
    and Fast Downward, where it is installed, the rest."""
    time_limit: float = 30.0
    """Seconds the planner may take for one goal; goals it cannot reach in time are skipped and named."""
    workers: int = 1
    """How many processes plan at the same time; the rules are the same for any number."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        domain, problems = read(self.domain, *self.problems)
        self._check(problems)
        started = time.perf_counter()
        practice = self._practise(domain, problems)
        planned = time.perf_counter()
        rules = learn_rules(practice.traces, domain)
        learned = time.perf_counter()
        text = format_rules(rules, [domain_line(domain.name), self._provenance(practice)])
        skipped = {str(self.problems[n]): [str(g) for g in goals] for n, goals in practice.skipped.items()}
        if rules:
            write_atomically(self.output, text)
        if self.json:
            print_json(
                rules=len(rules),
                traces=len(practice.traces),
                skipped=skipped,
                output=str(self.output) if rules else None,
                planning_seconds=round(planned - started, 3),
                learning_seconds=round(learned - planned, 4),
            )
            return 0 if rules else 1
        written = f"written to {self.output}" if rules else "nothing was written"
        if rules:
            print(text)
        print(
            f"{count(rules, 'rule')} from {count(practice.traces, 'trace')}: {planned - started:.2f} s planning, "
            f"{(learned - planned) * 1000:.0f} ms learning; {written}"
        )
        if skipped:
            print(f"no plan found for goals of {len(skipped)} of {len(problems)} problems, left out:")
            for name, goals in skipped.items():
                print(f"  {name}: {', '.join(goals)}")
        return 0 if rules else 1

    def _check(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise BadInput("no problems to learn from; name at least one problem file after the domain")
        for name, value in (("orders", self.orders), ("workers", self.workers)):
            if value < 1:
                raise BadInput(f"--{name} must be at least 1, but is {value}")
        if not 0 < self.time_limit <= MOST_SECONDS:
            raise BadInput(f"--time-limit must be between 0 and {MOST_SECONDS} seconds, but is {self.time_limit}")

    def _provenance(self, practice: Practice) -> str:
        return (
            f"learned from {count(self.problems, 'problem')}, goals in {self.orders} random orders, "
            f"{count(practice.traces, 'trace')}; planner {self.planner}, seed {self.seed}, "
            f"bilevel {bilevel.__version__}"
        )

    def _practise(self, domain: Domain, problems: Sequence[Problem]) -> Practice:
        tasks = [
            PracticeTask(domain, problem, number, self.planner, self.time_limit, self.orders, self.seed)
            for number, problem in enumerate(problems)
        ]
        parts: dict[int, Practice] = {}
        with progress_bar() as progress, _processes(min(self.workers, len(tasks))) as spread:
            bar = progress.add_task("planning", total=len(tasks))
            for number, practice in spread(run_task, tasks):
                parts[number] = practice
                progress.update(bar, advance=1, description=str(self.problems[number].name))
        return together(parts[number] for number in sorted(parts))


class PracticeTask(NamedTuple):
    """One problem to practise on, as it is handed to another process."""

    domain: Domain
    problem: Problem
    number: int
    planner: str
    time_limit: float
    orders: int
    seed: int


Practised = tuple[int, Practice]


def run_task(task: PracticeTask) -> Practised:
    plan_for = plan_function(planner_named(task.planner), task.time_limit)
    practice = practise_one(task.domain, task.problem, task.number, plan_for, orders=task.orders, seed=task.seed)
    return task.number, practice


Spread = Callable[[Callable[[PracticeTask], Practised], Iterable[PracticeTask]], Iterable[Practised]]


@contextmanager
def _processes(workers: int) -> Iterator[Spread]:
    """A way to apply a function to many tasks, here or in other processes, which end with the block."""
    if workers == 1:
        yield map
        return
    with get_context("spawn").Pool(workers, initializer=_obey_main_process) as pool:
        yield pool.imap_unordered


def _obey_main_process() -> None:
    """Ctrl-C reaches every process; only the first answers it, and ends the others, which then clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


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
