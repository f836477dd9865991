"""The command line: `bilevel --help`.

Exit codes: 0 all is well, 1 the answer is no (not solved, not valid, refuted), 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import bilevel
from bilevel.files import write_atomically
from bilevel.library import GENERATORS, domain_text, shipped_domain
from bilevel.planning.planner import PLANNERS, Status, fallback_planner
from bilevel.rules.diagnosis import why_not
from bilevel.rules.explanation import explain
from bilevel.rules.family_verification import describe_family, verify_family
from bilevel.rules.learning import learn_rules
from bilevel.rules.practice import Plan as PracticePlan
from bilevel.rules.practice import practise
from bilevel.rules.problem_family import Family, Starts, parse_counts
from bilevel.rules.rule_file import RuleFile, check_rules, domain_line, format_rules, read_rules
from bilevel.rules.solving import Stop, final_state, solve
from bilevel.rules.verification import MAX_STATES, describe, verify
from bilevel.rules.verification import Status as Answer
from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.pddl import read_domain, read_plan, read_problem, write_plan, write_problem
from bilevel.symbolic.validation import validate

DomainFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DOMAIN")]
ProblemFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM")]
ProblemFiles = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PROBLEM...")]
RulesFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
PlanFile = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PLAN")]
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
Output = Annotated[Path, tyro.conf.arg(metavar="FILE")]
OptionalOutput = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
Bound = Annotated[int | None, tyro.conf.arg(metavar="N")]


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
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        domain, problems = _read(self.domain, *self.problems)
        if not problems:
            raise BadInput("no problems to learn from; name at least one problem file after the domain")
        started = time.perf_counter()
        planner = fallback_planner() if self.planner == "auto" else PLANNERS[self.planner]

        def plan_for(domain: Domain, problem: Problem) -> PracticePlan | None:
            result = planner(domain, problem, self.time_limit)
            if result.status is Status.ERROR:
                raise BadInput(f"the planner failed on problem '{problem.name}': {result.message}")
            return [step.ground(domain) for step in result.steps] if result.status is Status.SOLVED else None

        with _progress() as progress:
            bar = progress.add_task("planning", total=len(problems) * self.orders)
            practice = practise(
                domain,
                problems,
                plan_for,
                orders=self.orders,
                seed=self.seed,
                done=lambda name: progress.update(bar, advance=1, description=name),
            )
        planned = time.perf_counter()
        rules = learn_rules(practice.traces, domain)
        learned = time.perf_counter()
        provenance = [
            domain_line(domain.name),
            f"learned from {_count(problems, 'problem')}, goals in {self.orders} random orders, "
            f"{_count(practice.traces, 'trace')}; planner {self.planner}, seed {self.seed}, "
            f"bilevel {bilevel.__version__}",
        ]
        text = format_rules(rules, provenance)
        write_atomically(self.output, text)
        skipped = {name: [str(goal) for goal in goals] for name, goals in practice.skipped.items()}
        if self.json:
            _print_json(
                rules=len(rules),
                traces=len(practice.traces),
                skipped=skipped,
                output=str(self.output),
                planning_seconds=round(planned - started, 3),
                learning_seconds=round(learned - planned, 4),
            )
            return 0
        print(text)
        print(
            f"{_count(rules, 'rule')} from {_count(practice.traces, 'trace')}: {planned - started:.2f} s planning, "
            f"{(learned - planned) * 1000:.0f} ms learning; written to {self.output}"
        )
        if skipped:
            print(f"no plan found for goals of {len(skipped)} of {len(problems)} problems, left out:")
            for name, goals in skipped.items():
                print(f"  {name}: {', '.join(goals)}")
        return 0


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
            _print_json(
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
        domain, problems = _read(self.domain, *self.problems)
        rules = _fitting(self.file, domain).rules
        if not problems:
            raise BadInput("no problems to verify; name at least one problem file after the domain")
        if self.grow:
            starts = Starts[self.starts.replace("-", "_").upper()]
            counts = parse_counts(self.grow)
            meant = Family(tuple(problems), counts, starts, complete_goals=self.complete_goals)
            family = verify_family(rules, domain, meant, self.max_states)
            self._tell("family", family.status, describe_family(family), family.explored)
            return 0 if family.status is Answer.SOLVED else 1
        answers = []
        for problem in problems:
            verdict = verify(rules, domain, problem, self.max_states)
            answers.append(verdict.status)
            text = describe(verdict)
            if verdict.counterexample is not None:
                near = why_not(
                    rules, domain, verdict.counterexample.state, problem.goal, problem.all_objects(domain)
                ).replace("\n", "\n  ")
                text += f"\n  {near}" if near != "some rule applies" else ""
            self._tell(problem.name, verdict.status, text, verdict.explored)
        return 0 if all(answer is Answer.SOLVED for answer in answers) else 1

    def _tell(self, name: str, answer: Answer, text: str, explored: int) -> None:
        if self.json:
            _print_json(problem=name, answer=answer.value, explored=explored, text=text)
        else:
            print(f"{name}: {text}")


@dataclass(frozen=True)
class Solve:
    """Solve a problem by rules, without search.

    Prints the plan, or writes it with --plan; exits with 1 and the reason when it stops short.

    Example: bilevel solve domain.pddl huge.pddl --rules ferry.rules --plan huge.plan
    """

    domain: DomainFile
    """PDDL domain file."""
    problem: ProblemFile
    """PDDL problem file."""
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
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        started = time.perf_counter()
        domain, (problem,) = _read(self.domain, self.problem)
        rules = _fitting(self.rules, domain).rules
        if self.max_steps is not None and self.max_steps < 0:
            raise BadInput(f"--max-steps must not be negative, but is {self.max_steps}")
        read = time.perf_counter()
        solution = solve(domain, problem, rules, seed=self.seed, max_steps=self.max_steps, commit=not self.memoryless)
        solved = time.perf_counter()
        steps = len(solution.plan.actions)
        reason = "" if solution.is_solved else self._reason(domain, problem, rules, solution)
        if solution.is_solved and self.plan is not None:
            write_atomically(self.plan, write_plan(solution.plan))
        if self.json:
            _print_json(
                outcome=solution.stop.name.lower().replace("_", "-"),
                steps=steps,
                open_goals=solution.open_goals,
                reason=reason,
                reading_seconds=round(read - started, 4),
                solving_seconds=round(solved - read, 4),
                writing_seconds=round(time.perf_counter() - solved, 4),
                plan=str(self.plan) if self.plan and solution.is_solved else None,
            )
        elif solution.is_solved:
            if self.plan is None:
                print(write_plan(solution.plan), end="")
            times = f"{read - started:.2f} s reading, {solved - read:.2f} s solving"
            print(f"solved in {steps} steps ({times})", file=sys.stderr)
        else:
            print(reason, file=sys.stderr)
        return 0 if solution.is_solved else 1

    def _reason(self, domain: Domain, problem: Problem, rules: Any, solution: Any) -> str:
        head = f"not solved: {solution.stop.value} after {len(solution.plan.actions)} steps"
        head += f", {solution.open_goals} of {len(problem.goal)} goals open"
        if solution.stop is Stop.NO_RULE:
            state, objects = final_state(domain, problem, solution.plan)
            return f"{head}; closest:\n{why_not(rules, domain, state, problem.goal, objects)}"
        return f"{head}: {solution.detail}" if solution.detail else head


@dataclass(frozen=True)
class Validate:
    """Check that a plan can be carried out and reaches the goal; exits with 1 and says where if it does not."""

    domain: DomainFile
    """PDDL domain file."""
    problem: ProblemFile
    """PDDL problem file."""
    plan: PlanFile
    """Plan file: one (action argument ...) a line."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        domain, (problem,) = _read(self.domain, self.problem)
        verdict = validate(domain, problem, read_plan(self.plan, domain))
        if self.json:
            _print_json(valid=verdict.is_valid, steps=verdict.steps, text=str(verdict))
        else:
            print(verdict)
        return 0 if verdict.is_valid else 1


