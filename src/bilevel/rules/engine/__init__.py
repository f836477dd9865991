"""The rule engine: joins are planned from the rules and the data, and an executor maintains them."""

from bilevel.rules.engine.join_plan import is_safe
from bilevel.rules.engine.rule_engine import Instance, RuleEngine, RuleTooCostly

__all__ = ["Instance", "RuleEngine", "RuleTooCostly", "is_safe"]
