"""Commands about rules: learn, complete, show and verify them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bilevel.cli.options import (
    COUNT,
    FILE,
    FOLDER,
    SECONDS,
    SEED,
    N,
    argument,
    command,
    domain_argument,
    json_lines_option,
    json_option,
    option,
    read,
    required,
    words,
    workers_option,
)
from bilevel.cli.output import answer, count, progress_line, tracked
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.progress import Callback
    from bilevel.rules.learning import RuleLearner
    from bilevel.rules.pruning import Pruning
    from bilevel.rules.rule import Rule
    from bilevel.rules.traces import ProblemTraces
    from bilevel.rules.verification.families import FamilyVerdict
    from bilevel.rules.verification.policies import ProblemVerdict
    from bilevel.symbolic.domain import Domain, Problem

FEW_RULES = 40  # as many are left as they are: what they were learned from need not be all that they will meet

rules_argument = argument("file", FILE, "Rule file.")


@command()
@rules_argument
@option("--format", ("text", "markdown", "latex", "english"), "How to print it.", "text", name="form")
@json_lines_option
def show(file: Path, form: str, as_json: bool) -> None:
    """Print a rule file as text, as a Markdown table, as LaTeX like the paper's appendix, or in plain English.

    \b
    Example:
      bilevel rules show ferry.rules --format english
    """
    from bilevel.rules.explanation.formats import FORMATS
    from bilevel.rules.rule_file import read_rules

    rules = read_rules(file)
    if not as_json:
        print(FORMATS[form](rules), end="")  # type: ignore[index]
        return
    for rule in rules:
        conditions, action = list(rule.conditions()), str(rule.action)
        found = {"priority": rule.priority, "variables": rule.types, "conditions": conditions, "action": action}
        answer(found, as_json)


@command()
@rules_argument
@domain_argument
@argument("problems", FILE, "PDDL problem files.", nargs=-1, required=True)
@words("--grow", "TYPE=N...", "Verify the family of problems with up to so many objects of a type: block=4 place=4.")
@option(
    "--starts",
    ("initial", "at-rest", "any"),
    "With --grow, where problems begin: the seed's state, or any state that actions lead to (with the hand free).",
    "at-rest",
)
@option("--complete-goals", bool, "With --grow, only goals that ask something for every object that can have a goal.")
@option("--max-states", COUNT, "Give up on a problem with more states than this.", 100000)
@json_lines_option
def verify(
    file: Path,
    domain: Path,
    problems: tuple[Path, ...],
    grow: tuple[str, ...],
    starts: Any,
    complete_goals: bool,
    max_states: int,
    as_json: bool,
) -> int:
    """Check that a policy always solves a problem, whatever nature does, or show a shortest counterexample.

    With --grow the problems are seeds of a family: every problem with up to so many objects of the given types, up to
    renaming, with every goal that can come up; `colour+tray=3` grows types together.

    \b
    Example:
      bilevel rules verify blocks.rules blocks.pddl p1.pddl --grow block=4 place=4
    """
    from bilevel.rules.rule_file import read_rules
    from bilevel.rules.verification.families import verify_family
    from bilevel.rules.verification.growing import Family, parse_counts
    from bilevel.rules.verification.policies import verify

    read_domain, read_problems = read(domain, *problems)
    rules = read_rules(file, read_domain)
    report = partial(_report_verdict, rules, read_domain, as_json)
    if grow:
        meant = Family(tuple(read_problems), parse_counts(grow), starts, complete_goals)
        family = verify_family(rules, read_domain, meant, max_states)
        return report("family", family, family.problem)
    return max(
        [report(problem.name, verify(rules, read_domain, problem, max_states), problem) for problem in read_problems]
    )


def _report_verdict(
    rules: Sequence[Rule],
    domain: Domain,
    as_json: bool,
    name: str,
    verdict: ProblemVerdict | FamilyVerdict,
    problem: Problem | None,
) -> int:
    """Print a verdict, with the rules that came closest where none applied, and return the exit code."""
    from bilevel.rules.explanation.why_not import why_not
    from bilevel.rules.verification.policies import Answer, Ending

    text, found = str(verdict), verdict.counterexample
    if problem is not None and found is not None and found.ending is Ending.NO_RULE:
        reasons = why_not(rules, domain, found.state, problem.goal, problem.all_objects(domain))
        text += "".join(f"\n  {reason}" for reason in reasons.splitlines())
    values = {"problem": name, "answer": verdict.answer.value, "explored": verdict.explored, "text": text}
    answer(values, as_json, f"{name}: {text}")
    return 0 if verdict.answer is Answer.SOLVED else 1


@command()
@rules_argument
@domain_argument
@argument(
    "problems", FILE, "PDDL problem files to begin from (by default, ones in which a rule just applies).", nargs=-1
)
@words(
    "--objects", "TYPE=N...", "Look at all problems with up to so many objects of a type (by default as the problems)."
)
@option("--output", FILE, "Where to write the rules.")
@option("--random-problems", N, "How many larger problems to draw and try.", 100)
@option("--max-states", COUNT, "Leave out a problem with more states, or goals, than this.", 2000)
@option("--budget", COUNT, "Stop when so many states with goals have been looked at.", 3000000)
@option("--seed", SEED, "Decides which larger problems are drawn.", 0)
@json_option
def complete(
    file: Path,
    domain: Path,
    problems: tuple[Path, ...],
    objects: tuple[str, ...],
    output: Path | None,
    random_problems: int,
    max_states: int,
    budget: int,
    seed: int,
    as_json: bool,
) -> int:
    """Find where no rule applies, plan from there, and put what is learned behind the rules, until nothing is missing.

    Every state that any actions lead to is looked at, with every goal, in problems with up to so many objects; so what
    is said of these is proved. Larger ones are drawn at random and tried. The rules that were given stay as they are,
    in front.

    \b
    Example:
      bilevel rules complete swap.rules swap.pddl p1.pddl --objects block=3 place=3 --output complete.rules
    """
    import bilevel
    from bilevel.files import write_atomically
    from bilevel.planning.planners import bounded_plan
    from bilevel.rules.completion import complete_rules, problems_from_rules
    from bilevel.rules.rule_file import domain_line, format_rules, read_rules
    from bilevel.rules.verification.growing import parse_counts

    read_domain, read_problems = read(domain, *problems)
    rules = read_rules(file, read_domain)
    began = time.perf_counter()
    with progress_line() as callback:
        found = complete_rules(
            rules,
            read_domain,
            read_problems or problems_from_rules(rules, read_domain),
            objects=parse_counts(objects),
            plan_for=bounded_plan,
            random_problems=random_problems,
            max_states=max_states,
            budget=budget,
            seed=seed,
            callback=_of_parts(callback),
        )
    about = [domain_line(read_domain.name), f"completed by bilevel {bilevel.__version__}", *str(found).splitlines()]
    text = format_rules(found.rules, about)
    if output is not None:
        write_atomically(output, text)
    seconds = time.perf_counter() - began
    values = {
        "rules": len(found.rules),
        "given": found.given,
        "proved": found.is_proved,
        "commit": found.commit,
        "sizes": found.sizes,
        "problems": found.problems,
        "tried": found.tried,
        "solved": found.solved,
        "text": str(found),
        "output": str(output) if output else None,
        "seconds": round(seconds, 2),
    }
    written = f"; written to {output}" if output else ""
    made = f"{count(found.given, 'rule')} and {len(found.rules) - found.given} more in {seconds:.1f} s{written}"
    answer(values, as_json, "" if output else text, made, str(found))
    return 0 if found.is_proved else 1


def _of_parts(callback: Callback) -> Any:
    """Return a callback of three arguments, as the rules' own functions call it."""
    from bilevel.progress import Progress

    return lambda stage, done, total: callback(Progress(stage, done, total))


