"""Text forms of figures."""

from __future__ import annotations

from dialoom.text import format_number

UNKNOWN = "unknown"
ABSENT = "–"


def format_count(value: int | None) -> str:
    """Format a whole number."""
    return UNKNOWN if value is None else f"{value:,}"


def format_short(value: int | None) -> str:
    """Format a number in a short form: `2.3 M`."""
    if value is None:
        return UNKNOWN
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if value >= size:
            return f"{value / (1000 if unit == 'k' else size):,.{1 if unit != 'k' else 0}f} {unit}"
    return f"{value:,}"


def format_money(value: float | None) -> str:
    """Format US dollars."""
    if value is None:
        return UNKNOWN
    return f"${value:,.2f}" if value == 0 or value >= 1 else f"${value:,.4f}"


def format_score(value: float | None) -> str:
    """Format a mean score."""
    return ABSENT if value is None else format_number(value)


def format_duration(seconds: float) -> str:
    """Format a duration in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
