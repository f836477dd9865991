"""The rule engine: joins are planned from the rules and the data, and an executor maintains them."""

from typing import TYPE_CHECKING

from bilevel.rules.engine.asked import Instance, is_safe
from bilevel.rules.engine.rule_engine import RuleEngine

if TYPE_CHECKING:
    from bilevel.rules.engine.rule_engine import Executor as Executor

__all__ = ["Instance", "RuleEngine", "is_safe"]