# Learning


class Learned(NamedTuple):
    """The rules, what they were learned from, how long each part of it took, and what else is to be said."""

    domain: Domain
    rules: tuple[Rule, ...]
    traces: int
    source: str
    seconds: Mapping[str, float]
    details: Mapping[str, object]
    notes: list[str]


class Planned(NamedTuple):
    """What was planned for a problem."""

    number: int
    traces: ProblemTraces
    seconds: float


@command()
@argument("domain", FILE, "PDDL domain file.", required=False)
@argument("problems", FILE, "PDDL problem files to learn from: small ones, a few objects each.", nargs=-1)
@required("--output", FILE, "Where to write the rules.")
@option("--demonstrations", FOLDER, "Learn from this data set instead of problems; see `bilevel collect`.")
@option("--seed", SEED, "Decides the orders of the goals and, in a nondeterministic domain, nature's choices.", 0)
@option("--orders", COUNT, "In how many random orders to take each problem's goals.", 3)
@option(
    "--planner",
    ("auto", "fast-downward", "search"),
    "`search` is built in; `fast-downward` needs the extra `planners`; `auto` leaves to Fast Downward, where it is "
    "installed, what takes `search` too long.",
    "auto",
)
@option("--time-limit", SECONDS, "Seconds that the planner may take for one goal; others are skipped and named.", 60.0)
@option("--patience", N, "Stop after so many problems in a row that show no new rule; 0 looks at all problems.", 0)
@option(
    "--prune",
    ("auto", "always", "never"),
    "Drop rules that the problems, and variants of them, are solved without; `auto` does so for more than 40 rules.",
    "auto",
)
@option(
    "--algorithm",
    ("single-goal", "printed"),
    "Regress one goal at a time over what was observed; or the whole goal over every outcome, as Algorithm 1 of the "
    "paper is printed, which takes --demonstrations.",
    "single-goal",
)
@workers_option
@json_option
def learn(output: Path, demonstrations: Path | None, as_json: bool, **given: Any) -> int:
    """Learn a rule policy from small problems, or from demonstrations, and write it to a file.

    For each problem the goals are taken one at a time in a few random orders; a planner achieves each from the state
    reached so far, and the rules are what these plans have in common. Demonstrations are labelled, and what changes is
    explained by actions; then neither a domain file nor a planner is needed.

    \b
    Examples:
      bilevel rules learn domain.pddl training/*.pddl --output ferry.rules
      bilevel rules learn --demonstrations build/blocks --output blocks.rules
    """
    import bilevel
    from bilevel.files import write_atomically
    from bilevel.rules.rule_file import domain_line, format_rules

    algorithm, domain, problems = given.pop("algorithm"), given.pop("domain"), given.pop("problems")
    if demonstrations is not None:
        if domain:
            raise BadInput("give either a domain and problems or --demonstrations, not both")
        if given["prune"] == "always":
            raise BadInput("--prune always needs problems to try the rules on, but --demonstrations has none")
        learned = _learn_from_demonstrations(demonstrations, algorithm)
    else:
        if not problems:
            raise BadInput("no problems to learn from; name a domain and at least one problem file after it")
        if algorithm == "printed":
            raise BadInput("--algorithm printed takes --demonstrations: plans for problems have one goal at a time")
        learned = _learn_from_problems(domain, problems, **given)
    rules, traces = learned.rules, learned.traces
    about = [domain_line(learned.domain.name), f"learned from {learned.source}, bilevel {bilevel.__version__}"]
    text = format_rules(rules, about)
    if rules:
        write_atomically(output, text)
    times = {f"{work}_seconds": round(spent, 3) for work, spent in learned.seconds.items()}
    values = {"rules": len(rules), "traces": traces, "output": str(output) if rules else None}
    times_text = ", ".join(f"{spent:.2f} s {work}" for work, spent in learned.seconds.items())
    written = f"written to {output}" if rules else "nothing was written"
    made = f"{count(rules, 'rule')} from {count(traces, 'trace')}: {times_text}; {written}"
    answer({**values, **learned.details, **times}, as_json, text if rules else "", made, *learned.notes)
    return 0 if rules else 1


