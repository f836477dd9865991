"""Relations as sets of rows, with tables of the rows that fit an atom: what a search looks things up in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bilevel.symbolic.domain import is_variable

Row = tuple[str, ...]


class IndexedRelation:
    """A set of rows, and tables of those that fit an atom, which are kept until the rows change."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = set(rows)
        self._tables: dict[tuple[str | int, ...], Table] = {}

    def set(self, row: Row, present: bool) -> bool:
        """Make a row one of the relation or none; return whether that is new."""
        if (row in self.rows) == present:
            return False
        (self.rows.add if present else self.rows.discard)(row)
        self._tables.clear()
        return True

    def table(self, terms: Sequence[str]) -> Table:
        """Return the rows that fit the terms, with a column for each of their variables."""
        names = list(dict.fromkeys(filter(is_variable, terms)))
        pattern = tuple(names.index(term) if is_variable(term) else term for term in terms)
        if pattern not in self._tables:
            self._tables[pattern] = Table(self.rows, pattern, len(names))
        return self._tables[pattern]


class Table:
    """The values of an atom's variables in the rows that fit it: `rows`, and by column those with each value."""

    def __init__(self, rows: Iterable[Row], pattern: Sequence[str | int], width: int) -> None:
        first = [pattern.index(column) for column in range(width)]
        fixed = [(i, term) for i, term in enumerate(pattern) if isinstance(term, str)]
        same = [(i, first[term]) for i, term in enumerate(pattern) if isinstance(term, int) and first[term] != i]
        self.rows = {
            tuple(row[i] for i in first)
            for row in rows
            if all(row[i] == term for i, term in fixed) and all(row[i] == row[j] for i, j in same)
        }
        self.columns: list[dict[str, set[Row]]] = [{} for _ in range(width)]
        for row in self.rows:
            for value, column in zip(row, self.columns, strict=True):
                column.setdefault(value, set()).add(row)
        self.partners: list[dict[str, set[str]]] = []  # in a table of two columns, what each value stands beside
        if width == 2:
            self.partners = [
                {value: {row[1 - i] for row in found} for value, found in column.items()}
                for i, column in enumerate(self.columns)
            ]
