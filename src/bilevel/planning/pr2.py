"""PR2, or its predecessor PRP, as a planner: a program of the user's own, run in a private directory.

It gets `oneof` over the problem's objects where nature chooses among them, and schemas called a1, a2, …. It writes a
list of conditions, over the variables of the translated problem, and actions; a second file forbids actions under
further conditions. What it answers is checked before it is believed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import ContingentPolicy, Deadline, Decision, NoModel, PolicyResult, Status
from bilevel.planning.processes import last_words, private_directory, run_in_group
from bilevel.planning.strong_cyclic import check_policy
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Domain, Problem
from bilevel.symbolic.expressions import quoted
from bilevel.symbolic.pddl import write_domain, write_problem
from bilevel.symbolic.semantics import Condition, bind_outcome, is_solved, natures_choices

VARIABLE = "BILEVEL_PR2"
NO_COMMAND = f"the planner 'pr2' is a program of your own: name its command with --pr2-command or in {VARIABLE}"

CHECKED_STATES = 20_000
MOST_DECISIONS = 100_000  # once what is forbidden is taken out of the conditions

# How each of the two is asked for a list of conditions and actions in the file policy.out.
PR2_OPTIONS = ("--output-format", "2")
PRP_OPTIONS = ("--dump-policy", "2")

TRANSLATIONS = ("output", "output.sas")  # PRP works on the first, which is made from the second; PR2 has only that
NONE_OF_THOSE = "<none of those>"
GOAL = "goal"  # stands for no action

_SAYS_NO = re.compile(r"no (strong[ -]cyclic )?(solution|plan|policy)\b|unsolvable", re.IGNORECASE)
_VARIABLE = re.compile(r"begin_variable\n(\S+)\n-?\d+\n\d+\n(.*?)end_variable", re.DOTALL)
_ENTRY = re.compile(
    r"If holds:(?P<facts>[^\n]*)\n(?:Execute|Forbid):(?P<action>[^/\n]*)(?:.*?\bd=(?P<distance>\d{1,9}))?"
)
_ATOM = re.compile(r"(?P<negated>Negated)?Atom (?P<predicate>[^\s()]+)\((?P<terms>[^()]*)\)")
_OUTCOME = re.compile(r"_detdup_\d+", re.IGNORECASE)


class Unreadable(Exception):
    """The planner's files are not as they should be."""


def pr2(domain: Domain, problem: Problem, time_limit: float, command: str | None = None) -> PolicyResult:
    """Plan with the command, or with the one that the environment variable BILEVEL_PR2 names."""
    words = command_words(os.environ.get(VARIABLE, "") if command is None else command)
    for name in makers_of_new_objects(domain, problem):
        raise NoModel(f"action '{name}' makes new objects, which PR2 cannot plan for")
    if is_solved(problem, problem.state):
        return PolicyResult(Status.SOLVED, ContingentPolicy(()))
    deadline = Deadline(time_limit)
    closed, without_constants, names = close_choices(domain, problem)
    with private_directory() as directory:
        (directory / "domain.pddl").write_text(write_domain(closed), encoding="utf-8")
        (directory / "problem.pddl").write_text(write_problem(without_constants, closed), encoding="utf-8")
        log_file = directory / "bilevel.log"
        with log_file.open("wb") as log:
            code = run_in_group(words, directory, log.fileno(), max(deadline.seconds_left, 0.0))
        if code is None:
            return PolicyResult(Status.TIMED_OUT, message=f"no policy within {time_limit:g} s")
        try:
            policy = _read_policy(directory, names)
        except Unreadable as error:
            return PolicyResult(Status.ERROR, message=f"what '{words[0]}' wrote cannot be read: {error}")
        if policy is None:
            return _without_policy(words[0], code, log_file)
    check = check_policy(domain, problem, policy, CHECKED_STATES, deadline)
    if check.is_refuted:
        return PolicyResult(Status.ERROR, message=f"the policy of '{words[0]}' is {check}")
    return PolicyResult(Status.SOLVED, policy)


def command_words(command: str) -> list[str]:
    """The program, which must exist, and what it is called with; `{domain}` and `{problem}` stand for the files.

    Where the command mentions neither, they follow it, and options that ask for the policy.
    """
    if not command.strip():
        raise BadInput(NO_COMMAND)
    try:
        program, *arguments = shlex.split(command)
    except ValueError as error:
        raise BadInput(f"the command of PR2 cannot be read: {error}: {command}") from None
    found = shutil.which(program)
    if found is None:
        raise BadInput(f"the command of PR2 cannot be run: there is no program '{program}'")
    words = [os.path.abspath(found), *arguments]
    if not any("{domain}" in word or "{problem}" in word for word in arguments):
        words += ["{domain}", "{problem}", *(PRP_OPTIONS if "prp" in Path(program).name.lower() else PR2_OPTIONS)]
    return [word.replace("{domain}", "domain.pddl").replace("{problem}", "problem.pddl") for word in words]


def _without_policy(program: str, code: int, log_file: Path) -> PolicyResult:
    if _SAYS_NO.search(log_file.read_text(encoding="utf-8", errors="replace")):
        return PolicyResult(Status.UNSOLVABLE, message="no strong-cyclic policy exists, says the planner")
    return PolicyResult(Status.ERROR, message=f"'{program}' wrote no policy (exit code {code}): {last_words(log_file)}")


