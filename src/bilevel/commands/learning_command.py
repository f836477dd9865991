"""The command that learns rules, from problems and a planner or from demonstrations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import tyro

import bilevel
from bilevel.commands.arguments import Output, ProblemFiles, count, print_json, progress_bar, read
from bilevel.commands.demonstration_commands import needing_worlds
from bilevel.files import write_atomically
from bilevel.planning.planners import plan_function, planner_named
from bilevel.processes import Work, spread
from bilevel.rules.learning import learn_rules
from bilevel.rules.practice import Practice, practise_one, together
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import BadInput, Domain, Problem

MOST_SECONDS = 1_000_000

OptionalDomain = Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="DOMAIN")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True)
class LearnRules:
    """Learn a rule policy from small problems, or from demonstrations, and write it to a file.

    For each problem the goals are taken one at a time in a few random orders; a planner achieves each from the state
    reached so far, and the rules are what these plans have in common. Demonstrations are labelled, and what changes is
    explained by actions; then neither a domain file nor a planner is needed.

    Examples: bilevel rules learn domain.pddl training/*.pddl --output ferry.rules;
    bilevel rules learn --demonstrations build/blocks --output blocks.rules
    """

    output: Output
    """Where to write the rules."""
    domain: OptionalDomain = None
    """PDDL domain file."""
    problems: ProblemFiles = ()
    """PDDL problem files to learn from: small ones, a few objects each."""
    demonstrations: OptionalFolder = None
    """Learn from this data set instead of problems; see `bilevel collect`."""
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
        if self.demonstrations is None:
            return self._learn_from_problems()
        if self.domain or self.problems:
            raise BadInput("give either a domain and problems or --demonstrations, not both")
        return self._learn_from_demonstrations(self.demonstrations)

    def _learn_from_problems(self) -> int:
        if self.domain is None or not self.problems:
            raise BadInput("no problems to learn from; name a domain and at least one problem file after it")
        domain, problems = read(self.domain, *self.problems)
        self._check()
        started = time.perf_counter()
        practice = self._practise(domain, problems)
        planned = time.perf_counter()
        rules = learn_rules(practice.traces, domain)
        learned = time.perf_counter()
        skipped = {str(self.problems[n]): [str(g) for g in goals] for n, goals in practice.skipped.items()}
        text = self._write(rules, domain, self._provenance(practice))
        if self.json:
            self._print_json(
                rules,
                practice.traces,
                skipped=skipped,
                planning_seconds=round(planned - started, 3),
                learning_seconds=round(learned - planned, 4),
            )
            return 0 if rules else 1
        times = f"{planned - started:.2f} s planning, {(learned - planned) * 1000:.0f} ms learning"
        self._tell(text, rules, practice.traces, times)
        if skipped:
            print(f"no plan found for goals of {len(skipped)} of {len(problems)} problems, left out:")
            for name, goals in skipped.items():
                print(f"  {name}: {', '.join(goals)}")
        return 0 if rules else 1

    def _learn_from_demonstrations(self, folder: Path) -> int:
        with needing_worlds():
            from bilevel.demonstrations.dataset import read_dataset
            from bilevel.demonstrations.traces import Summary, summaries
        dataset = read_dataset(folder)
        domain = dataset.task.domain
        started = time.perf_counter()
        with progress_bar() as progress:
            found = sum(progress.track(summaries(dataset), len(dataset), description="labelling"), Summary())
        labelled = time.perf_counter()
        rules = learn_rules(found.traces, domain)
        learned = time.perf_counter()
        source = f"{count(dataset, 'demonstration')} of {dataset.task.name}, {count(found.traces, 'trace')}"
        text = self._write(rules, domain, f"learned from {source}; bilevel {bilevel.__version__}")
        if self.json:
            self._print_json(
                rules,
                found.traces,
                demonstrations=len(dataset),
                exogenous=found.exogenous,
                ambiguous=found.ambiguous,
                labelling_seconds=round(labelled - started, 3),
                learning_seconds=round(learned - labelled, 4),
            )
            return 0 if rules else 1
        times = f"{labelled - started:.2f} s labelling, {(learned - labelled) * 1000:.0f} ms learning"
        self._tell(text, rules, found.traces, times)
        print(f"changes that no action explains: {found.exogenous}; that several explain: {found.ambiguous}")
        return 0 if rules else 1

    def _write(self, rules: Sequence[Rule], domain: Domain, provenance: str) -> str:
        """The text of the rule file, which is written if there are rules."""
        text = format_rules(rules, [domain_line(domain.name), provenance])
        if rules:
            write_atomically(self.output, text)
        return text

    def _print_json(self, rules: Sequence[Rule], traces: Sequence[Trace], **more: object) -> None:
        output = str(self.output) if rules else None
        print_json(rules=len(rules), traces=len(traces), output=output, **more)

    def _tell(self, text: str, rules: Sequence[Rule], traces: Sequence[Trace], times: str) -> None:
        if rules:
            print(text)
        written = f"written to {self.output}" if rules else "nothing was written"
        print(f"{count(rules, 'rule')} from {count(traces, 'trace')}: {times}; {written}")

    def _check(self) -> None:
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
        work = spread(partial(_start, tasks), range(len(tasks)), self.workers)
        with progress_bar() as progress, closing(work) as done:
            bar = progress.add_task("planning", total=len(tasks))
            for number, practice in done:
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


def _start(tasks: Sequence[PracticeTask]) -> Work[Practised]:
    return lambda number: _practise(tasks[number])


def _practise(task: PracticeTask) -> Practised:
    plan_for = plan_function(planner_named(task.planner), task.time_limit)
    practice = practise_one(task.domain, task.problem, task.number, plan_for, orders=task.orders, seed=task.seed)
    return task.number, practice
