"""The command that shows rules."""

from __future__ import annotations

from dataclasses import dataclass

from bilevel.commands.arguments import RulesFile, print_json
from bilevel.rules.explanation.formats import FORMATS, Format
from bilevel.rules.rule_file import read_rules


@dataclass(frozen=True)
class ShowRules:
    """Print a rule file as text, as a Markdown table, as LaTeX like the paper's appendix, or in plain English."""

    file: RulesFile
    """Rule file."""
    format: Format = "text"
    """How to print it."""
    json: bool = False
    """Print one JSON object per rule instead."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        rules = read_rules(self.file)
        if not self.json:
            print(FORMATS[self.format](rules), end="")
            return 0
        for rule in rules:
            print_json(
                priority=rule.priority,
                variables=rule.types,
                conditions=list(rule.conditions()),
                action=str(rule.action),
            )
        return 0
