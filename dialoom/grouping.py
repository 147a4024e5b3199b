"""Grouping of values by key. This module is below all layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Inner = TypeVar("Inner")
Value = TypeVar("Value")


def group_pairs(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key in a list. Keys and values are in the order in which they first occur."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def nest_triples(triples: Iterable[tuple[Key, Inner, Value]]) -> dict[Key, dict[Inner, Value]]:
    """Return a mapping of each key's values by an inner key. If both keys are repeated, the last value counts."""
    groups: dict[Key, dict[Inner, Value]] = {}
    for key, inner, value in triples:
        groups.setdefault(key, {})[inner] = value
    return groups
