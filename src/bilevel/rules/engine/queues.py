"""Sets that know their first members, for the written program.

A set in a view comes with a queue of two lists that together hold all members, and also values that have ceased to be
members, which are dropped when they come to the front. The *backlog* is sorted, the last first, and holds what was
there when the queue was made; the *fresh* list is a heap of what came later. Taking from the end of a sorted list is
much cheaper than taking from a heap of a million.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from heapq import heappop, heappush, merge
from typing import Any

Members = set[str] | tuple[str, ...]  # a tuple if there is just one
Queue = tuple[list[str], list[str]]  # backlog and fresh


def queue_of(members: Iterable[str]) -> Queue:
    """Return a queue with these members."""
    return sorted(members, reverse=True), []


def first(backlog: list[str], fresh: list[str], members: Members) -> str:
    """Return the smallest of the members, of which there must be some."""
    while backlog and backlog[-1] not in members:
        backlog.pop()
    while fresh and fresh[0] not in members:
        heappop(fresh)
    if fresh and not (backlog and backlog[-1] < fresh[0]):
        return fresh[0]
    return backlog[-1]


def first_of(view: dict[Any, Members], queues: dict[Any, Queue], key: Hashable) -> str:
    """Return the smallest value a view has for a key; the key's queue is made when it is first asked for."""
    members = view[key]
    if type(members) is tuple:
        return members[0]
    return first(*(queues.get(key) or queues.setdefault(key, queue_of(members))), members)


def push(queue: Queue, members: Members, value: str) -> None:
    """Add a member; when the queue holds mostly values that are no longer members it is made anew."""
    backlog, fresh = queue
    heappush(fresh, value)
    if len(fresh) > 2 * len(members) + 100:
        backlog[:], fresh[:] = queue_of(members)


def in_order(members: Members, queue: Queue) -> Iterator[str]:
    """Yield the members from the smallest on. The queue is not used up, so that loops over one view may be nested."""
    if not members:
        return
    first(*queue, members)  # afterwards both lists begin with a member and nobody takes from them meanwhile
    backlog, fresh = queue
    fresh.sort()  # a sorted list is a heap too
    last = ""
    for value in merge(reversed(backlog), fresh):
        if value != last and value in members:
            yield value
        last = value


def in_order_of(view: dict[Any, Members], queues: dict[Any, Queue], key: Hashable) -> Iterator[str]:
    """Yield the values a view has for a key, from the smallest on."""
    members = view.get(key, ())
    if type(members) is tuple:
        return iter(members)
    return in_order(members, queues.get(key) or queues.setdefault(key, queue_of(members)))