@dataclass(frozen=True)
class MakeProblem:
    """Write a random problem of one of the shipped domains, of any size.

    Example: bilevel problem blocks --objects 10000 --output blocks-10000.pddl
    """

    name: Name
    """Which family of problems."""
    output: Output
    """Where to write the problem; its domain is written beside it."""
    objects: int = 10
    """How large: the number of blocks, items or colours."""
    seed: int = 0
    """Decides everything that is random."""

    def run(self) -> int:
        if self.name not in GENERATORS:
            raise BadInput(f"unknown problem family '{self.name}'; known families: {', '.join(GENERATORS)}")
        if self.objects < 1:
            raise BadInput(f"--objects must be at least 1, but is {self.objects}")
        problem = GENERATORS[self.name](self.objects, random.Random(self.seed))
        domain = shipped_domain(problem.domain_name)
        beside = self.output.parent / f"{domain.name}-domain.pddl"
        write_atomically(beside, domain_text(domain.name))
        write_atomically(self.output, write_problem(problem, domain))
        print(f"wrote {self.output} and {beside}")
        return 0


RulesCommand = (
    Annotated[LearnRules, tyro.conf.subcommand("learn")]
    | Annotated[ShowRules, tyro.conf.subcommand("show")]
    | Annotated[VerifyRules, tyro.conf.subcommand("verify")]
)


@dataclass(frozen=True)
class Rules:
    """Learn, show and verify rule policies."""

    command: Annotated[RulesCommand, tyro.conf.arg(name="")]

    def run(self) -> int:
        return self.command.run()


Command = (
    Annotated[Rules, tyro.conf.subcommand("rules")]
    | Annotated[Solve, tyro.conf.subcommand("solve")]
    | Annotated[Validate, tyro.conf.subcommand("validate")]
    | Annotated[MakeProblem, tyro.conf.subcommand("problem")]
)


def _read(domain_path: Path, *problem_paths: Path) -> tuple[Domain, list[Problem]]:
    domain = read_domain(domain_path)
    return domain, [read_problem(path, domain) for path in problem_paths]


def _fitting(path: Path, domain: Domain) -> RuleFile:
    """The rules of a file, which must fit the domain."""
    file = read_rules(path)
    check_rules(file, domain)
    return file


def _progress() -> Progress:
    columns = TextColumn("[progress.description]{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)


def _count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _print_json(**values: object) -> None:
    print(json.dumps(values))


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        print(f"bilevel {bilevel.__version__}")
        sys.exit(0)
    command = tyro.cli(
        Command,
        prog="bilevel",
        description="BISON: learn rule policies from small problems and run them on huge ones.",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    try:
        code = command.run()
        sys.stdout.flush()
    except BadInput as error:
        print(f"bilevel: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("bilevel: interrupted; nothing was written", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    sys.exit(code)


if __name__ == "__main__":
    main()
