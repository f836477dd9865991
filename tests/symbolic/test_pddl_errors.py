"""Every mistake is one line with file, line and column, the offending token and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import parse_domain, parse_problem, read_domain, read_problem

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

DOMAIN_MISTAKES = [
    ("(clear ?x)", "(cleer ?x)", "7:20: undeclared predicate 'cleer'; did you mean 'clear'?"),
    ("(clear ?x)", "(clear ?x ?x)", "7:19: predicate 'clear' takes 1 arguments, not 2"),
    ("(clear ?x)", "(clear ?y)", "7:26: unbound variable '?y'"),
    ("(clear ?x)", "(clear rad)", "7:26: unknown object 'rad'; did you mean 'red'?"),
    ("(clear ?x)", "(clear red)", "7:26: 'red' is of type 'colour' but argument 1 of 'clear' is of type 'item'"),
    ("(clear ?x)", "(at ?x ?x)", "7:26: '?x' is of type 'block' but argument 2 of 'at' is of type 'place'"),
    ("(clear ?x)", "(clear (f))", "7:26: expected an object or a variable but found '(f ...)'"),
    ("(clear ?x)", "clear", "7:19: expected what follows ':precondition' in parentheses but found 'clear'"),
    ("(clear ?x)", "(or (free))", "7:20: 'or' is not supported: disjunctions cannot be read"),
    ("(clear ?x)", "(imply (free) (free))", "7:20: 'imply' is not supported"),
    ("(clear ?x)", "(exists (?y) (free))", "7:20: 'exists' is not supported"),
    ("(clear ?x)", "(forall (?y) (free))", "7:20: 'forall' is not supported"),
    ("(clear ?x)", "(> (f) 3)", "7:20: '>' is not supported: numeric conditions cannot be read"),
    ("(clear ?x)", "(= (f) 3)", "7:19: '=' is not supported: numeric conditions cannot be read"),
    ("(clear ?x)", "(= ?x)", "7:19: '=' takes 2 arguments, not 1"),
    ("(clear ?x)", "(not (and (free)))", "7:24: 'and' is not supported"),
    ("(clear ?x)", "(not)", "7:19: 'not' takes one condition or effect, not 0"),
    ("(clear ?x)", "(preference p (free))", "7:20: 'preference' is not supported"),
    (":effect (free)", ":effect (when (free) (free))", "8:14: 'when' is not supported: conditional effects"),
    (":effect (free)", ":effect (forall (?y) (free))", "8:14: 'forall' is not supported"),
    (":effect (free)", ":effect (assign (f) 3)", "8:14: 'assign' is not supported: numeric fluents"),
    (":effect (free)", ":effect (probabilistic 1 (free))", "8:14: 'probabilistic' is not supported"),
    (":effect (free)", ":effect (= ?x ?x)", "8:13: '=' cannot be an effect"),
    (":effect (free)", ":effect (increase (fuel) 1)", "8:24: undeclared function 'fuel'"),
    (":effect (free)", ":effect (oneof)", "8:13: 'oneof' needs at least one effect"),
    (":effect (free)", ":effect (new ?x)", "8:13: 'new' takes one variable of an 'exists' around it"),
    (":effect (free)", ":effect (exists (?x) (free))", "8:22: variable '?x' is already bound"),
    (":effect (free)", ":effect (exists (?y) (not (new ?y)))", "8:31: 'new' marks an object"),
    (
        ":effect (free)",
        ":effect (and (exists (?y) (free)) (oneof (free) (exists (?y) (free))))",
        "8:39: '?y' is chosen twice in one outcome",
    ),
    (":effect (free)", f":effect (and{'(oneof (free) ())' * 13})", "8:13: this 'and' has more than 4096 outcomes"),
    (":effect (free)", ":effects (free)", "expected one of :parameters, :precondition, :effect but found ':effects'"),
    (":effect (free)", ":effect (free) :effect (free)", "8:20: ':effect' is given twice"),
    (":effect (free)", ":effect", "8:5: nothing follows ':effect'"),
    ("(?x - block)", "(?x - blok)", "6:23: unknown type 'blok'; did you mean 'block'?"),
    ("(?x - block)", "(?x - (either block place))", "6:23: 'either' is not supported"),
    ("(?x - block)", "(?x ?x)", "6:21: '?x' is declared twice"),
    ("(?x - block)", "(x - block)", "6:18: expected a variable such as ?x but found 'x'"),
    ("(?x - block)", "(?x -)", "6:21: '-' needs a type after it"),
    ("(?x - block)", "(- block)", "6:18: '-' needs names before it"),
    ("item colour)", "item colour block)", "2:37: type 'block' is declared twice"),
    ("item colour)", "item item - block)", "type 'block' is above itself"),
    ("item colour)", "item colour object - item)", "'object' is above all types and cannot have a parent"),
    ("red - colour", "red red - colour", "3:19: 'red' is declared twice"),
    ("(free))\n", "(free) (free ?x))\n", "4:69: predicate 'free' is declared twice"),
    ("(free))\n", "(and))\n", "'and' is a word of PDDL and cannot name a predicate"),
    ("(:action pick", "(:action pick) (:action pick", "5:27: action 'pick' is declared twice"),
    ("(:action pick", "(:event pick) (:action pick", "5:26: 'pick' is the name of an event, too"),
    ("(:action pick", "(:event) (:action pick", "5:3: expected the name of an event after ':event'"),
    ("(:action pick", "(:event e) (:event e) (:action pick", "5:22: event 'e' is declared twice"),
    ("(:action pick", "(:event e :effect (fre)) (:action pick", "5:22: undeclared predicate 'fre'"),
    ("(:action pick", "(:event e :effect () :effect ()) (:action pick", "':effect' is given twice in one event"),
    ("(:action pick", "(:durative-action pick", "5:4: ':durative-action' is not supported: durative actions"),
    ("(:action pick", "(:derived (free) (free)) (:action pick", "5:4: ':derived' is not supported"),
    ("(:action pick", "(:acton pick", "5:4: unknown section ':acton'; did you mean ':action'?"),
    ("(:types", "(:types) (:types", "2:12: section ':types' is given twice"),
    ("(domain d)", "(problem d)", "1:9: this file defines a problem; expected a domain"),
    ("(define", "(defin", "1:1: expected '(define ...)' but found '(defin ...)'"),
]
PROBLEM_MISTAKES = [
    ("b1 l1", "b1 l2", "4:17: unknown object 'l2'"),
    ("b1 l1", "b1 b2", "4:17: 'b2' is of type 'block' but argument 2 of 'at' is of type 'place'"),
    ("b1 l1", "b1", "4:10: predicate 'at' takes 2 arguments, not 1"),
    ("b1 l1", "b1 ?x", "4:17: unbound variable '?x'"),
    ("(clear b2)", "(claer b2)", "4:22: undeclared predicate 'claer'; did you mean 'clear'?"),
    ("(clear b2)", "clear", "4:21: expected a fact in parentheses but found 'clear'"),
    ("(clear b2)", "(= b1 b2)", "4:21: expected a numeric value such as"),
    ("(clear b2)", "(=)", "4:21: expected a numeric value such as"),
    ("(clear b2)", "(at b1 (= (f) 1) l1)", "4:21: predicate 'at' takes 2 arguments, not 3"),
    ("(clear b2)", "(oneof (clear b2))", "4:22: 'oneof' is not supported"),
    ("(clear b2)", "(not (at b1 l1))", "4:21: 'at(b1, l1)' is both true and false at first"),
    ("(free)", "(not (free))", "5:15: 'not' is not supported: negative goals cannot be read"),
    ("(free)", "(or (free))", "5:16: 'or' is not supported"),
    ("(free)", "(= b1 b1)", "5:15: '=' is not supported: equality in goals"),
    ("(free)", "(exists (?x) (clear ?x))", "5:16: 'exists' is not supported"),
    ("(:goal (and (free)))", "", "1:1: the problem has no '(:goal ...)'"),
    ("(:goal (and (free)))", "(:goal)", "5:3: ':goal' takes one condition, not 0"),
    ("(:goal", "(:constraints (and)) (:goal", "5:4: ':constraints' is not supported: constraints"),
    ("(:domain d)", "", "1:1: the problem has no '(:domain ...)'"),
    ("(:domain d)", "(:domain e)", "2:12: the problem is for domain 'e', not for 'd'"),
    ("b1 b2 -", "b1 b1 -", "3:16: 'b1' is declared twice"),
    ("b1 b2 -", "b1 b2 red -", "3:19: object 'red' is a constant of type 'colour' in the domain"),
    ("b1 b2 -", "b1 -b2 -", "3:16: expected the name of an object but found '-b2'"),
    ("- place", "- plac", "3:32: unknown type 'plac'; did you mean 'place'?"),
    ("(:init", "(:initial", "4:4: unknown section ':initial'; did you mean ':init'?"),
    ("(:objects ", "(:objects1 ", "3:4: unknown section ':objects1'; did you mean ':objects'?"),
    ("(free))))", "(free)))) (", "5:25: unexpected '(' after the end of the definition"),
    ("(free))))", "(free)))", "1:1: this '(' is never closed"),
    ("(clear b2))", "(clear b2", "4:3: this '(' is never closed"),
]


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(("old", "new", "message"), DOMAIN_MISTAKES)
def test_mistakes_in_a_domain(old: str, new: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_domain(replaced(DOMAIN, old, new), "file.pddl")
    assert str(error.value).startswith("file.pddl:")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("old", "new", "message"), PROBLEM_MISTAKES)
def test_mistakes_in_a_problem(old: str, new: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_problem(replaced(PROBLEM, old, new), parse_domain(DOMAIN), "file.pddl")
    assert f"file.pddl:{message}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f:1:1: the file is empty"),
        ("; only a comment\n", "f:1:1: the file is empty"),
        ("(" * 100_000 + ")" * 100_000, "f:1:101: parentheses are nested more than 100 deep"),
        (")", "f:1:1: expected '(' but found ')'"),
        ("hello", "f:1:1: expected '(' but found 'hello'"),
        ("(define (domain d)\n (:predicates (p", "f:2:15: this '(' is never closed"),
        ("(define)", "f:1:1: expected '(domain NAME)' after 'define'"),
        ("(define (domain))", "f:1:9: expected '(domain NAME)' but found '(domain ...)'"),
        ("(define (domain \0))", "f:1:17: expected the name of the domain but found '\\x00'"),
    ],
)
def test_texts_that_are_no_domain(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_domain(text, "f")
    assert str(error.value).startswith(message)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pddl"
    garbage.write_bytes(b"(define\n (\xff\xfe")
    for path, message in [
        (tmp_path / "none.pddl", "there is no such file"),
        (tmp_path, "this is a directory, not a file"),
        (garbage, "byte 0xff is not UTF-8 text"),
    ]:
        with pytest.raises(BadInput, match=message) as error:
            read_domain(path)
        assert str(error.value).startswith(str(path))
    with pytest.raises(BadInput, match=r"garbage\.pddl:2:3: byte"):
        read_problem(garbage, parse_domain(DOMAIN))
