"""PDDL files: domains, problems and plans, read and written.

STRIPS with types, constants, negative preconditions, equality, `oneof` and the existential effect; costs are read and
ignored, everything else is refused by name (`adl` reads more, for planning alone). Every error is a `BadInput` of the
form `file:line:column: message`.
"""

from __future__ import annotations

from os import PathLike, fspath

from bilevel.symbolic.bulk_reading import no_garbage_collection, problem_in_bulk
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.expressions import naming_position, normalised, read_text
from bilevel.symbolic.pddl_domain import domain_from_text
from bilevel.symbolic.pddl_problem import problem_from_text
from bilevel.symbolic.pddl_writing import write_domain as write_domain
from bilevel.symbolic.pddl_writing import write_problem as write_problem
from bilevel.symbolic.plans import parse_plan as parse_plan
from bilevel.symbolic.plans import read_plan as read_plan
from bilevel.symbolic.plans import write_plan as write_plan


def read_domain(path: str | PathLike[str]) -> Domain:
    return parse_domain(read_text(path), fspath(path))


def read_problem(path: str | PathLike[str], domain: Domain) -> Problem:
    return parse_problem(read_text(path), domain, fspath(path))


def parse_domain(text: str, filename: str = "<domain>") -> Domain:
    text = normalised(text)
    with naming_position(text, filename):
        return domain_from_text(text)


def parse_problem(text: str, domain: Domain, filename: str = "<problem>") -> Problem:
    text = normalised(text)
    with naming_position(text, filename), no_garbage_collection():
        return problem_in_bulk(text, domain) or problem_from_text(text, domain)
