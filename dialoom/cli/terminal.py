"""Printing of lines without terminal control sequences (`console.py` is for tables and colours)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

from dialoom.text import format_safe_json, sanitize


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text without terminal control sequences.

    Args:
        text: The text, of one or several lines.
        err: Whether to print to standard error.
        nl: Whether a line end follows.
    """
    typer.echo(sanitize(str(text)), err=err, nl=nl)


def echo_lines(texts: Iterable[object], *, err: bool = False) -> None:
    """Print each text as `say` does, on lines of its own."""
    for text in texts:
        echo(text, err=err)


def echo_json(value: Any) -> None:
    """Print a value as a line of JSON, and flush it."""
    typer.echo(format_safe_json(value))
