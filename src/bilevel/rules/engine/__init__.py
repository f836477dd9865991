"""The rule engine: joins are planned from the rules and the data, and a program is written that maintains them."""

from bilevel.rules.engine.rule_engine import Instance, RuleEngine, is_safe

__all__ = ["Instance", "RuleEngine", "is_safe"]
