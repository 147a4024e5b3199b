"""Calls and what tools said to them, as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialoom.personas.apollo.calls import CallError, arguments_of, shown


def call_line(call: Mapping[str, Any]) -> str:
    """A call on a line: `book_flight(flight_id="FL381", cabin="economy")`."""
    try:
        given = ", ".join(f"{name}={shown(value)}" for name, value in arguments_of(call).items())
    except CallError:
        given = str(call["arguments"])
    return f"{call['name'] or '?'}({given})"


def output_line(output: Any) -> str:
    """What a tool said: an object on a line, rows on a line each."""
    if isinstance(output, list):
        return "\n".join([f"{len(output)} row{'' if len(output) == 1 else 's'}", *map(output_line, output)])
    return _pairs(output) if isinstance(output, dict) else str(output)


def _pairs(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value if isinstance(value, str) else shown(value)}" for name, value in row.items())
