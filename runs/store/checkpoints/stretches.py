"""Stretches of long lists, cut where their own content says so, so that equal ones are cut alike wherever they stand.

A list that builds on a stored one needs none: only what is new of it is written. But lists that differ in their first
element share no beginning, and may have hundreds of later ones in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .values import Large, Value, digest

LONG = 64
"""At most so many elements stay as they are."""

_SHORTEST, _LONGEST = 4, 64
_ONE_IN_16 = 16
"""Of the 256 first bytes of a hash."""


class Stretch(NamedTuple):
    """Elements that follow on each other somewhere in a list.

    Attributes:
        hash: As of a list that consists of them.
    """

    hash: bytes
    elements: Sequence[Value]


def cut(elements: Sequence[Value]) -> Sequence[Value | Stretch]:
    """The elements, most of them in stretches if there are many."""
    if len(elements) <= LONG:
        return elements
    found: list[Value | Stretch] = []
    start, hash_ = 0, b""
    for end, element in enumerate(elements, start=1):
        own = own_hash(element)
        hash_ = digest(hash_ + own) if hash_ else own
        length = end - start
        if length >= _SHORTEST and (own[0] < _ONE_IN_16 or length == _LONGEST):
            found.append(Stretch(hash_, elements[start:end]))
            start, hash_ = end, b""
    return [*found, *elements[start:]]


def own_hash(element: Value) -> bytes:
    """The hash of an element."""
    return element.hash if isinstance(element, Large) else digest(element)
