"""The records of the scaling benchmark as tables of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from result_files import Row

from bilevel.tabletop.problems import UNTANGLED

Cell = list[Row]  # the rounds of one method, shape and size


def select(records: Sequence[Row], method: str, shape: str, size: int) -> Cell:
    wanted = (method, shape, size)
    return [record for record in records if (record["method"], record["shape"], record["size"]) == wanted]


def middle(cell: Cell, key: str) -> float:
    return float(median(record[key] for record in cell))


def timed_out(cell: Cell) -> bool:
    return any(record["timed_out"] for record in cell)


def shapes_of(records: Sequence[Row]) -> list[str]:
    found = {record["shape"] for record in records}
    return [shape for shape in UNTANGLED if shape in found]


def sizes_of(records: Sequence[Row], method: str, shape: str) -> list[int]:
    return sorted({record["size"] for record in records if (record["method"], record["shape"]) == (method, shape)})


def seconds_text(cell: Cell) -> str:
    if not cell:
        return "-"
    return f">{cell[0]['limit']:g}" if timed_out(cell) else f"{middle(cell, 'seconds'):.3f}"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells))


def print_tables(records: Sequence[Row]) -> None:
    print_table("Solving time, and cost per action without the set-up (medians)", *comparison(records))
    print_table("Cost per action, set-up included and left out", *growth(records))
    for method, title in (("lama", "LAMA, first plan"), ("command", "bilevel solve, with reading and writing")):
        rows = [
            (shape, f"{size:,}", seconds_text(cell), f"{middle(cell, 'actions'):,.0f}", memory(cell))
            for shape in shapes_of(records)
            for size in sizes_of(records, method, shape)
            for cell in [select(records, method, shape, size)]
        ]
        print_table(title, ("shape", "size", "seconds", "actions", "peak MiB"), rows)


def memory(cell: Cell) -> str:
    return f"{middle(cell, 'peak_mebibytes'):,.0f}" if cell else "-"


def comparison(records: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    measured = ("rules s", "µs/action", "MiB", "written s", "SQLite s", "µs/action", "MiB")
    header = ("shape", "size", "actions", *measured, "SQLite/rules s", "µs/action")
    rows: list[tuple[str, ...]] = []
    for shape in shapes_of(records):
        for size in sizes_of(records, "rules", shape):
            rules, sqlite = (select(records, method, shape, size) for method in ("rules", "sqlite"))
            written = seconds_text(select(records, "written", shape, size))
            columns = [(seconds_text(cell), per_action(cell), memory(cell)) for cell in (rules, sqlite)]
            actions = f"{middle(rules, 'actions'):,.0f}"
            rows.append((shape, f"{size:,}", actions, *columns[0], written, *columns[1], *advantage(rules, sqlite)))
    return header, rows


def per_action(cell: Cell) -> str:
    return f"{middle(cell, 'action_microseconds'):.1f}" if cell and cell[0]["actions"] else "-"


def advantage(rules: Cell, sqlite: Cell) -> tuple[str, str]:
    """How many times as long SQLite takes: in all (at least, where it ran out of time) and per action."""
    if not sqlite or timed_out(rules):
        return "-", "-"
    whole, action = (middle(sqlite, key) / middle(rules, key) for key in ("seconds", "action_microseconds"))
    return f"{'>' if timed_out(sqlite) else ''}{whole:.1f}", f"{action:.1f}"


def growth(records: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Per shape the cost per action at each size, and at 100,000 compared with 1,000."""
    sizes = sorted({record["size"] for record in records if record["method"] == "rules"})
    header = ("µs per action", *(f"{size:,}" for size in sizes), "100,000 : 1,000")
    rows: list[tuple[str, ...]] = []
    for shape in shapes_of([record for record in records if record["method"] == "rules"]):
        for key in ("total", "rollout"):
            costs = {size: cost(select(records, "rules", shape, size), key) for size in sizes}
            texts = [f"{costs[size]:.1f}" if costs[size] else "-" for size in sizes]
            small, large = costs.get(1_000), costs.get(100_000)
            ratio = f"{large / small:.2f}" if small and large else "-"
            rows.append((f"{shape} ({key})", *texts, ratio))
    return header, rows


def cost(cell: Cell, key: str) -> float | None:
    if not cell or timed_out(cell):
        return None
    if key == "rollout":
        return middle(cell, "action_microseconds")
    return float(median(1e6 * record["seconds"] / record["actions"] for record in cell))