def _learn_from_demonstrations(folder: Path, algorithm: Any) -> Learned:
    """Learn from a data set, as it is labelled."""
    from bilevel.demonstrations.checking import Contents
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.rules.learning import learn_rules

    began = time.perf_counter()
    dataset = Demonstrations.read(folder)
    with progress_line() as callback:
        found = Contents.of(dataset, callback)
    labelled = time.perf_counter()
    rules = learn_rules(found.traces, dataset.domain, algorithm)
    seconds = {"labelling": labelled - began, "learning": time.perf_counter() - labelled}
    source = f"{count(dataset, 'demonstration')} of {dataset.task}, {count(found.traces, 'trace')}"
    details = {"demonstrations": len(dataset), "exogenous": found.exogenous, "ambiguous": found.several}
    notes = [f"changes that no action explains: {found.exogenous}; that several explain: {found.several}"]
    return Learned(dataset.domain, rules, len(found.traces), source, seconds, details, notes)


def _learn_from_problems(
    domain: Path, paths: Sequence[Path], *, seed: int, orders: int, planner: str, time_limit: float,
    patience: int, prune: str, workers: int | None,
) -> Learned:  # fmt: skip
    """Plan for problems in several processes, learn from the plans of each in turn, and prune the rules."""
    read_domain, problems = read(domain, *paths)
    began = time.perf_counter()
    planning = Planning(read_domain, problems, planner, time_limit, orders, seed)
    with progress_line() as callback:
        learner, found, learning = _learn_in_turn(planning, patience, workers, callback)
        planned = time.perf_counter()
        rules = learner.rules()
        learned = time.perf_counter()
        pruning = _prune(rules, read_domain, problems, prune, seed, callback)
    seconds = {"planning": planned - began - learning, "learning": learned - planned + learning}
    if pruning is not None:
        rules, seconds["pruning"] = pruning.rules, time.perf_counter() - learned
    traces = sum(len(each.traces.traces) for each in found)
    source = (
        f"{count(found, 'problem')}, goals in {orders} random orders, "
        f"{count(traces, 'trace')}; planner {planner}, seed {seed}"
    )
    skipped = {str(paths[n]): list(map(str, goals)) for each in found for n, goals in each.traces.skipped.items()}
    notes = [f"no plan found for goals of {len(skipped)} of {len(problems)} problems, left out:"] if skipped else []
    notes += [f"  {name}: {', '.join(goals)}" for name, goals in skipped.items()]
    longest = max(found, key=lambda each: each.seconds)
    notes += [f"most planning: {longest.seconds:.2f} s for {paths[longest.number]}"] if len(found) > 1 else []
    if len(found) < len(problems):
        notes.append(f"stopped after {len(found)} of {len(problems)} problems: the last {patience} show no new rule")
    notes += [str(pruning)] if pruning else []
    details = {"problems": len(found), "skipped": skipped, "dropped": pruning.dropped if pruning else 0}
    return Learned(read_domain, rules, traces, source, seconds, details, notes)


