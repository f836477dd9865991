"""A policy for people to read: as text, as a Markdown table, as LaTeX, in plain English."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from bilevel.rules.explanation.english import english
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import format_rules
from bilevel.symbolic.domain import is_variable

Format = Literal["text", "markdown", "latex", "english"]


def markdown(rules: Sequence[Rule]) -> str:
    """Return a table with one row for each rule."""
    lines = [("Priority", "If", "and the goal is", "then do"), ("---:", "---", "---", "---")]
    for rule in rules:
        goals = [condition for condition in rule.conditions() if condition.startswith("goal ")]
        others = [condition for condition in rule.conditions() if condition not in goals]
        wanted = [goal.removeprefix("goal ") for goal in goals]
        lines.append((str(rule.priority), _code(others), _code(wanted), _code([str(rule.action)])))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _code(parts: Sequence[str]) -> str:
    return ", ".join(f"`{part}`" for part in parts) or "–"


# LaTeX, in the form in which the paper prints rules

_LONGEST_LINE = 100  # characters of a rule as text that fit on a line of a page


def latex(rules: Sequence[Rule]) -> str:
    """Return an `align*` (package amsmath) with one rule for each row, or two rows where some rule is long."""
    if not rules:
        return "% no rules\n"
    is_long = any(len(str(rule)) > _LONGEST_LINE for rule in rules)
    before, between = ("&", " \\\\\n    &\\qquad ") if is_long else ("", "\n    &")
    rows = [f"    {before}{_condition(rule)}{between}\\mapsto {_atom(*rule.action)}" for rule in rules]
    return "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}\n"


def _condition(rule: Rule) -> str:
    conditions = r" \wedge ".join(_conditions(rule)) or r"\top"
    variables = ", ".join(_term(variable.name) for variable in rule.variables)
    return rf"{rule.priority}: \exists {variables}. \; {conditions}" if variables else f"{rule.priority}: {conditions}"


def _conditions(rule: Rule) -> Iterator[str]:
    for kind, (predicate, terms) in rule.literals():
        if kind == "!=":
            yield r" \neq ".join(map(_term, terms))
        else:
            text = _atom(predicate, terms)
            yield rf"\neg {text}" if kind == "not" else rf"\underline{{{text}}}" if kind == "goal" else text


def _atom(name: str, terms: Iterable[str]) -> str:
    return rf"\mathit{{{_camel_case(name)}}}({', '.join(map(_term, terms))})"


def _term(term: str) -> str:
    """Return a variable as a letter with its number as an index, a constant upright."""
    if not is_variable(term):
        return rf"\text{{{_escape(term)}}}"
    found = re.fullmatch(r"\?(.*?)(\d*)", term)
    assert found is not None
    name = _camel_case(found[1])
    letter = name if len(name) == 1 else rf"\mathit{{{name}}}"
    return f"{letter}_{{{found[2]}}}" if found[2] else letter


def _camel_case(name: str) -> str:
    first, *rest = [part for part in re.split(r"[-_]", name) if part] or [name]
    return _escape(first + "".join(part[0].upper() + part[1:] for part in rest))


def _escape(text: str) -> str:
    escaped = re.sub(r"([&%$#_{}])", r"\\\1", text)
    return escaped.replace("~", r"\text{\textasciitilde}").replace("^", r"\text{\textasciicircum}")


FORMATS: Mapping[Format, Callable[[Sequence[Rule]], str]] = {
    "text": format_rules,
    "markdown": markdown,
    "latex": latex,
    "english": english,
}
