"""Every mistake is one line with file, line and column, the offending token and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import parse_domain, parse_problem, read_domain

DOMAIN = """(define (domain d)
  (:types block place - item colour)
  (:constants red - colour)
  (:predicates (at ?x - block ?l - place) (clear ?i - item) (free))
  (:action pick
    :parameters (?x - block)
    :precondition (clear ?x)
    :effect (free)))
"""
PROBLEM = """(define (problem p)
  (:domain d)
  (:objects b1 b2 - block l1 - place)
  (:init (at b1 l1) (clear b2))
  (:goal (and (free))))
"""

# What is changed, into what, and where the mistake is and what the message says of it.
DOMAIN_MISTAKES = [
    ("(clear ?x)", "(cleer ?x)", "7:20", "did you mean 'clear'?"),
    ("(clear ?x)", "(clear ?x ?x)", "7:19", "takes 1 arguments, not 2"),
    ("(clear ?x)", "(clear ?y)", "7:26", "unbound variable '?y'"),
    ("(clear ?x)", "(clear red)", "7:26", "of type 'colour'"),
    ("(clear ?x)", "clear", "7:19", "in parentheses"),
    ("(clear ?x)", "(or (free))", "7:20", "only `bilevel plan`"),
    ("(clear ?x)", "(> (f) 3)", "7:20", "numeric conditions"),
    ("(clear ?x)", "(not (and (free) (clear ?x)))", "7:24", "in several ways"),
    ("(clear ?x)", "(not)", "7:19", "takes one condition"),
    (":effect (free)", ":effect (assign (f) 3)", "8:14", "numeric fluents"),
    (":effect (free)", ":effect (oneof)", "8:13", "at least one effect"),
    (":effect (free)", ":effect (new ?x)", "8:13", "of an 'exists' around it"),
    (":effect (free)", ":effect (exists (?x) (free))", "8:13", "already bound"),
    (":effect (free)", f":effect (and{'(oneof (free) ())' * 13})", "8:13", "more than 4096 outcomes"),
    (":effect (free)", ":effects (free)", "8:5", "but found ':effects'"),
    (":effect (free)", ":effect", "8:5", "followed by nothing"),
    ("(?x - block)", "(?x - blok)", "6:23", "did you mean 'block'?"),
    ("(?x - block)", "(?x ?x)", "6:21", "declared twice"),
    ("(?x - block)", "(x - block)", "6:18", "expected a variable"),
    ("(?x - block)", "(?x -)", "6:21", "needs a type after it"),
    ("item colour)", "item item - block)", "2:3", "above itself"),
    ("(free))\n", "(and))\n", "4:62", "a word of PDDL"),
    ("(:action pick", "(:action pick) (:action pick", "5:18", "declared twice"),
    ("(:action pick", "(:event pick) (:action pick", "5:26", "name of an event"),
    ("(:action pick", "(:durative-action pick", "5:4", "durative actions"),
    ("(:action pick", "(:acton pick", "5:4", "did you mean ':action'?"),
    ("(:types", "(:types) (:types", "2:12", "given twice"),
    ("(domain d)", "(problem d)", "1:9", "expected '(domain NAME)'"),
]
PROBLEM_MISTAKES = [
    ("b1 l1", "b1 l2", "4:17", "unknown object 'l2'"),
    ("(clear b2)", "clear", "4:21", "expected a fact"),
    ("(clear b2)", "(= b1 b2)", "4:21", "expected a numeric value"),
    ("(clear b2)", "(at 5 (not (clear b2)))", "4:21", "a timed initial literal"),
    ("(clear b2)", "(not (at b1 l1))", "4:3", "both true and false"),
    ("(free)", "(not (free))", "5:10", "only `bilevel plan`"),
    ("(:goal (and (free)))", "", "1:1", "no '(:goal ...)'"),
    ("(:domain d)", "(:domain e)", "2:12", "not for 'd'"),
    ("b1 b2 -", "b1 b2 red -", "3:3", "a constant of type 'colour'"),
    ("(free))))", "(free)))) (", "5:25", "after the end"),
    ("(free))))", "(free)))", "1:1", "never closed"),
]
WHOLE_TEXTS = [
    ("", "1:1", "the file is empty"),
    ("(" * 100_000 + ")" * 100_000, "1:101", "parentheses are nested more than 100 deep"),
    ("(define (domain \0))", "1:17", "expected the name of the domain but found '\\x00'"),
]


@pytest.mark.parametrize(("old", "new", "place", "words"), DOMAIN_MISTAKES + PROBLEM_MISTAKES)
def test_mistakes_are_named_with_their_place(old: str, new: str, place: str, words: str) -> None:
    domain, problem = DOMAIN, PROBLEM
    if (old, new, place, words) in DOMAIN_MISTAKES:
        domain = DOMAIN.replace(old, new, 1)
    else:
        problem = PROBLEM.replace(old, new, 1)
    assert (domain, problem) != (DOMAIN, PROBLEM)
    with pytest.raises(BadInput, match=rf"^file.pddl:{place}: .*{re.escape(words)}.*$"):
        parse_problem(problem, parse_domain(domain, "file.pddl"), "file.pddl")


@pytest.mark.parametrize(("text", "place", "words"), WHOLE_TEXTS)
def test_texts_that_are_no_domain(text: str, place: str, words: str) -> None:
    with pytest.raises(BadInput, match=f"^f:{place}: {re.escape(words)}"):
        parse_domain(text, "f")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pddl"
    garbage.write_bytes(b"(define\n (\xff\xfe")
    for path, message in [(tmp_path / "none.pddl", "no such file"), (garbage, "not UTF-8 text")]:
        with pytest.raises(BadInput, match=f"^{re.escape(str(path))}: .*{message}"):
            read_domain(path)
