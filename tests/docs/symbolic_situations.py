"""Situations with domains and rules that pages tell of without the commands that lead there: what is printed then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from page_blocks import ROOT
from page_commands import run

from bilevel.rules.engine.written_executor import WrittenExecutor
from bilevel.rules.rule_file import parse_rules, require_open_world
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import read_domain, read_problem

TABLETOP = ROOT / "src" / "bilevel" / "tabletop"
BLOCKS = TABLETOP / "worlds" / "blocks.pddl"

# Files that cannot be read, each with its mistake where the page says.
REFUSED = {
    "when": "(define (domain d)\n  (:predicates (p) (q))\n  (:action a\n    :precondition (p)\n"
    "    :effect (when (p) (q))))",
    "derived": "(define (domain d)\n  (:predicates (p) (q))\n\n  (:derived (p) (q)))",
    "durative": "(define (domain d)\n  (:predicates (p) (q))\n\n  (:durative-action a :parameters ()))",
    "either": f"(define (domain d)\n  (:types a b)\n\n{'  (:predicates (p ?x -':<31}(either a b))))",
    "numeric": "(define (domain d)\n  (:predicates (p))\n  (:functions (fuel))\n  (:action a\n"
    f"{'    :precondition (and (p)':<42}(> (fuel) 0)) :effect (p)))",
}
PROBLEM = "(define (problem p) (:domain d) (:init) (:goal (q)))"
ACTION = (
    "(define (domain d)\n  (:predicates (clear ?x) (on ?x ?y))\n  (:action a\n    :parameters (?x)\n    :precondition "
)
MISTAKEN = [
    f"{ACTION}(claer ?x) :effect (clear ?x)))",
    f"{ACTION}(on ?x) :effect (clear ?x)))",
    "(define (domain d)\n  (:predicates (clear ?x))\n\n  (:action a :parameters (?x)",
]


def refused_files(folder: Path) -> list[str]:
    """PDDL that is not supported."""
    printed = []
    (folder / "p.pddl").write_text(PROBLEM)
    for name, text in REFUSED.items():
        (folder / f"{name}.pddl").write_text(text)
        printed += run(["validate", f"{name}.pddl", "p.pddl", "no.plan"], folder)[1]
    return [line.removeprefix("bilevel: ") for line in printed]


def mistaken_files(folder: Path) -> list[str]:
    """PDDL with mistakes."""
    printed = []
    (folder / "problem.pddl").write_text("(define (problem p) (:domain blocks) (:init) (:goal (clear a)))")
    for text in [*MISTAKEN, f"{ACTION}(clear ?x) :effect (clear ?x)))"]:
        (folder / "domain.pddl").write_text(text)
        printed += run(["validate", "domain.pddl", "problem.pddl", "no.plan"], folder)[1]
    return [line.removeprefix("bilevel: ") for line in printed]


RULES = [
    "# Rules for the domain blocks\nvariables: ?x - block, ?l - place\n\n1: holding(?x) & claer(?l) -> place(?x, ?l)",
    "# Rules for the domain blocks\nvariables: ?x - block, ?l - place\n\n1: holding(?x) & clear(?x, ?l) -> pick(?x)",
    "1: holding(table) -> pick(?x)\nvariables: ?x - block",
    f"variables: ?b - place\n{'1: clear(?b)':<19}-> pick(?b)",
]


def mistaken_rules(folder: Path) -> list[str]:
    """Rules with mistakes."""
    printed = []
    problem = TABLETOP / "domains" / "problems" / "blocks-1.pddl"
    for text in RULES:
        (folder / "my.rules").write_text(text)
        printed += run(["solve", str(BLOCKS), str(problem), "--rules", "my.rules"], folder)[1]
    return printed


def no_way_back(folder: Path) -> list[str]:
    """Rules are completed in a domain that has no action for taking a block from its place."""
    domain = BLOCKS.read_text(encoding="utf-8")
    for name in ("take", "put-aside"):
        domain = re.sub(rf"\(:action {name}\b.*?(?=\(:action|\Z)", "", domain, flags=re.DOTALL)
    (folder / "domain.pddl").write_text(domain if balanced(domain) else f"{domain})")
    problem = TABLETOP / "domains" / "problems" / "blocks-1.pddl"
    run(["rules", "learn", "domain.pddl", str(problem), "--output", "build/no.rules"], folder)
    words = ["rules", "complete", "build/no.rules", "domain.pddl", str(problem), "--objects", "block=2", "place=2"]
    return run([*words, "--output", "build/way.rules"], folder)[1]


def balanced(text: str) -> bool:
    return text.count("(") == text.count(")")


def coloured_plan(folder: Path) -> list[str]:
    """A plan for a problem of Colour, by rules."""
    domain, problem = TABLETOP / "worlds" / "colour.pddl", TABLETOP / "domains" / "problems" / "colour-1.pddl"
    run(["rules", "learn", str(domain), str(problem), "--output", "build/colour.rules"], folder)
    return run(["solve", str(domain), str(problem), "--rules", "build/colour.rules"], folder)[1]


def absent_fact(folder: Path) -> list[str]:
    """A rule that asks for an absent fact is given to a bilevel policy."""
    with pytest.raises(BadInput) as refused:
        require_open_world(parse_rules("1: clear(?b) & not holding(?b) & goal at(?b, ?p) -> pick(?b)"))
    return [str(refused.value)]


BLOCKS_RULES = """variables: ?b - block, ?p - place
1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)"""
PICK_PLACE_RULES = """variables: ?i - item, ?l - location, ?l2 - location, ?l3 - location
1: hold(?i) & robot-at(?l) & goal at(?i, ?l) -> place(?i, ?l)
2: robot-at(?l) & hold(?i) & goal at(?i, ?l2) -> move(?l, ?l2)
3: at(?i, ?l) & robot-at(?l) & free() & goal at(?i, ?l2) -> pick(?i, ?l)
4: robot-at(?l) & at(?i, ?l2) & free() & goal at(?i, ?l3) -> move(?l, ?l2)"""


def written_program(folder: Path, family: str = "blocks", rules: str = BLOCKS_RULES) -> list[str]:
    """The program that the engine writes for rules and a problem with 300 objects."""
    run(["problem", family, "--objects", "300", "--output", f"build/{family}.pddl"], folder)
    domain = read_domain(folder / f"build/{family}-domain.pddl")
    problem = read_problem(folder / f"build/{family}.pddl", domain)
    executor = WrittenExecutor(parse_rules(rules), domain, problem.state, problem.goal, problem.objects, commit=False)
    return executor.source.splitlines()


def written_views(folder: Path) -> list[str]:
    """The views of pick-place in such a program."""
    lines = written_program(folder, "pick-place", PICK_PLACE_RULES)
    return [line.strip().removeprefix("# ") for line in lines]


SITUATIONS: Mapping[str, Callable[[Path], list[str]]] = {
    "when.pddl:5:14": refused_files,
    "domain.pddl:5:20": mistaken_files,
    "bilevel: my.rules:4:18": mistaken_rules,
    "def engine(": written_program,
    "view3: ": written_views,
    "no way out: ": no_way_back,
    "(press a knob stand)": coloured_plan,
    "rule '1: clear(?b) & not holding(?b)": absent_fact,
}
