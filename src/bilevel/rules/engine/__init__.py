"""The rule engine: joins are planned from the rules and the data, and an executor maintains them."""

from bilevel.rules.engine.join_plan import LENGTH
from bilevel.rules.engine.rule_engine import COMPILED, RuleEngine, RuleTooCostly, effects_of

__all__ = ["COMPILED", "LENGTH", "RuleEngine", "RuleTooCostly", "effects_of"]
