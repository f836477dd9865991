"""A domain in plain English: of each action what it is about, when it can be done and what it does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from bilevel.rules.explanation.english import Speech
from bilevel.rules.explanation.wording import Phrase, listed, with_article, words
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, ROOT_TYPE, Action, Domain, Facts, Outcome, Schema

IN_ADL = "What it needs and does is written in ADL, which is not put into words."


def domain_in_english(domain: Domain) -> str:
    """Return a paragraph for the types, one for each action, and one for each event."""
    paragraphs = [_introduction(domain)]
    for schema in domain.schemas.values():
        speech = _speech(schema)
        order = speech.order()
        sentences = [IN_ADL] if domain.adl else _sentences(schema, speech, "be done")
        paragraphs.append([_title(schema), f"{_capital(order)}.", *sentences])
    for event in domain.events.values():
        sentences = _sentences(event, _speech(event), "happen")
        paragraphs.append([_title(event), "This happens by itself.", *sentences])
    return "\n\n".join("\n  ".join(lines) for lines in paragraphs) + "\n"


def _introduction(domain: Domain) -> list[str]:
    """Say how much there is in a domain, and what its types are."""
    parts = [_count(domain.predicates, "predicate"), _count(domain.schemas, "action")]
    parts += [_count(domain.events, "event")] if domain.events else []
    lines = [f"The domain {domain.name} has {listed(parts)}."]
    kinds: dict[str, list[str]] = {}
    for kind, parent in domain.types.items():
        kinds.setdefault(parent, []).append(" ".join(words(kind)))
    top = kinds.pop(ROOT_TYPE, [])
    if top:
        said = [f"{with_article(' '.join(words(parent)))} is {_either(names)}" for parent, names in kinds.items()]
        lines.append(f"{'; '.join([f'An object is {_either(top)}', *said])}.")
    for name, kind in domain.constants.items():
        lines.append(f"There is always {with_article(' '.join(words(kind)))} called {name}.")
    return lines


def _either(kinds: Sequence[str]) -> str:
    *others, last = map(with_article, kinds)
    return f"{', '.join(others)} or {last}" if others else last


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _count(things: Collection[str], noun: str) -> str:
    return f"{len(things) or 'no'} {noun}{'' if len(things) == 1 else 's'}"


def _title(schema: Schema) -> str:
    parameters = ", ".join(f"{parameter.name} - {parameter.type}" for parameter in schema.parameters)
    return f"{schema.name} ({parameters})" if parameters else schema.name


def _speech(schema: Schema) -> Speech:
    """Return a way to speak of the parameters; where things end up tells how an action is put into words."""
    effects = NO_FACTS.union(*(outcome.add for outcome in schema.outcomes))
    about = Action(schema.name, tuple(parameter.name for parameter in schema.parameters))
    positive = frozenset(atom for atom in schema.precondition if atom.predicate != EQUALITY)
    chosen = {variable.name: variable for outcome in schema.outcomes for variable in outcome.chosen}
    variables = (*schema.parameters, *chosen.values())
    return Speech(Rule(0, variables, positive, effects, about, schema.negative_precondition))


def _sentences(schema: Schema, speech: Speech, verb: str) -> Iterator[str]:
    """Give when an action can be done, or an event happen, and what comes of it."""
    speech.latest = []
    rule = speech.rule
    clauses = [speech.clause(atom, Phrase.present) for atom in rule.in_reading_order(rule.state_condition)]
    clauses += [speech.clause(atom, Phrase.absent) for atom in rule.in_reading_order(rule.absent)]
    equal = [atom for atom in schema.precondition if atom.predicate == EQUALITY]
    clauses += [speech.say("{0} is {1}", atom.terms) for atom in sorted(equal)]
    clauses += [speech.say("{0} is not {1}", a.terms) for a in sorted(rule.negative_condition - rule.absent)]
    yield f"It can {verb} when {listed(clauses)}." if clauses else f"It can {verb} at any time."
    if len(schema.outcomes) == 1:
        yield f"Then {_outcome(speech, schema.outcomes[0])}"
    else:
        yield f"Then nature decides between {len(schema.outcomes)} outcomes:"
        mentioned = [*speech.mentioned]
        for number, outcome in enumerate(schema.outcomes, 1):
            speech.mentioned, speech.latest = [*mentioned], []
            yield f"  {number}. {_capital(_outcome(speech, outcome))}"


def _outcome(speech: Speech, outcome: Outcome) -> str:
    """Say what becomes true, what is no longer, and what of it nature picks or makes."""
    for variable in outcome.chosen:
        speech.nouns[variable.name] = " ".join(words(variable.type))
    made = [variable.name for variable in outcome.chosen if variable.name in outcome.new]
    picked = [variable.name for variable in outcome.chosen if variable.name not in outcome.new]
    speech.mentioned += made
    speech.latest = []
    came = [f"a new {speech.nouns[name]} appears" for name in made] + _clauses(speech, outcome.add, Phrase.present)
    went = _clauses(speech, outcome.delete - outcome.add, Phrase.ended)
    said = "; ".join(listed(part) for part in (came, went) if part) or "nothing changes"
    natures = f" Nature picks {listed([speech.name(name) for name in picked])}." if picked else ""
    return f"{said}.{natures}"


def _clauses(speech: Speech, atoms: Facts, form: Callable[[Phrase], str]) -> list[str]:
    return [speech.clause(atom, form) for atom in speech.rule.in_reading_order(atoms)]
