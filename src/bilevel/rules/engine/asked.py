"""What the rules ask about: relations, what changes them, and whether a rule's action can always be done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bilevel.rules.closures import MARK
from bilevel.rules.engine.views import Relation
from bilevel.rules.matching import asked_types
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Domain, Schema
from bilevel.symbolic.semantics import substitute_all

# An instance of a rule: the rule's place among the engine's, and the values of its outputs (see `output_variables`).
Instance = tuple[int, tuple[str, ...]]


def in_order(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules by priority; ties keep the given order."""
    return tuple(sorted(rules, key=lambda rule: rule.priority))


def required_relations(rules: Sequence[Rule], domain: Domain) -> dict[Relation, int]:
    """Return the relations to keep with their arities: what rules ask about, and what unsafe rules' actions need."""
    arities: dict[Relation, int] = {}
    for rule in rules:
        asked = rule.state_condition | rule.absent
        if not is_safe(rule, domain):
            schema = domain.schemas[rule.action.name]
            asked |= {a for a in schema.precondition | schema.negative_precondition if a.predicate != EQUALITY}
        arities |= {Relation("state", atom.predicate): len(atom.terms) for atom in asked}
        arities |= {Relation("goal", atom.predicate): len(atom.terms) for atom in rule.goal_condition}
        arities |= {Relation("type", kind): 1 for kind in asked_types(rule, domain).values()}
    return arities


def is_safe(rule: Rule, domain: Domain) -> bool:
    """Return whether the rule's conditions imply its action's precondition, as those of learned rules do."""
    schema = domain.schemas[rule.action.name]
    binding = dict(zip((p.name for p in schema.parameters), rule.action.arguments, strict=True))
    required, forbidden = (substitute_all(a, binding) for a in (schema.precondition, schema.negative_precondition))
    facts, absent = (frozenset(a for a in atoms if a.predicate != EQUALITY) for atoms in (required, forbidden))
    return (
        facts <= rule.state_condition
        and absent <= rule.absent | rule.goal_condition  # an open goal is an absent fact
        and all(a.terms[0] == a.terms[1] for a in required - facts)
        and all((min(a.terms), max(a.terms)) in rule.inequalities for a in forbidden - absent)
    )


def changed_predicates(schemas: Iterable[Schema], relations: Iterable[Relation]) -> frozenset[str]:
    """Return the predicates whose facts the policy's own actions change, closures included."""
    changed = {atom.predicate for schema in schemas for o in schema.outcomes for atom in o.add | o.delete}
    return frozenset(changed).union(relation.name for relation in relations if relation.name.endswith(MARK))


def keeps_types(rules: Iterable[Rule], domain: Domain) -> bool:
    """Return whether all facts there will ever be have arguments of the declared types."""
    return domain.keeps_types and all(_fits_schema(rule, domain) for rule in rules)


def _fits_schema(rule: Rule, domain: Domain) -> bool:
    """Return whether the terms of the rule's action are of the types that its schema declares."""
    types = rule.types | dict(domain.constants)
    wanted = domain.schemas[rule.action.name].parameters
    return all(domain.is_subtype(types[t], p.type) for t, p in zip(rule.action.arguments, wanted, strict=True))
