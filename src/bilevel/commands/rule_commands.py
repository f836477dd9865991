"""Commands about rules: verify them, and learn them from problems and a planner or from demonstrations."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Optional

import tyro

import bilevel
from bilevel.commands.arguments import (
    DomainFile,
    Output,
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
from bilevel.planning.planners import plan_function
from bilevel.processes import Work, spread
from bilevel.rules.explanation.why_not import why_not
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import domain_line, format_rules, read_rules
from bilevel.rules.traces import ProblemTraces, Trace, traces_from_problem
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


MOST_SECONDS = 1_000_000

OptionalDomain = Annotated[Optional[Path], tyro.conf.Positional, tyro.conf.arg(metavar="DOMAIN")]
OptionalFolder = Annotated[Optional[Path], tyro.conf.arg(metavar="DIR")]


class TrainingTraces(NamedTuple):
    """The traces to learn from, how they were made, and what else is to be said of them."""

    domain: Domain
    traces: Sequence[Trace]
    work: str  # what making them was: planning or labelling
    source: str
    details: Mapping[str, object]
    notes: list[str]


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
        self._check()
        started = time.perf_counter()
        domain, traces, work, source, details, notes = (
            self._from_problems() if self.demonstrations is None else self._from_demonstrations(self.demonstrations)
        )
        made = time.perf_counter()
        rules = learn_rules(traces, domain)
        learned = time.perf_counter()
        text = format_rules(rules, [domain_line(domain.name), f"learned from {source}, bilevel {bilevel.__version__}"])
        if rules:
            write_atomically(self.output, text)
        if self.json:
            seconds = {f"{work}_seconds": round(made - started, 3), "learning_seconds": round(learned - made, 4)}
            output = str(self.output) if rules else None
            print_json(rules=len(rules), traces=len(traces), output=output, **details, **seconds)
        else:
            if rules:
                print(text)
            times = f"{made - started:.2f} s {work}, {(learned - made) * 1000:.0f} ms learning"
            written = f"written to {self.output}" if rules else "nothing was written"
            print(f"{count(rules, 'rule')} from {count(traces, 'trace')}: {times}; {written}", *notes, sep="\n")
        return 0 if rules else 1

    def _check(self) -> None:
        if self.demonstrations is not None and (self.domain or self.problems):
            raise BadInput("give either a domain and problems or --demonstrations, not both")
        if self.demonstrations is None and (self.domain is None or not self.problems):
            raise BadInput("no problems to learn from; name a domain and at least one problem file after it")
        require_at_least(1, orders=self.orders, workers=self.workers)
        if not 0 < self.time_limit <= MOST_SECONDS:
            raise BadInput(f"--time-limit must be between 0 and {MOST_SECONDS} seconds, but is {self.time_limit}")

    def _from_problems(self) -> TrainingTraces:
        assert self.domain is not None
        domain, problems = read(self.domain, *self.problems)
        found = self._plan(domain, problems)
        source = (
            f"{count(self.problems, 'problem')}, goals in {self.orders} random orders, "
            f"{count(found.traces, 'trace')}; planner {self.planner}, seed {self.seed}"
        )
        skipped = {str(self.problems[n]): [str(goal) for goal in goals] for n, goals in found.skipped.items()}
        notes = [f"no plan found for goals of {len(skipped)} of {len(problems)} problems, left out:"] if skipped else []
        notes += [f"  {name}: {', '.join(goals)}" for name, goals in skipped.items()]
        return TrainingTraces(domain, found.traces, "planning", source, {"skipped": skipped}, notes)

    def _from_demonstrations(self, folder: Path) -> TrainingTraces:
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.demonstrations.traces import Summary, summaries

        dataset = Demonstrations.read(folder)
        with progress_bar() as progress:
            found = sum(
                progress.track(summaries(dataset, dataset.domain), len(dataset), description="labelling"), Summary()
            )
        source = f"{count(dataset, 'demonstration')} of {dataset.task}, {count(found.traces, 'trace')}"
        details = {"demonstrations": len(dataset), "exogenous": found.exogenous, "ambiguous": found.ambiguous}
        notes = [f"changes that no action explains: {found.exogenous}; that several explain: {found.ambiguous}"]
        return TrainingTraces(dataset.domain, found.traces, "labelling", source, details, notes)

    def _plan(self, domain: Domain, problems: Sequence[Problem]) -> ProblemTraces:
        """Return the traces of the planner's plans for all problems, made by several processes."""
        start = partial(_start, domain, problems, self.planner, self.time_limit, self.orders, self.seed)
        with progress_bar() as progress, closing(spread(start, range(len(problems)), self.workers)) as done:
            parts = dict(progress.track(done, total=len(problems), description="planning"))
        return ProblemTraces.joined(parts[number] for number in sorted(parts))


def _start(
    domain: Domain, problems: Sequence[Problem], planner: str, time_limit: float, orders: int, seed: int
) -> Work[tuple[int, ProblemTraces]]:
    """Return a process's work: from the number of a problem to its traces."""
    plan_for = plan_function(planner, time_limit)
    return lambda n: (n, traces_from_problem(domain, problems[n], n, plan_for, orders=orders, seed=seed))
