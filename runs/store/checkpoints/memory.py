"""What threads held at their last put, so that only what has changed is hashed and written.

A list is stored as a chain. Its hash is computed over the hashes of its elements from the front,
`h(i) = H(h(i-1), H(element i))`, so the hash of every beginning of the list comes with it. A stored list names a
shorter stored list, its prefix, and what follows on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple, TypeAlias

from .values import digest

INLINE = 48
"""Values of at most this many packed bytes stand where they are used: a reference would take as much."""

Thread: TypeAlias = tuple[str, str]
"""A thread's name and a namespace in it (empty for the graph itself, another one for each subgraph)."""


class Large(NamedTuple):
    """A packed value that gets a row of its own."""

    hash: bytes
    body: bytes


Value: TypeAlias = bytes | Large
"""A packed value: a short one as it is."""


class Chain(NamedTuple):
    """A list to be stored.

    Attributes:
        hash: The list's hash.
        hashes: The hash of each beginning of it that is longer than the prefix; the last is the list's own.
        elements: What follows on the prefix.
        prefix: The hash of a shorter list that is known to be stored.
    """

    hash: bytes
    hashes: list[bytes]
    elements: list[Value]
    prefix: bytes | None


def sized(body: bytes) -> Value:
    """A packed value, hashed if it is not short."""
    return body if len(body) <= INLINE else Large(digest(body), body)


class _List:
    """A list as it was at the last put: its elements, its beginnings' hashes, and the lengths that were stored."""

    __slots__ = ("_bodies", "_hashes", "_stored")

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._hashes: list[bytes] = []
        self._stored: list[int] = []

    def follow(self, bodies: list[bytes]) -> Chain:
        """Become the list of these elements."""
        common = _common(self._bodies, bodies)
        stored = [length for length in self._stored if length <= common]
        hashes = self._hashes[:common]
        start = stored[-1] if stored else 0
        elements = [sized(body) for body in bodies[start:]]
        for element in elements[common - start :]:
            own = element.hash if isinstance(element, Large) else digest(element)
            hashes.append(digest(hashes[-1] + own) if hashes else own)
        if start < len(bodies):
            stored.append(len(bodies))
        self._bodies, self._hashes, self._stored = bodies, hashes, stored
        return Chain(hashes[-1], hashes[start:], elements, hashes[start - 1] if start else None)


class Memory:
    """The lists and long values of the threads that were used last. Any thread may use it.

    Args:
        threads: Of how many.
    """

    def __init__(self, threads: int) -> None:
        self._limit = threads
        self._threads: OrderedDict[Thread, dict[str, _List | Large]] = OrderedDict()
        self._lock = Lock()

    def follow(self, thread: Thread, values: Mapping[str, bytes | list[bytes]]) -> dict[str, Value | Chain]:
        """How to store a thread's channels: packed values, or lists of packed elements."""
        with self._lock:
            held = self._threads.get(thread)
            if held is None:
                held = self._threads[thread] = {}
                if len(self._threads) > self._limit:
                    self._threads.popitem(last=False)
            else:
                self._threads.move_to_end(thread)
            return {channel: _follow(held, channel, value) for channel, value in values.items()}

    def forget(self, thread: Thread) -> None:
        """Assume nothing of a thread's to be stored."""
        with self._lock:
            self._threads.pop(thread, None)


def _follow(held: dict[str, _List | Large], channel: str, value: bytes | list[bytes]) -> Value | Chain:
    before = held.get(channel)
    if isinstance(value, list):
        if not isinstance(before, _List):
            before = held[channel] = _List()
        return before.follow(value)
    if isinstance(before, Large) and before.body == value:
        return before
    made = sized(value)
    if isinstance(made, Large):
        held[channel] = made
    return made


def _common(one: list[bytes], other: list[bytes]) -> int:
    """How many elements two lists begin with in common."""
    if other[: len(one)] == one:
        return len(one)
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
