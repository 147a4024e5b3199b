"""What threads held at their last put, so that only what has changed is looked at and written.

A list is stored as a chain. Its hash is computed over the hashes of its elements from the front,
`h(i) = H(h(i-1), H(element i))`, so the hash of every beginning of the list comes with it. A stored list names a
shorter stored list, its prefix, and what follows on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import NamedTuple, TypeAlias, cast

from langgraph.checkpoint.base import ChannelVersions

from .ids import own_hash
from .values import Value, digest

Thread: TypeAlias = tuple[str, str]
"""A thread's name and a namespace in it (empty for the graph itself, another one for each subgraph)."""


Id: TypeAlias = "bytes | str"
"""A checkpoint's id as a column: 16 bytes, or the text if it is no UUID in its usual form."""

Key: TypeAlias = tuple[Thread, Id]
"""Which checkpoint."""

Packed: TypeAlias = "Value | list[Value]"
"""A packed value; of a list that is not short, its elements."""

PackedFields: TypeAlias = dict[str, Packed]
"""What a graph was begun with: its fields, so that what goes into a channel as it is shares that channel's rows."""


class Chain(NamedTuple):
    """A list to be stored.

    Attributes:
        hash: The list's hash.
        elements: All of them.
        hashes: The hashes of its beginnings of one, two, three elements and so on (and perhaps more: the list's next).
        start: How many elements a shorter list has that is known to be stored; 0 if none is.
    """

    hash: bytes
    elements: list[Value]
    hashes: list[bytes]
    start: int

    @property
    def prefix(self) -> bytes | None:
        """The hash of that shorter list."""
        return self.hashes[self.start - 1] if self.start else None


Kept: TypeAlias = "Value | Chain | dict[str, Value | Chain]"
"""What a channel holds, as it is stored."""


def parts_of(kept: Kept) -> Iterator[Value | Chain]:
    """What a channel's value consists of: itself, if it is no dict of fields."""
    if type(kept) is dict:
        yield from kept.values()
    else:
        yield kept  # type: ignore[misc]


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
        if common < len(self._elements):
            self._hashes = self._hashes[:common]
            self._stored = [length for length in self._stored if length <= common]
        hashes = self._hashes
        start = self._stored[-1] if self._stored else 0
        for element in elements[common:]:
            own = own_hash(element)
            hashes.append(digest(hashes[-1] + own) if hashes else own)
        if start < len(elements):
            self._stored.append(len(elements))
        self._elements = elements
        return Chain(hashes[-1], elements, hashes, start)


class Held(NamedTuple):
    """What a thread held at its last put.

    Attributes:
        id: Of that checkpoint.
        versions: Of its channels.
        values: Its channels' values.
    """

    id: Id
    versions: ChannelVersions
    values: Mapping[str, Kept]

    def unchanged(self, channel: str, versions: ChannelVersions) -> Kept | None:
        """What a checkpoint that follows on that one, with these versions, holds in a channel, if it is the same."""
        version = versions.get(channel)
        return self.values.get(channel) if version is not None and self.versions.get(channel) == version else None


class _Thread:
    __slots__ = ("held", "lists")

    def __init__(self) -> None:
        self.held: Held | None = None
        self.lists: dict[str, _List] = {}

    def follow(self, channel: str, packed: Packed | PackedFields | Kept) -> Kept:
        """How to store a channel's value."""
        if type(packed) is list:
            known = self.lists.get(channel)
            if known is None:
                known = self.lists[channel] = _List()
            return known.follow(packed)
        if type(packed) is dict:
            fields = {name: self.follow(f"{channel}\0{name}", part) for name, part in packed.items()}
            return cast("dict[str, Value | Chain]", fields)
        return cast(Kept, packed)


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

    def follow(
        self, key: Key, versions: ChannelVersions, packed: Mapping[str, Packed | PackedFields | Kept]
    ) -> Mapping[str, Kept]:
        """How to store a checkpoint's channels, of which some may be known to be what they were."""
        thread, id_ = key
        with self._lock:
            known = self._threads.get(thread)
            if known is None:
                known = self._threads[thread] = _Thread()
                if len(self._threads) > self._limit:
                    self._threads.popitem(last=False)
            else:
                self._threads.move_to_end(thread)
            values = {channel: known.follow(channel, value) for channel, value in packed.items()}
            known.held = Held(id_, versions, values)
            return values

    def forget(self, thread: Thread) -> None:
        """Assume nothing of a thread's to be stored."""
        with self._lock:
            self._threads.pop(thread, None)


def _common(one: list[Value], other: list[Value]) -> int:
    """How many elements two lists begin with in common."""
    if other[: len(one)] == one:
        return len(one)
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
