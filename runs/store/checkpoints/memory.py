"""What threads held at their last put, so that only what has changed is looked at and written.

A list is stored as a chain. Its hash is computed over the hashes of its elements from the front,
`h(i) = H(h(i-1), H(element i))`, so the hash of every beginning of the list comes with it. A stored list names a
shorter stored list, its prefix, and what follows on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple, TypeAlias

from langgraph.checkpoint.base import ChannelVersions

from .values import Large, Value, digest

Thread: TypeAlias = tuple[str, str]
"""A thread's name and a namespace in it (empty for the graph itself, another one for each subgraph)."""


Id: TypeAlias = "bytes | str"
"""A checkpoint's id as a column: 16 bytes, or the text if it is no UUID in its usual form."""

Key: TypeAlias = tuple[Thread, Id]
"""Which checkpoint."""

Packed: TypeAlias = "Value | list[Value]"
"""A channel's packed value; of a list that is not short, its elements."""


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


class _List:
    """A list as it was at the last put: its elements, its beginnings' hashes, and the lengths that were stored."""

    __slots__ = ("_elements", "_hashes", "_stored")

    def __init__(self) -> None:
        self._elements: list[Value] = []
        self._hashes: list[bytes] = []
        self._stored: list[int] = []

    def follow(self, elements: list[Value]) -> Chain:
        """Become the list of these elements."""
        common = _common(self._elements, elements)
        stored = self._stored
        if common < len(self._elements):
            stored = [length for length in stored if length <= common]
        hashes = self._hashes[:common]
        start = stored[-1] if stored else 0
        for element in elements[common:]:
            own = element.hash if isinstance(element, Large) else digest(element)
            hashes.append(digest(hashes[-1] + own) if hashes else own)
        if start < len(elements):
            stored = [*stored, len(elements)]
        self._elements, self._hashes, self._stored = elements, hashes, stored
        return Chain(hashes[-1], hashes[start:], elements[start:], hashes[start - 1] if start else None)


class Held(NamedTuple):
    """What a thread held at its last put.

    Attributes:
        id: Of that checkpoint.
        versions: Of its channels.
        packed: Its channels' values.
    """

    id: Id
    versions: ChannelVersions
    packed: Mapping[str, Packed]

    def unchanged(self, channel: str, versions: ChannelVersions) -> bool:
        """Whether a checkpoint that follows on that one, with these versions, holds the same in a channel."""
        return channel in self.packed and self.versions.get(channel) == versions.get(channel)


class _Thread:
    __slots__ = ("held", "lists")

    def __init__(self) -> None:
        self.held: Held | None = None
        self.lists: dict[str, _List] = {}

    def list(self, channel: str) -> _List:
        known = self.lists.get(channel)
        if known is None:
            known = self.lists[channel] = _List()
        return known


class Memory:
    """What the threads that were used last held. Any thread of the process may use it.

    Args:
        threads: Of how many.
    """

    def __init__(self, threads: int) -> None:
        self._limit = threads
        self._threads: OrderedDict[Thread, _Thread] = OrderedDict()
        self._lock = Lock()

    def held(self, thread: Thread, id_: Id | None) -> Held | None:
        """What a thread held, if its last put was of this checkpoint."""
        known = self._threads.get(thread)
        held = None if known is None else known.held
        return held if held is not None and held.id == id_ else None

    def follow(self, key: Key, versions: ChannelVersions, packed: Mapping[str, Packed]) -> dict[str, Value | Chain]:
        """How to store a checkpoint's channels."""
        thread, id_ = key
        with self._lock:
            known = self._threads.get(thread)
            if known is None:
                known = self._threads[thread] = _Thread()
                if len(self._threads) > self._limit:
                    self._threads.popitem(last=False)
            else:
                self._threads.move_to_end(thread)
            known.held = Held(id_, versions, packed)
            return {
                channel: known.list(channel).follow(value) if isinstance(value, list) else value
                for channel, value in packed.items()
            }

    def forget(self, thread: Thread) -> None:
        """Assume nothing of a thread's to be stored."""
        with self._lock:
            self._threads.pop(thread, None)


def _common(one: list[Value], other: list[Value]) -> int:
    """How many elements two lists begin with in common."""
    if other[: len(one)] == one:
        return len(one)
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
