"""The command that makes a large problem."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated

import tyro

from bilevel.commands.arguments import Json, Output, print_json
from bilevel.files import write_atomically
from bilevel.memory import require_memory
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.expressions import read_text
from bilevel.symbolic.pddl import write_problem
from bilevel.tabletop.problems import GENERATORS, domain_text, generate_problem, shipped_domain

FAMILY_HELP = f"Which family of problems: {', '.join(GENERATORS)}."
Family = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help=FAMILY_HELP)]
LARGE = 100_000  # objects, from which on a problem needs memory that is worth asking for
BYTES = 1000  # that an object takes, with its facts and goals; measured with families of one to three facts an object


@dataclass(frozen=True)
class MakeProblem:
    """Write a random problem of one of the shipped domains, of any size.

    Example: bilevel problem blocks --objects 10000 --output blocks-10000.pddl
    """

    name: Family
    output: Output
    """Where to write the problem; its domain is written beside it."""
    objects: int = 10
    """How large: the number of blocks, items or colours."""
    seed: int = 0
    """Decides everything that is random."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        if self.objects > LARGE:
            require_memory(self.objects * BYTES >> 20)
        problem = generate_problem(self.name, self.objects, random.Random(self.seed))
        domain = shipped_domain(problem.domain_name)
        text = domain_text(domain.name)
        beside = self.output.parent / f"{domain.name}-domain.pddl"
        if beside == self.output or (beside.is_file() and read_text(beside) != text):
            raise BadInput(f"{beside}: the domain belongs here, but there is another file; choose another folder")
        write_atomically(beside, text)
        write_atomically(self.output, write_problem(problem, domain))
        if self.json:
            print_json(problem=str(self.output), domain=str(beside), objects=len(problem.objects))
        else:
            print(f"wrote {self.output} and {beside}")
        return 0
