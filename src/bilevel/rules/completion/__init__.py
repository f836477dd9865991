"""Rules beyond the demonstrations: what is missing in them is found, planned for and learned."""

from bilevel.rules.completion.completing import Completion, complete_rules
from bilevel.rules.completion.small_problems import problems_from_rules

__all__ = ["Completion", "complete_rules", "problems_from_rules"]
