"""How many random plans does it take to learn a domain's operators, so that they do the same as the written ones?

    python benchmarks/domain_equivalence.py                                # all domains here: 4 minutes on one core
    python benchmarks/domain_equivalence.py --only logistics gacha --plans 10 50
    python benchmarks/domain_equivalence.py my-domain.pddl p1.pddl p2.pddl p3.pddl p4.pddl

The plans are states alone, without the names of actions: random walks from small problems. The operators that are
learned from them are compared with the written ones in problems that no plan is from, in every state that can be
reached there (up to a number of states): from each, both must lead to the same other states. An outcome that changes
nothing cannot be seen in states, nor can which steps are outcomes of one action; so this is not compared, but for each
written operator it is said whether a learned one is the very same but for its names.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from classical_problems import CLASSICAL, classical_domain, classical_problem
from operator_comparison import compare_domains
from result_files import Row, origin, read_rows, write_rows

from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.learned import PLANS
from bilevel.domain_learning.operators import learn_operators
from bilevel.domain_learning.state_space import Comparison, compare, random_walks
from bilevel.planning.grounding import makers_of_new_objects
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.pddl import read_domain, read_problem
from bilevel.tabletop.problems import GENERATORS, shipped_domain, training_problems

SHIPPED = {  # each with a shape of its problems, where small ones can be drawn
    "blocks": "tangled-blocks",
    "blocksworld": "towers",
    "colour": None,
    "gacha": None,
    "pick-place": "pick-place",
    "stack": "stack",
    "swap": "swap",
    "trays": "trays",
}
NUMBERS = (1, 2, 5, 10, 20, 50, 100, 200)
STEPS = 30  # of a plan
LEARNED_FROM, HELD_OUT = 40, 8  # problems that are drawn
NEW_OBJECTS = 2  # that nature may make in a problem
RESULTS = Path(__file__).parents[1] / "results" / "domain-equivalence.jsonl"


@dataclass(frozen=True)
class Case:
    """A written domain, the problems from which plans are, and those in which the learned one is compared with it."""

    name: str
    domain: Domain
    learned_from: Sequence[Problem]
    held_out: Sequence[Problem]

    @property
    def new_objects(self) -> int:
        return NEW_OBJECTS if makers_of_new_objects(self.domain, self.learned_from[0]) else 0


def find_case(name: str, rng: random.Random) -> Case:
    """Return the case of a domain that ships with the package or is beside this file."""
    if name in CLASSICAL:
        drawn = [classical_problem(name, rng) for _ in range(LEARNED_FROM + HELD_OUT)]
        return Case(name, classical_domain(name), drawn[:LEARNED_FROM], drawn[LEARNED_FROM:])
    problems, shape = training_problems(name), SHIPPED[name]
    if shape is None:
        return Case(name, shipped_domain(name), problems[:-1], problems[-1:])
    drawn = [GENERATORS[shape](rng.randint(2, 3), rng) for _ in range(LEARNED_FROM + HELD_OUT)]
    return Case(name, shipped_domain(name), [*problems, *drawn[:LEARNED_FROM]], drawn[LEARNED_FROM:])


def given_case(domain: Path, problems: Sequence[Path]) -> Case:
    """Return the case of a user's files: every other problem is held out, or, if there is but one, none is."""
    written = read_domain(domain)
    read = [read_problem(path, written) for path in problems]
    return Case(written.name, written, read[::2], read[1::2] or read)


def plans(case: Case, steps: int, rng: random.Random) -> Iterator[Episode]:
    """Yield random walks from one problem after the other, again and again."""
    walks = [random_walks(case.domain, each, steps, rng, case.new_objects) for each in case.learned_from]
    while True:
        for walk in walks:
            yield next(walk)


def measure(case: Case, numbers: Sequence[int], steps: int, max_states: int, seed: int) -> Iterator[Row]:
    """Learn from the first plans of each number, and compare."""
    walks = plans(case, steps, random.Random(f"{case.name} {seed}"))
    episodes: list[Episode] = []
    for number in numbers:
        episodes += [next(walks) for _ in range(number - len(episodes))]
        began = time.process_time()
        learned = learn_operators(episodes, replace(case.domain, schemas={}), PLANS).domain
        seconds = time.process_time() - began
        found = [compare(case.domain, learned, each, max_states, case.new_objects) for each in case.held_out]
        pairs, _ = compare_domains(case.domain, learned)
        yield {
            "domain": case.name,
            "plans": number,
            "steps": steps,
            "seed": seed,
            "states": sum(one.states for one in found),
            "all_states": all(one.complete for one in found),
            "missing": sum(one.missing for one in found),
            "extra": sum(one.extra for one in found),
            "equivalent": all(one.is_equivalent for one in found),
            "operators": len(case.domain.schemas),
            "learned": len(learned.schemas),
            "same": sum(pair.is_same for pair in pairs),
            "seconds": round(seconds, 2),
            "first_difference": describe(found),
        }


def describe(comparisons: Sequence[Comparison]) -> str:
    """Return the first step in which the domains differ, in words."""
    for difference in (one.first for one in comparisons if one.first):
        came = ", ".join(map(str, sorted(difference.after - difference.state)))
        went = ", ".join(map(str, sorted(difference.state - difference.after)))
        kind = "missing" if difference.is_missing else "extra"
        return f"{kind}: {difference.step.action} [+ {came or 'nothing'}; - {went or 'nothing'}]"
    return ""


def enough(rows: Sequence[Row]) -> int | None:
    """Return the least number of plans from which on the learned operators are equivalent."""
    wrong = max((row["plans"] for row in rows if not row["equivalent"]), default=0)
    return min((row["plans"] for row in rows if row["plans"] > wrong), default=None)


def report(rows: Sequence[Row]) -> str:
    """Return a line about a domain."""
    last, needed = rows[-1], enough(rows)
    verdict = f"equivalent from {needed} plans on" if needed else f"not equivalent; {last['first_difference']}"
    return (
        f"{last['domain']:20} {verdict}; {last['states']} states, {last['learned']} operators for {last['operators']}, "
        f"{last['same']} of them the same; {last['seconds']:.1f} s for {last['plans']} plans"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="a domain and its problems, instead of those here")
    parser.add_argument("--only", nargs="+", choices=[*CLASSICAL, *SHIPPED], help="domains here")
    parser.add_argument("--plans", nargs="+", type=int, default=NUMBERS)
    parser.add_argument("--steps", type=int, default=STEPS, help="of each plan")
    parser.add_argument("--states", type=int, default=1000, help="to compare in each problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.files and len(arguments.files) < 2:
        parser.error("a domain needs at least one problem")
    if arguments.files:
        cases = [given_case(arguments.files[0], arguments.files[1:])]
    else:
        names = arguments.only or sorted([*CLASSICAL, *SHIPPED])
        cases = [find_case(name, random.Random(f"{name} {arguments.seed}")) for name in names]
    for case in cases:
        rows = list(measure(case, sorted(arguments.plans), arguments.steps, arguments.states, arguments.seed))
        print(report(rows), flush=True)
        kept = [row for row in read_rows(arguments.output) if row["domain"] != case.name]
        about = origin()
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        write_rows(arguments.output, sorted([*kept, *({**row, **about} for row in rows)], key=lambda r: r["domain"]))


if __name__ == "__main__":
    main()
