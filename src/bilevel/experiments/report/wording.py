"""Numbers as people read them, and what solvers are called."""

from __future__ import annotations

from collections.abc import Sequence

NOTHING = "–"
SOLVERS = {"rules": "Rules (BISON)", "lama": "LAMA"}


def rate(value: float) -> str:
    """Return 0.97; only where all succeed it is 1.00, and only where none does 0.00."""
    text = f"{value:.2f}"
    if text == "1.00" and value < 1:
        return ">0.99"
    return "<0.01" if text == "0.00" and value > 0 else text


def interval(bounds: tuple[float, float]) -> str:
    """Return 0.57–0.68, or with three digits where two would be the same."""
    low, high = bounds
    digits = 3 if low < high and f"{low:.2f}" == f"{high:.2f}" else 2
    return f"{low:.{digits}f}–{high:.{digits}f}"


def per_cent(value: float) -> str:
    """Return 75% or 36.5%."""
    return f"{100 * value:.1f}".removesuffix(".0") + "%"


def seconds(value: float) -> str:
    """Return 40 ms, 3.2 s, 12 min or 3.4 h."""
    if value < 1:
        return f"{1000 * value:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def microseconds(value: float) -> str:
    """Return 110 µs or 12.3 ms."""
    return f"{value:,.0f} µs" if value < 10_000 else f"{value / 1000:,.1f} ms"


def mebibytes(value: float) -> str:
    """Return 400 MiB or 12.1 GiB."""
    return f"{value:,.0f} MiB" if value < 10_240 else f"{value / 1024:,.1f} GiB"


def ranges(numbers: Sequence[int]) -> str:
    """Return 1–10, or 1, 3 and 6: runs of three numbers and more are told by their ends."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return listed([text for run in runs for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))])


def listed(words: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def plural(number: int, noun: str) -> str:
    """Return `1 task` or `1,000 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def of_value(value: object) -> str:
    """Return a setting as people read it: yes or no, a number without needless zeros, or as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
