"""PR2, or its predecessor PRP, as a planner: a program of the user's own, run in a private directory.

It gets names of our own making (a1, p1, o1, …), so that none can confuse it, and `oneof` over the problem's objects
where nature chooses among them. What it answers is checked before it is believed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bilevel.planning.contingent import ContingentPolicy, PolicyResult
from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import Deadline, NoModel, Status
from bilevel.planning.pr2_policies import Names, Unreadable, read_policy_files
from bilevel.planning.processes import last_words, private_directory, run_in_group
from bilevel.planning.strong_cyclic import Kind, check_policy
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Atom, BadInput, Domain, Outcome, Parameter, Problem, Schema
from bilevel.symbolic.pddl import write_domain, write_problem
from bilevel.symbolic.semantics import bind_outcome, is_solved, natures_choices

VARIABLE = "BILEVEL_PR2"
NO_COMMAND = f"the planner 'pr2' is a program of your own: name its command with --pr2-command or in {VARIABLE}"

CHECKED_STATES = 20_000

# How each of the two is asked for a list of conditions and actions in the file policy.out.
PR2_OPTIONS = ("--output-format", "2")
PRP_OPTIONS = ("--dump-policy", "2")

_SAYS_NO = re.compile(r"no (strong[ -]cyclic )?(solution|plan|policy)\b|unsolvable", re.IGNORECASE)


def pr2(domain: Domain, problem: Problem, time_limit: float, command: str | None = None) -> PolicyResult:
    """Plan with the command, or with the one that the environment variable BILEVEL_PR2 names."""
    words = command_words(os.environ.get(VARIABLE, "") if command is None else command)
    for name in makers_of_new_objects(domain, problem):
        raise NoModel(f"action '{name}' makes new objects, which PR2 cannot plan for")
    if is_solved(problem, problem.state):
        return PolicyResult(Status.SOLVED, ContingentPolicy(()))
    deadline = Deadline(time_limit)
    compiled = compile_problem(domain, problem)
    with private_directory() as directory:
        (directory / "domain.pddl").write_text(write_domain(compiled.domain), encoding="utf-8")
        (directory / "problem.pddl").write_text(write_problem(compiled.problem, compiled.domain), encoding="utf-8")
        log_file = directory / "bilevel.log"
        with log_file.open("wb") as log:
            code = run_in_group(words, directory, log.fileno(), max(deadline.seconds_left, 0.0))
        if code is None:
            return PolicyResult(Status.TIMED_OUT, message=f"no policy within {time_limit:g} s")
        try:
            policy = read_policy_files(directory, compiled.names)
        except Unreadable as error:
            return PolicyResult(Status.ERROR, message=f"what '{words[0]}' wrote cannot be read: {error}")
        if policy is None:
            return _without_policy(words[0], code, log_file)
    return _checked(domain, problem, policy, words[0], deadline)


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


def _checked(
    domain: Domain, problem: Problem, policy: ContingentPolicy, program: str, deadline: Deadline
) -> PolicyResult:
    verdict = check_policy(domain, problem, policy, CHECKED_STATES, deadline)
    if verdict.kind in (Kind.NOT_CLOSED, Kind.NOT_PROPER):
        return PolicyResult(Status.ERROR, message=f"the policy of '{program}' is {verdict}")
    return PolicyResult(Status.SOLVED, policy)


# --- From our problem to one in PR2's words


class Compiled(NamedTuple):
    domain: Domain
    problem: Problem
    names: Names


def compile_problem(domain: Domain, problem: Problem) -> Compiled:
    """The problem with new names, and with an outcome for each choice of nature."""
    objects = problem.all_objects(domain)
    renaming = _Renaming(domain, objects)
    nature_chooses = any(outcome.chosen for schema in domain.schemas.values() for outcome in schema.outcomes)
    constants = objects if nature_chooses else domain.constants  # schemas may then name any of them
    schemas = {}
    for schema in domain.schemas.values():
        closed = [
            bind_outcome(outcome, choice)
            for outcome in schema.outcomes
            for choice in natures_choices(outcome, domain, objects)
        ]
        renamed = renaming.schema(replace(schema, outcomes=tuple(dict.fromkeys(closed))))
        schemas[renamed.name] = renamed
    new_domain = Domain(
        "domain",
        {
            renaming.predicates[name]: replace(
                predicate, name=renaming.predicates[name], parameters=renaming.parameters(predicate.parameters)
            )
            for name, predicate in domain.predicates.items()
        },
        schemas,
        {renaming.types[kind]: renaming.types[parent] for kind, parent in domain.types.items()},
        {renaming.objects[name]: renaming.types[constants[name]] for name in constants},
    )
    rest = {renaming.objects[name]: renaming.types[kind] for name, kind in objects.items() if name not in constants}
    facts = map(renaming.atoms, (problem.state, problem.goal, problem.negative_goal))
    new_problem = Problem("problem", "domain", rest, *facts)
    return Compiled(new_domain, new_problem, renaming.names())


class _Renaming:
    """New names for everything that has one; `object` and `=` are PDDL's own."""

    def __init__(self, domain: Domain, objects: Iterable[str]) -> None:
        types = [kind for kind in domain.types if kind != ROOT_TYPE]
        self.types = {**_numbered("t", types), ROOT_TYPE: ROOT_TYPE}
        self.predicates = {**_numbered("p", domain.predicates), EQUALITY: EQUALITY}
        self.objects = _numbered("o", objects)
        self.schemas = _numbered("a", domain.schemas)

    def names(self) -> Names:
        """From the new names to the old ones."""
        return Names(*({new: old for old, new in m.items()} for m in (self.schemas, self.predicates, self.objects)))

    def parameters(self, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
        return tuple(Parameter(f"?v{i}", self.types[p.type]) for i, p in enumerate(parameters, start=1))

    def atoms(self, atoms: Iterable[Atom], variables: Sequence[Parameter] = ()) -> frozenset[Atom]:
        terms = {**self.objects, **{p.name: f"?v{i}" for i, p in enumerate(variables, start=1)}}
        return frozenset(Atom(self.predicates[a.predicate], tuple(terms[term] for term in a.terms)) for a in atoms)

    def schema(self, schema: Schema) -> Schema:
        own = schema.parameters
        return Schema(
            self.schemas[schema.name],
            self.parameters(own),
            self.atoms(schema.precondition, own),
            tuple(Outcome(self.atoms(o.add, own), self.atoms(o.delete, own)) for o in schema.outcomes),
            self.atoms(schema.negative_precondition, own),
        )


def _numbered(letter: str, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{letter}{number}" for number, name in enumerate(names, start=1)}
