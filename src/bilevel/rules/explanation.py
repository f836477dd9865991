"""Rules and domains for people to read: in plain English, by one template.

`If you hold block b, place p is clear and it is a goal that b is at p, do place(b, p).` Nothing here knows any one
domain: a predicate's name is split into words, and the first pattern that fits says what they mean of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from bilevel.rules.derived import MARK, PATH
from bilevel.rules.rule import GoalOrder, Rule, orders_of
from bilevel.rules.rule_file import format_rules
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Facts, Outcome, Parameter, Schema

_WHERE = "at|on|in|inside|under|above|below|over|near|behind|beside"
_HOW = r"free|empty|clear|open|closed|full|ready|avail(?:able)?|on|off|[a-z]{2,}ed"
# For each number of arguments what a predicate's words mean; the first pattern that fits decides.
_CLAUSES: Mapping[int, Sequence[tuple[str, str]]] = {
    0: ((f"({_HOW})", r"the robot is \1"), (f"(.+) ({_HOW})", r"the \1 is \2"), (f"({_HOW}) (.+)", r"the \2 is \1")),
    1: (
        (r"(hold|carry|grasp)(?:s|ing)?", r"you \1 {0}"),
        (r"(at|in) (.+)", r"the \2 is \1 {0}"),
        (f"({_WHERE}) (.+)", r"{0} is \1 the \2"),
        (f"(.+) ({_WHERE})", r"the \1 is \2 {0}"),
        (r"(.+) free( .+)?", r"{0} is \1-free\2"),
        (f"(.+) ({_HOW})", r"the \1 of {0} is \2"),
        (f"({_HOW}) (.+)", r"the \2 of {0} is \1"),
        (r"(?:is )?(.+)", r"{0} is \1"),
    ),
    2: (
        (EQUALITY, "{0} is {1}"),
        (f"((?:{_WHERE})(?: .+)?)", r"{0} is \1 {1}"),
        (rf"(\w+(?:ed|ing)|.+ (?:{_WHERE}|to|with|from|by))", r"{0} is \1 {1}"),
        (r"(\w+[^ius]s)", r"{0} \1 {1}"),
        (r"(?:has )?(.+?)(?: of)?", r"the \1 of {0} is {1}"),
    ),
}


def _plain(term: str) -> str:
    return term.lstrip("?")


def clause(atom: Atom, name: Callable[[str], str] = _plain, adverb: str = "") -> str:
    """Return an atom as a clause about terms so named; `adverb`, as `not` or `no longer`, goes with its verb."""
    words = re.sub(r"[-_]+|(?<=[a-z0-9])(?=[A-Z])", " ", atom.predicate.removesuffix(MARK)).lower().strip()
    names = [name(term) for term in atom.terms]
    if atom.predicate.endswith(PATH):
        *others, here, following, there = names
        way = f"a shortest way{f' for {listed(others)}' if others else ''} from {here} to {there}"
        return f"{way} begins with {following}"
    found = ((re.fullmatch(pattern, words), text) for pattern, text in _CLAUSES.get(len(names), ()))
    template = next((match.expand(text) for match, text in found if match), None)
    if template is None:
        text = f'"{atom.predicate}" is true{f" of {listed(names)}" if names else ""}'
    else:
        text = re.sub(r"\{(\d)\}", lambda place: names[int(place[1])], template)
        text = re.sub(r"\b(\w+) \1 ", r"\1 ", text)  # a type that a predicate's name ends with
    steps = " in one or more steps" if atom.predicate.endswith(MARK) else ""
    if adverb:
        text = text.replace(" is ", f" is {adverb} ", 1) if " is " in text else f"it is {adverb} so that {text}"
    return text + steps


def listed(items: Sequence[str]) -> str:
    """Return the items as an enumeration: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def _introducing(variables: Iterable[Parameter]) -> Callable[[str], str]:
    """Return a function that names each variable after its type when it is first mentioned: `block b`, then `b`."""
    types = {variable.name: variable.type for variable in variables}
    return lambda term: f"{types.pop(term, '')} {_plain(term)}".lstrip()


