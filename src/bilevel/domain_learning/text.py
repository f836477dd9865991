"""The text of a learned domain: PDDL with what was seen of each operator as comments.

An earlier text is edited, not replaced, as it is the user's: names, order, layout and comments stay. Comments that
begin with `;#` are ours, and are written anew each time. So learning again from the same data changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bilevel.domain_learning.former import in_former_words
from bilevel.domain_learning.learned import LearnedDomain
from bilevel.domain_learning.text_editing import Edit, Section, comments_in, edited, following_comment, sections_of
from bilevel.symbolic.domain import Domain, Schema
from bilevel.symbolic.expressions import normalised
from bilevel.symbolic.pddl import frame_sections, parse_domain, schema_parts, write_domain, write_schema

MARK = ";#"
SEEN = f"{MARK} seen "
NOT_SEEN = f"{MARK} not seen in the demonstrations"
HEADER = (
    f"{MARK} Learned from demonstrations, and yours to edit: learning again keeps your names and comments.\n"
    f"{MARK} Only comments that begin like these are written anew each time.\n"
)
NO_LONGER = "; no longer seen:"
FORMERLY = "; formerly"


def domain_text(learned: LearnedDomain, former: str | None = None, filename: str = "<former domain>") -> str:
    """Return the PDDL of a learned domain, with counts as comments; `former` is an earlier text of it.

    Operators that are the same but for names keep the user's names and comments. What is new comes at the end. An
    operator that was learned and is no longer seen becomes a comment; one that the user wrote stays. `BadInput` where
    the former text is no domain.
    """
    text = normalised(write_domain(learned.domain) if former is None else former)
    known = parse_domain(text, filename)
    learned = in_former_words(learned, known)
    marked = {each.name for each in sections_of(text)[1] if any(c.startswith(SEEN) for c in each.comments_before)}
    text = edited(text, [Edit(*span, "") for span in comments_in(text, MARK)])
    opening, sections = sections_of(text)
    gone = {section.name for section in sections if section.name in marked - _names(learned.domain)}
    final = _final(learned.domain, known, gone)
    edits = [*_frame_edits(opening, sections, final, known)]
    for section in sections:
        if section.name in gone:
            edits.append(Edit(section.start, section.end, section.as_comment(NO_LONGER)))
        elif section.name in _names(learned.domain):
            edits += _schema_edits(section, learned.domain, known)
            edits.append(section.line_before(_seen(learned, section.name)))
        elif section.name:
            edits.append(section.line_before(NOT_SEEN))
    edits += _additions(text, sections[-1], learned, {section.name for section in sections})
    return HEADER + edited(text, edits).rstrip("\n") + "\n" + "".join(_dropped(learned))


def _names(domain: Domain) -> set[str]:
    return {*domain.schemas, *domain.events}


def _seen(learned: LearnedDomain, name: str) -> str:
    """Say how often an operator was seen, with which outcomes, and which parameters no control depends on."""
    counts = learned.counts[name]
    outcomes = (f"outcome {number} {_times(count)}" for number, count in enumerate(counts, 1))
    text = f"{SEEN}{_times(sum(counts))}{': ' + ', '.join(outcomes) if len(counts) > 1 else ''}"
    untold = learned.untold.get(name, ())
    return f"{text}; the controls do not depend on {', '.join(untold)}" if untold else text


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _dropped(learned: LearnedDomain) -> Iterator[str]:
    """Give a line for each change that was not taken for an operator."""
    if learned.dropped:
        yield f"\n{MARK} Changes that were not taken for operators:\n"
    for each in learned.dropped:
        yield f"{MARK}   {_times(each.count)}, first in episode {each.episode} at step {each.step}: {each.text}\n"


def _final(domain: Domain, known: Domain, gone: set[str]) -> Domain:
    """Return the domain that the text will define: with all that the former declares and is not gone."""
    predicates = dict(known.predicates)
    for name, predicate in domain.predicates.items():
        types = [[p.type for p in each.parameters] for each in (predicates.get(name, predicate), predicate)]
        predicates[name] = predicates.get(name, predicate) if types[0] == types[1] else predicate
    return replace(
        domain,
        types={**known.types, **domain.types},
        constants={**known.constants, **domain.constants},
        predicates=predicates,
        schemas={**_kept(known.schemas, gone, domain), **domain.schemas},
        events={**_kept(known.events, gone, domain), **domain.events},
    )


def _kept(schemas: Mapping[str, Schema], gone: set[str], domain: Domain) -> dict[str, Schema]:
    return {name: schema for name, schema in schemas.items() if name not in gone | _names(domain)}


def _frame_edits(opening: int, sections: list[Section], final: Domain, known: Domain) -> Iterator[Edit]:
    """Give what is to be changed in requirements, types, constants and predicates, and those of them that are new."""
    written = {section.keyword: section for section in sections if not section.name}
    for keyword, text in frame_sections(final).items():
        section = written.get(keyword)
        if section is None:
            if keyword != ":requirements":
                yield Edit(opening, opening, f"\n  {text}")
        elif keyword == ":requirements":
            listed = section.words()
            missing = [word for word in text[1:-1].split()[1:] if word not in listed]
            if missing:
                yield Edit(section.end - 1, section.end - 1, "".join(f" {word}" for word in missing))
        elif getattr(final, keyword[1:]) != getattr(known, keyword[1:]):
            yield Edit(section.start, section.end, section.with_comments(text))


def _schema_edits(section: Section, domain: Domain, known: Domain) -> Iterator[Edit]:
    """Give what is to be changed in an action or an event, so that it is as it was learned."""
    keyword = ":action" if section.name in domain.schemas else ":event"
    if section.keyword != keyword:
        yield Edit(section.start + 1, section.start + 1 + len(section.keyword), keyword)
    now = {**domain.schemas, **domain.events}[section.name]
    before = {**known.schemas, **known.events}[section.name]
    same = {
        ":parameters": now.parameters == before.parameters,
        ":precondition": (now.precondition, now.negative_precondition)
        == (before.precondition, before.negative_precondition),
        ":effect": now.outcomes == before.outcomes,
    }
    for key, value in schema_parts(now).items():
        if not same[key]:
            yield from section.part_edits(key, value, "" if key == ":parameters" else f"{FORMERLY} {key}")


def _additions(text: str, last: Section, learned: LearnedDomain, present: set[str]) -> Iterator[Edit]:
    """Give what is to be put behind the last section: the operators that are new."""
    new = [
        f"\n\n  {_seen(learned, name)}\n  {write_schema(keyword, schema)}"
        for keyword, schemas in ((":action", learned.domain.schemas), (":event", learned.domain.events))
        for name, schema in schemas.items()
        if name not in present
    ]
    if new:
        start, end = following_comment(text, last.end)
        yield Edit(start, end, "")
        yield Edit(last.end, last.end, f"{text[start:end]}{''.join(new)}")
