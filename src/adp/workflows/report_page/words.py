"""How numbers and names are written in a report."""

from __future__ import annotations

from collections.abc import Sequence

from adp.stores.composition import Count, Recorded
from adp.stores.visible_text import visible

NONE = "(none)"
NAME = 120
MISSING = "–"  # noqa: RUF001  # what a cell shows where nothing is recorded


def name(text: str | None, limit: int = NAME) -> str:
    """A name from data as one line without control characters, cut at a limit."""
    if text is None:
        return NONE
    line = visible(" ".join(text[: 4 * limit].split())) or "(empty)"
    return line if len(line) <= limit else line[: limit - 1] + "…"


def cut_middle(text: str, limit: int) -> str:
    """A line cut in its middle, since names often differ at their ends."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def number(value: int | None) -> str:
    """``12,345``; a dash when there is none."""
    return MISSING if value is None else f"{value:,}"


def short_number(value: float) -> str:
    """``12k``, for axes and tiles."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if abs(value) >= size:
            amount = value / size
            digits = 1 if amount < 10 and round(amount, 1) != round(amount) else 0
            return f"{amount:.{digits}f}{unit}"
    return f"{value:g}"


def headline(value: int, what: str, remark: str = "") -> tuple[str, str, str]:
    """A number for a tile: short when it is large, and then whole in the remark."""
    if value < 100_000:
        return number(value), what, remark
    return short_number(value), what, remark or number(value)


def percent(part: float | None, full: float | None = 1.0) -> str:
    """``12.3 %``; a dash when there is no whole."""
    if part is None or not full:
        return MISSING
    return f"{100 * part / full:.1f} %"


def of_all(part: int, full: int) -> str:
    """``12 of 40``."""
    return f"{part:,} of {full:,}"


def percents(low: float | None, high: float | None) -> str:
    """An interval in percent: ``20.8 to 93.9 %``."""
    if low is None or high is None:
        return MISSING
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def average(value: Recorded) -> str:
    """The mean of what is recorded, in three digits."""
    return MISSING if value.mean is None else f"{value.mean:.3g}"


def total(value: Recorded) -> str:
    """The sum of what is recorded."""
    if value.total is None:
        return MISSING
    return f"{value.total:,.0f}" if value.total >= 1000 else f"{value.total:.4g}"


def names(counts: Sequence[Count], most: int = 3) -> str:
    """``openai_chat, atif``; the rest as a number."""
    listed = ", ".join(name(count.name, 60) for count in counts[:most])
    left = len(counts) - most
    return f"{listed} and {left} more" if left > 0 else listed or MISSING