def sentence(rule: Rule, binding: Mapping[str, str] | None = None) -> str:
    """Return the rule as one sentence; with a binding, as the reason for what it does to these objects."""
    name = _introducing(rule.variables) if binding is None else lambda term: binding.get(term, _plain(term))
    said = [
        f"it is a goal that {clause(atom, name)}" if kind == "goal" else clause(atom, name, "not" if kind else "")
        for kind, atom in rule.literals()
    ]
    order = f"do {Action(rule.action.name, tuple(map(name, rule.action.arguments)))}."
    return f"{'If' if binding is None else 'Because'} {listed(said)}, {order}" if said else f"Always {order}"


def order_sentence(order: GoalOrder) -> str:
    """Return as one sentence which goal comes before which."""
    name = _introducing(order.variables)
    condition = f"If {listed([clause(atom, name) for atom in sorted(order.condition)])}, a" if order.condition else "A"
    return f"{condition}chieve that {clause(order.earlier, name)} before {clause(order.later, name)}."


def summary(rules: Sequence[Rule]) -> str:
    """Return a policy in a few sentences: how many rules there are, and the usual actions for each kind of goal."""
    said = [f"{len(rules)} rule{'' if len(rules) == 1 else 's'}."]
    by_goal: dict[tuple[str, ...], dict[str, None]] = {}
    for rule in sorted(rules, key=lambda rule: rule.priority, reverse=True):
        goals = tuple(sorted(atom.predicate for atom in rule.goal_condition))
        by_goal.setdefault(goals, {})[rule.action.name] = None
    kinds = {goals: f"For {listed(goals)}" if goals else "For any goal" for goals in sorted(by_goal)}
    return " ".join([*said, *(f"{kinds[goals]}: {', then '.join(by_goal[goals])}." for goals in kinds)])


def english(rules: Sequence[Rule]) -> str:
    """Return the summary, then a sentence for each order of goals, and for each rule after its priority."""
    lines = [*map(order_sentence, orders_of(rules)), *(f"{rule.priority}. {sentence(rule)}" for rule in rules)]
    return "\n".join([summary(rules), *([""] if lines else []), *lines]) + "\n"


FORMATS: Mapping[str, Callable[[Sequence[Rule]], str]] = {"text": format_rules, "english": english}


# Domains


def domain_in_english(domain: Domain) -> str:
    """Return a paragraph for the types, one for each action, and one for each event."""
    counts = f"{len(domain.predicates)} predicates, {len(domain.schemas)} actions and {len(domain.events)} events"
    introduction = [f"The domain {domain.name} has {counts}."]
    introduction += [f"Each {kind} is a kind of {parent}." for kind, parent in domain.types.items()]
    introduction += [f"There is always {kind} {name}." for name, kind in domain.constants.items()]
    actions = [_paragraph(schema, "be done", bool(domain.adl)) for schema in domain.schemas.values()]
    events = [_paragraph(event, "happen by itself") for event in domain.events.values()]
    return "\n\n".join("\n  ".join(lines) for lines in [introduction, *actions, *events]) + "\n"


def _paragraph(schema: Schema, verb: str, is_adl: bool = False) -> list[str]:
    """Say when an action can be done, or an event happen, and what comes of it."""
    heading = f"{schema.name}({', '.join(f'{parameter.name} - {parameter.type}' for parameter in schema.parameters)})"
    if is_adl:
        return [heading, "What it needs and does is written in ADL."]
    needed = _clauses(schema.precondition) + _clauses(schema.negative_precondition, "not")
    lines = [heading, f"It can {verb} {f'when {listed(needed)}' if needed else 'at any time'}."]
    if len(schema.outcomes) == 1:
        return [*lines, f"Then {_effect(schema.outcomes[0])}."]
    lines.append(f"Then nature decides between {len(schema.outcomes)} outcomes:")
    return lines + [f"  {number}. {_effect(outcome)}" for number, outcome in enumerate(schema.outcomes, 1)]


def _effect(outcome: Outcome) -> str:
    """Say what becomes true, what is no longer, and what of it nature picks or makes."""
    natures = [f"{'a new' if v.name in outcome.new else 'some'} {v.type} {_plain(v.name)}" for v in outcome.chosen]
    changes = _clauses(outcome.add) + _clauses(outcome.delete - outcome.add, "no longer")
    return f"{f'for {listed(natures)} ' if natures else ''}{listed(changes) or 'nothing changes'}"


def _clauses(atoms: Facts, adverb: str = "") -> list[str]:
    return [clause(atom, adverb=adverb) for atom in sorted(atoms)]
