"""Lines that the command prints: a terminal obeys nothing of them (`console.py` is for tables and colours)."""

from __future__ import annotations

from typing import Any

import typer

from dialoom.shown import harmless, json_line


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text as it is, but for what a terminal would obey.

    Args:
        text: One line or several.
        err: To standard error.
        nl: Whether a line end follows.
    """
    typer.echo(harmless(str(text)), err=err, nl=nl)


def say_json(value: Any) -> None:
    """Print a value as a line of JSON, at once."""
    typer.echo(json_line(value))
