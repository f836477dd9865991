"""A policy for people to read: as text, as a Markdown table, as LaTeX, in plain English."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from bilevel.rules.explanation.english import sentence, summary
from bilevel.rules.explanation.latex import latex
from bilevel.rules.matching import Match
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import format_rules

Format = Literal["text", "markdown", "latex", "english"]


def explain(rules: Sequence[Rule], format: Format) -> str:
    return FORMATS[format](rules)


def explain_match(match: Match) -> str:
    """Return why this action: the rule's sentence with the objects it was matched to."""
    return sentence(match.rule, match.binding)


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


def english(rules: Sequence[Rule]) -> str:
    """Return the summary, then a sentence for each rule after its priority."""
    lines = [f"{rule.priority}. {sentence(rule)}" for rule in rules]
    return "\n".join([summary(rules), *([""] if lines else []), *lines]) + "\n"


FORMATS: Mapping[Format, Callable[[Sequence[Rule]], str]] = {
    "text": format_rules,
    "markdown": markdown,
    "latex": latex,
    "english": english,
}
