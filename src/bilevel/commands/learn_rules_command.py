"""The command that learns rules, from problems and a planner or from demonstrations."""

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
    Algorithm,
    Output,
    ProblemFiles,
    WorkerCount,
    count,
    print_json,
    progress_bar,
    read,
    require_at_least,
)
from bilevel.files import write_atomically
from bilevel.planning.planners import plan_function
from bilevel.processes import Work, in_order, spread
from bilevel.rules.learning import PRINTED, RuleLearner, learn_rules
from bilevel.rules.pruning import Pruning, can_be_pruned, prune_rules
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.rules.traces import ProblemTraces, traces_from_problem
from bilevel.symbolic.domain import BadInput, Domain, Problem

MOST_SECONDS = 1_000_000
FEW_RULES = 40  # as many are left as they are: what they were learned from need not be all that they will meet

Prune = Literal["auto", "always", "never"]
Planned = tuple[int, ProblemTraces, float]  # the number of a problem, its traces, and how long they took

OptionalDomain = Annotated[Optional[Path], tyro.conf.Positional, tyro.conf.arg(metavar="DOMAIN")]
OptionalFolder = Annotated[Optional[Path], tyro.conf.arg(metavar="DIR")]


class Learned(NamedTuple):
    """The rules, what they were learned from, how long each part of it took, and what else is to be said."""

    domain: Domain
    rules: tuple[Rule, ...]
    traces: int
    source: str
    seconds: Mapping[str, float]
    details: Mapping[str, object]
    notes: list[str]


