"""Commands about rules: learn, complete, show and verify them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bilevel
from bilevel import __version__
from bilevel.cli.options import argument, command, domain_argument, option, read, required
from bilevel.cli.output import answer, count, listed, progress_line, wants_json
from bilevel.progress import Callback, Progress
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.rules.rule import Rule
    from bilevel.symbolic.domain import Domain

    Learned = tuple[Domain, Sequence[Rule], str, dict[str, Any]]  # rules, what they are from, what else is to be said

ALGORITHMS = ("auto", "states", "single-goal", "printed")
rules_argument = argument("file", "FILE", "Rule file.")


@command("rules show", "ferry.rules --format english")
@rules_argument
@option("--format", ("text", "english"), "How to print it.", "text", name="form")
def show(file: Path, form: str) -> None:
    """Print a rule file as text or in plain English."""
    from bilevel.rules.explanation import FORMATS
    from bilevel.rules.rule_file import read_rules

    rules = read_rules(file)
    if not wants_json():
        print(FORMATS[form](rules), end="")
        return
    for rule in rules:
        conditions, action = list(rule.conditions()), str(rule.action)
        found = {"priority": rule.priority, "variables": rule.types, "conditions": conditions, "action": action}
        answer(found)


@command("rules verify", "blocks.rules blocks.pddl p1.pddl --grow block=4 place=4")
@rules_argument
@domain_argument
@argument("problems", "FILE", "PDDL problem files.", nargs=-1, required=True)
@option("--grow", "TYPE=N...", "Verify the family of problems with up to N objects of a type: block=4 place=4.")
@option("--starts", ("initial", "at-rest", "any"), "With --grow, the states that problems begin in.", "at-rest")
@option("--max-states", "N>0", "Give up on a problem with more states than this.", 100000)
def verify(file: Path, domain: Path, problems: tuple[Path, ...], max_states: int, **family: Any) -> int:
    """Check that a policy always solves a problem, whatever nature does, or show a shortest counterexample.

    With --grow the problems are seeds of a family: every problem with up to N objects of the given types, up to
    renaming, with every goal in which objects are wanted as in the goals given; `colour+tray=3` grows types together.
    """
    from bilevel.rules.nearest import goals_that_wait, why_not
    from bilevel.rules.rule_file import read_rules
    from bilevel.rules.small_problems import parse_counts
    from bilevel.rules.verify import Answer, verify, verify_family

    read_domain, read_problems = read(domain, *problems)
    rules = read_rules(file, read_domain)
    if sizes := parse_counts(family.pop("grow")):
        found_family = verify_family(rules, read_domain, read_problems, sizes, max_states=max_states, **family)
        verdicts = [("family", found_family)]
    else:
        verdicts = [(problem.name, verify(rules, read_domain, problem, max_states)) for problem in read_problems]
    for name, verdict in verdicts:
        text, found, reasons = verdict.text, verdict.counterexample, list[str]()
        if found is not None:
            lacking = rules, read_domain, found.state, found.problem.goal, found.problem.all_objects(read_domain)
            is_waiting = found.loop or found.refused
            reasons = goals_that_wait(*lacking) if is_waiting else why_not(*lacking).splitlines()
        text += "".join(f"\n  {reason}" for reason in reasons) + verdict.scope
        values = {"problem": name, "answer": verdict.answer.value, "explored": verdict.explored, "text": text}
        answer(values, f"{name}: {text}")
    return 0 if all(verdict.answer is Answer.SOLVED for _, verdict in verdicts) else 1


@command("rules complete", "swap.rules swap.pddl p1.pddl --objects block=3 place=3 --output complete.rules")
@rules_argument
@domain_argument
@argument("problems", "FILE", "PDDL problem files to begin from.", nargs=-1, required=True)
@option("--objects", "TYPE=N...", "Look at problems with up to N objects of a type (by default as given).")
@option("--output", "FILE", "Where to write the rules.")
@option("--random-problems", "N", "How many larger problems to draw and try.", 100)
@option("--max-states", "N>0", "Leave out a problem with more states, or goals, than this.", 2000)
@option("--budget", "N>0", "How many states with goals to look at.", 3000000)
@option("--seed", "SEED", "Decides which larger problems are drawn.", 0)
def complete(
    file: Path, domain: Path, problems: tuple[Path, ...], objects: tuple[str, ...], output: Path | None,
    **options: Any,
) -> int:  # fmt: skip
    """Find where no rule applies, plan from there, and put what is learned behind the rules, until nothing is missing.

    Every state that any actions lead to is looked at, with every goal, in problems with up to so many objects; so what
    is said of these is proved. Larger ones are drawn at random and tried. The rules that were given stay as they are,
    in front.
    """
    from bilevel.files import write_atomically
    from bilevel.planning.planners import bounded_plan
    from bilevel.rules.complete import complete_rules
    from bilevel.rules.rule_file import domain_line, format_rules, read_rules
    from bilevel.rules.small_problems import parse_counts

    read_domain, read_problems = read(domain, *problems)
    rules = read_rules(file, read_domain)
    began = time.perf_counter()
    with progress_line() as callback:
        options |= {"objects": parse_counts(objects), "callback": lambda *done: callback(Progress(*done))}
        found = complete_rules(rules, read_domain, read_problems, plan_for=bounded_plan, **options)
    about = [domain_line(read_domain.name), f"completed by bilevel {__version__}", *found.statement.splitlines()]
    text, written = format_rules(found.rules, about), ""
    if output is not None:
        write_atomically(output, text)
        text, written = "", f"; written to {output}"
    seconds = time.perf_counter() - began
    values = {**found._asdict(), "rules": len(found.rules), "output": str(output) if output else None}
    made = f"{count(found.given, 'rule')} and {len(found.rules) - found.given} more in {seconds:.1f} s{written}"
    answer(values, text, made, found.statement)
    return 0 if found.is_proved else 1


# Learning


@command(
    "rules learn",
    "domain.pddl training/*.pddl --output ferry.rules",
    "--demonstrations build/blocks --output blocks.rules",
)
@argument("domain", "FILE", "PDDL domain file.", required=False)
@argument("problems", "FILE", "PDDL problem files to learn from: small ones, a few objects each.", nargs=-1)
@required("--output", "FILE", "Where to write the rules.")
@option("--demonstrations", "DIR", "Learn from this data set instead of problems; see `bilevel collect`.")
@option(
    "--algorithm", ALGORITHMS, "From all states, or from traces; auto: from states where these can be listed.", "auto"
)
@option("--seconds", "X>0", "Processor time that learning from states may take.", 60.0)
@option("--seed", "SEED", "Goal by goal: decides the orders of the goals and nature's choices.", 0)
@option("--orders", "N>0", "Goal by goal: in how many random orders to take each problem's goals.", 3)
@option("--planner", ("auto", "fast-downward", "search"), "Goal by goal: what plans.", "auto")
@option("--time-limit", "SECONDS", "Goal by goal: what the planner may take for one; others are skipped.", 60.0)
def learn(
    domain: Path | None, problems: tuple[Path, ...], output: Path, demonstrations: Path | None, algorithm: str,
    seconds: float, **planning: Any,
) -> int:  # fmt: skip
    """Learn a rule policy from small problems, or from demonstrations, and write it to a file.

    Where all states of small problems can be listed, an order of goals and rules are learned that are right in each of
    them, and tried on the larger ones. Else, or where nature makes choices, a planner achieves one goal after the
    other, and the rules are what these plans have in common. Demonstrations are labelled, and what changes is explained
    by actions; then neither a domain file nor a planner is needed.
    """
    from bilevel.files import write_atomically
    from bilevel.rules.rule_file import domain_line, format_rules

    if demonstrations is not None and domain is not None:
        raise BadInput("give either a domain and problems or --demonstrations, not both")
    if algorithm == ("states" if demonstrations else "printed"):
        raise BadInput("--algorithm states takes a domain and problems, and printed takes --demonstrations")
    began = time.perf_counter()
    with progress_line() as callback:
        if demonstrations is not None:
            known, found, source, values = _from_demonstrations(demonstrations, algorithm, callback)
        elif domain is None or not problems:
            raise BadInput("no problems to learn from; name a domain and at least one problem file after it")
        else:
            known, found, source, values = _from_problems(domain, problems, algorithm, seconds, callback, **planning)
    text, written = "", "nothing was written"
    if found:
        text = format_rules(found, [domain_line(known.name), f"learned from {source}, bilevel {__version__}"])
        write_atomically(output, text)
        written = f"written to {output}"
    passed = time.perf_counter() - began
    answer(
        {"rules": len(found), **values, "output": output if found else None, "seconds": round(passed, 3)},
        text,
        f"{count(found, 'rule')} from {source} in {passed:.2f} s; {written}",
        *(f"{name}: {listed(value)}" for name, value in values.items() if value),
    )
    return 0 if found else 1


def _from_demonstrations(folder: Path, algorithm: str, callback: Callback) -> Learned:
    """Learn from the traces of a data set, as it is labelled."""
    from bilevel.demonstrations.traces import Contents

    data = bilevel.Demonstrations.read(folder)
    found = Contents.of(data, callback)
    rules = bilevel.learn_rules(found.traces, data.domain, algorithm.replace("auto", "single-goal"))
    source = f"{count(data, 'demonstration')} of {data.task}, {count(found.traces, 'trace')}"
    values = {"traces": len(found.traces), "exogenous": found.exogenous, "ambiguous": found.several}
    return data.domain, rules, source, values


def _from_problems(
    domain_path: Path, files: Sequence[Path], algorithm: str, seconds: float, callback: Callback, *,
    planner: str, time_limit: float, **orders: Any,
) -> Learned:  # fmt: skip
    """Learn from all states of problems where these can be listed, else from plans for their goals."""
    from bilevel.planning.planners import plan_function, planner_named
    from bilevel.rules.traces import traces_from_problems

    domain, problems = read(domain_path, *files)
    source = count(problems, "problem")
    if algorithm != "single-goal":
        rules, places = bilevel.learn_from_problems(domain, problems, seconds, lambda *done: callback(Progress(*done)))
        if rules:
            return domain, rules, source, {"unsolved": [str(files[place]) for place in places]}
        if algorithm == "states":
            raise BadInput("--algorithm states: nature makes choices, or every problem has too many states to list")
    plan_for = plan_function(planner_named(planner), time_limit)
    found = traces_from_problems(domain, problems, plan_for, callback=callback, **orders)
    skipped = {str(files[place]): [*map(str, goals)] for place, goals in found.skipped.items()}
    source += f", {count(found.traces, 'trace')}; planner {planner}, {listed(orders)}"
    return domain, bilevel.learn_rules(found.traces, domain), source, {"skipped": skipped}