def close_choices(domain: Domain, problem: Problem) -> tuple[Domain, Problem, dict[str, str]]:
    """The domain with an outcome for each choice of nature, the problem for it, and what its new names stand for."""
    objects = problem.all_objects(domain)
    names, schemas = {}, {}
    for number, schema in enumerate(domain.schemas.values(), start=1):
        choices = (
            (outcome, choice) for outcome in schema.outcomes for choice in natures_choices(outcome, domain, objects)
        )
        outcomes = tuple(dict.fromkeys(bind_outcome(outcome, choice) for outcome, choice in choices))
        name = f"a{number}"
        names[name] = schema.name
        schemas[name] = replace(schema, name=name, outcomes=outcomes)
    closed = replace(domain, schemas=schemas, constants=objects)  # which schemas may name now
    return closed, replace(problem, objects={}), names


# --- The planner's files

PartialState = dict[str, int]  # from variables to values
Variables = Mapping[str, list[Condition]]  # for each value, what it says of facts


class _Entry(NamedTuple):
    state: PartialState
    action: str
    distance: int | None


def _read_policy(directory: Path, names: Mapping[str, str]) -> ContingentPolicy | None:
    """The policy in a planner's directory; `None` where it wrote none."""
    policy = _text(directory / "policy.out")
    if policy is None:
        return None
    translation = next((found for found in map(_text, (directory / f for f in TRANSLATIONS)) if found), None)
    if translation is None:
        raise Unreadable(f"there is no file {TRANSLATIONS[-1]}")
    variables = {name: _conditions(values.splitlines()) for name, values in _VARIABLE.findall(translation)}
    forbidden: dict[str, list[PartialState]] = {}
    for entry in _entries(_text(directory / "policy.fsap") or "", variables):
        forbidden.setdefault(entry.action, []).append(entry.state)
    decisions: list[Decision] = []
    for place, entry in enumerate(_entries(policy, variables), start=1):
        states = [entry.state]
        for taboo in forbidden.get(entry.action, ()):
            states = [part for state in states for part in _outside(state, taboo, variables)]
            if len(decisions) + len(states) > MOST_DECISIONS:
                raise Unreadable(f"more than {MOST_DECISIONS} decisions")
        action, distance = _action(entry.action, names), place if entry.distance is None else entry.distance
        decisions += [Decision(_condition(state, variables), action, distance) for state in states]
    return ContingentPolicy(tuple(decisions))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Unreadable(f"{path.name} is not text") from None
    except OSError:
        return None


def _conditions(values: list[str]) -> list[Condition]:
    """What each value of a variable says of facts; the last may say that none of the others holds."""
    found = [_literal(value) for value in values if value.strip() != NONE_OF_THOSE]
    nothing = Condition(negative=NO_FACTS.union(*(condition.positive for condition in found)))
    return found + [nothing] * (len(values) - len(found))


def _literal(text: str) -> Condition:
    """The condition that `Atom p(a, b)` holds, or does not."""
    match = _ATOM.fullmatch(text.strip())
    if match is None:
        raise Unreadable(f"unknown fact {quoted(text.strip())}")
    atom = Atom(match["predicate"], tuple(term.strip() for term in match["terms"].split(",") if term.strip()))
    return Condition(negative=frozenset({atom})) if match["negated"] else Condition(frozenset({atom}))


def _entries(text: str, variables: Variables) -> Iterator[_Entry]:
    """The entries that are about actions, in order."""
    if text.strip() and not _ENTRY.search(text):
        raise Unreadable(f"expected 'If holds: …' but found {quoted(text.strip().splitlines()[0])}")
    for match in _ENTRY.finditer(text):
        if match["action"].strip() != GOAL:
            state = dict(_value(word, variables) for word in match["facts"].split())
            yield _Entry(state, match["action"].strip(), int(match["distance"]) if match["distance"] else None)


def _value(word: str, variables: Variables) -> tuple[str, int]:
    name, _, value = word.rpartition(":")
    if name not in variables or not re.fullmatch(r"\d{1,6}", value) or int(value) >= len(variables[name]):
        raise Unreadable(f"unknown value {quoted(word)} of a variable")
    return name, int(value)


def _action(text: str, names: Mapping[str, str]) -> Action:
    """The action of `a1 b c`, or of one outcome of it, `a1_DETDUP_1 b c`."""
    name, *arguments = _OUTCOME.sub("", text).lower().split() or [""]
    if name not in names:
        raise Unreadable(f"unknown action {quoted(text)}")
    return Action(names[name], tuple(arguments))


def _outside(state: PartialState, taboo: PartialState, variables: Variables) -> Iterator[PartialState]:
    """Partial states that do not overlap and make up what lies in `state` and not in `taboo`."""
    inside = dict(state)
    for name, value in taboo.items():
        if name in inside and inside[name] == value:
            continue
        if name in inside:
            yield inside
            return
        yield from ({**inside, name: other} for other in range(len(variables[name])) if other != value)
        inside[name] = value


def _condition(state: PartialState, variables: Variables) -> Condition:
    parts = [variables[name][value] for name, value in state.items()]
    return Condition(
        NO_FACTS.union(*(part.positive for part in parts)), NO_FACTS.union(*(part.negative for part in parts))
    )