@dataclass(frozen=True)
class LearnRules:
    """Learn a rule policy from small problems, or from demonstrations, and write it to a file.

    For each problem the goals are taken one at a time in a few random orders; a planner achieves each from the state
    reached so far, and the rules are what these plans have in common. Demonstrations are labelled, and what changes is
    explained by actions; then neither a domain file nor a planner is needed.

    Examples: bilevel rules learn domain.pddl training/*.pddl --output ferry.rules
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
    """`search` is built in; `fast-downward` needs the extra `planners`; `auto` leaves to Fast Downward, where it is
    installed, what takes `search` too long."""
    time_limit: float = 60.0
    """Seconds the planner may take for one goal; goals it cannot reach in time are skipped and named."""
    patience: int = 0
    """Stop after so many problems in a row whose plans show no new rule; 0 looks at all problems."""
    prune: Prune = "auto"
    """Drop rules that the problems, and variants of them, can be solved without; `auto` does so where there are more
    than 40 rules."""
    algorithm: Algorithm = "single-goal"
    """Regress one goal at a time over what was observed; or `printed`: the whole goal over every outcome, as Algorithm
    1 of the paper is printed, to see what comes of it. That takes --demonstrations."""
    workers: WorkerCount = None
    """How many processes plan at the same time (by default one for each core, where that saves time); the rules are the
    same for any number."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        self._check()
        domain, rules, traces, source, seconds, details, notes = (
            self._from_problems() if self.demonstrations is None else self._from_demonstrations(self.demonstrations)
        )
        text = format_rules(rules, [domain_line(domain.name), f"learned from {source}, bilevel {bilevel.__version__}"])
        if rules:
            write_atomically(self.output, text)
        if self.json:
            output = str(self.output) if rules else None
            times = {f"{work}_seconds": round(spent, 3) for work, spent in seconds.items()}
            print_json(rules=len(rules), traces=traces, output=output, **details, **times)
        else:
            if rules:
                print(text)
            times_text = ", ".join(f"{spent:.2f} s {work}" for work, spent in seconds.items())
            written = f"written to {self.output}" if rules else "nothing was written"
            counted = f"{count(rules, 'rule')} from {traces} trace{'s' * (traces != 1)}"
            print(f"{counted}: {times_text}; {written}", *notes, sep="\n")
        return 0 if rules else 1

    def _check(self) -> None:
        if self.demonstrations is not None and (self.domain or self.problems):
            raise BadInput("give either a domain and problems or --demonstrations, not both")
        if self.demonstrations is None and (self.domain is None or not self.problems):
            raise BadInput("no problems to learn from; name a domain and at least one problem file after it")
        if self.demonstrations is not None and self.prune == "always":
            raise BadInput("--prune always needs problems to try the rules on, but --demonstrations has none")
        if self.demonstrations is None and self.algorithm == PRINTED:
            raise BadInput("--algorithm printed takes --demonstrations: plans for problems have one goal at a time")
        require_at_least(1, orders=self.orders, workers=self.workers)
        require_at_least(0, patience=self.patience)
        if not 0 < self.time_limit <= MOST_SECONDS:
            raise BadInput(f"--time-limit must be between 0 and {MOST_SECONDS} seconds, but is {self.time_limit}")

    def _from_problems(self) -> Learned:
        assert self.domain is not None
        domain, problems = read(self.domain, *self.problems)
        began = time.perf_counter()
        learner, found, learning = self._plan(domain, problems)
        planned = time.perf_counter()
        rules = learner.rules()
        learned = time.perf_counter()
        pruning = self._prune(rules, domain, problems)
        seconds = {"planning": planned - began - learning, "learning": learned - planned + learning}
        if pruning is not None:
            rules, seconds["pruning"] = pruning.rules, time.perf_counter() - learned
        traces = [trace for _, part, _ in found for trace in part.traces]
        source = (
            f"{count(found, 'problem')}, goals in {self.orders} random orders, "
            f"{count(traces, 'trace')}; planner {self.planner}, seed {self.seed}"
        )
        skipped = {
            str(self.problems[n]): [str(g) for g in goals] for _, p, _ in found for n, goals in p.skipped.items()
        }
        notes = [f"no plan found for goals of {len(skipped)} of {len(problems)} problems, left out:"] if skipped else []
        notes += [f"  {name}: {', '.join(goals)}" for name, goals in skipped.items()]
        notes += self._what_took_long(found, len(problems)) + ([str(pruning)] if pruning else [])
        details = {"problems": len(found), "skipped": skipped, "dropped": pruning.dropped if pruning else 0}
        return Learned(domain, rules, len(traces), source, seconds, details, notes)

    def _what_took_long(self, found: Sequence[Planned], problems: int) -> list[str]:
        """Return a line about the problem that took longest to plan for, and one if the last ones were left out."""
        number, _, seconds = max(found, key=lambda planned: planned[2])
        notes = [f"most planning: {seconds:.2f} s for {self.problems[number]}"] if len(found) > 1 else []
        if len(found) < problems:
            notes.append(
                f"stopped after {len(found)} of {problems} problems: the last {self.patience} show no new rule"
            )
        return notes

    def _from_demonstrations(self, folder: Path) -> Learned:
        from bilevel.demonstrations.checking import Contents
        from bilevel.demonstrations.dataset import Demonstrations

        began = time.perf_counter()
        dataset = Demonstrations.read(folder)
        with progress_bar() as progress:
            bar = progress.add_task("labelling", total=len(dataset))
            found = Contents.of(dataset, lambda so_far: progress.update(bar, completed=so_far.done))
        labelled = time.perf_counter()
        rules = learn_rules(found.traces, dataset.domain, self.algorithm)
        seconds = {"labelling": labelled - began, "learning": time.perf_counter() - labelled}
        source = f"{count(dataset, 'demonstration')} of {dataset.task}, {count(found.traces, 'trace')}"
        details = {"demonstrations": len(dataset), "exogenous": found.exogenous, "ambiguous": found.several}
        notes = [f"changes that no action explains: {found.exogenous}; that several explain: {found.several}"]
        return Learned(dataset.domain, rules, len(found.traces), source, seconds, details, notes)

    def _plan(self, domain: Domain, problems: Sequence[Problem]) -> tuple[RuleLearner, list[Planned], float]:
        """Plan for the problems in several processes, and learn from the plans of each in turn.

        Return the learner, what was planned, and how many seconds learning took meanwhile.
        """
        learner, found, learning, quiet = RuleLearner(domain), list[Planned](), 0.0, 0
        start = partial(_start, domain, problems, self.planner, self.time_limit, self.orders, self.seed)
        with progress_bar() as progress, closing(spread(start, range(len(problems)), self.workers)) as done:
            for planned in progress.track(in_order(done), total=len(problems), description="planning"):
                began = time.perf_counter()
                news = [learner.add(trace) for trace in planned[1].traces]
                learning += time.perf_counter() - began
                found.append(planned)
                quiet = 0 if any(news) else quiet + 1
                if self.patience and quiet == self.patience:
                    break
        return learner, found, learning

    def _prune(self, rules: tuple[Rule, ...], domain: Domain, problems: Sequence[Problem]) -> Pruning | None:
        """Drop the rules that can be spared, if that is wanted and possible."""
        wanted = self.prune == "always" or (self.prune == "auto" and len(rules) > FEW_RULES)
        if not wanted or not can_be_pruned(rules, domain):
            return None
        with progress_bar() as progress:
            task = progress.add_task("pruning")

            def callback(doing: str, done: int, total: int) -> None:
                progress.update(task, description=doing, completed=done, total=total)

            return prune_rules(rules, domain, problems, seed=self.seed, callback=callback)


def _start(
    domain: Domain, problems: Sequence[Problem], planner: str, time_limit: float, orders: int, seed: int
) -> Work[tuple[int, Planned]]:
    """Return a process's work: from the number of a problem to its traces and the seconds that they took."""
    plan_for = plan_function(planner, time_limit)

    def work(number: int) -> tuple[int, Planned]:
        began = time.perf_counter()
        traces = traces_from_problem(domain, problems[number], number, plan_for, orders=orders, seed=seed)
        return number, (number, traces, time.perf_counter() - began)

    return work
