"""Grouping of values by key. This module is below all layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Inner = TypeVar("Inner")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key in a list. Keys and values are in the order in which they first occur."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def nested(triples: Iterable[tuple[Key, Inner, Value]]) -> dict[Key, dict[Inner, Value]]:
    """Return a mapping of each key's values by an inner key. If both keys are repeated, the last value counts."""
    found: dict[Key, dict[Inner, Value]] = {}
    for key, inner, value in triples:
        found.setdefault(key, {})[inner] = value
    return found