@dataclass(frozen=True)
class Planning:
    """A worker's work: from the number of a problem to its traces and the seconds that they took."""

    domain: Domain
    problems: Sequence[Problem]
    planner: str
    time_limit: float
    orders: int
    seed: int

    def __call__(self, number: int) -> tuple[int, Planned]:
        """Plan for the goals of a problem."""
        from bilevel.planning.planners import plan_function
        from bilevel.rules.traces import traces_from_problem

        began = time.perf_counter()
        plan_for = plan_function(self.planner, self.time_limit)
        traces = traces_from_problem(
            self.domain, self.problems[number], number, plan_for, orders=self.orders, seed=self.seed
        )
        return number, Planned(number, traces, time.perf_counter() - began)


def _learn_in_turn(
    planning: Planning, patience: int, workers: int | None, callback: Callback
) -> tuple[RuleLearner, list[Planned], float]:
    """Return the learner, what was planned, and how many seconds learning took meanwhile."""
    from bilevel.parallel import in_order, parallel
    from bilevel.rules.learning import RuleLearner

    learner, found, learning, quiet = RuleLearner(planning.domain), list[Planned](), 0.0, 0
    total = len(planning.problems)
    with closing(parallel(planning, range(total), workers)) as done:
        for planned in tracked(in_order(done), total, "planning", callback):
            began = time.perf_counter()
            news = [learner.add(trace) for trace in planned.traces.traces]
            learning += time.perf_counter() - began
            found.append(planned)
            quiet = 0 if any(news) else quiet + 1
            if patience and quiet == patience:
                break
    return learner, found, learning


def _prune(
    rules: tuple[Rule, ...], domain: Domain, problems: Sequence[Problem], prune: str, seed: int, callback: Callback
) -> Pruning | None:
    """Drop the rules that can be spared, if that is wanted and possible."""
    from bilevel.rules.pruning import can_be_pruned, prune_rules

    wanted = prune == "always" or (prune == "auto" and len(rules) > FEW_RULES)
    if not wanted or not can_be_pruned(rules, domain):
        return None
    return prune_rules(rules, domain, problems, seed=seed, callback=_of_parts(callback))
