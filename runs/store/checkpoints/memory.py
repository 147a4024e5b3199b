"""A cache of the values in each thread's last checkpoint, so that only changes are examined and written.

A list is stored as a chain. Its hash is computed from the hashes of its elements, `h(i) = H(h(i-1), H(element i))`, so
that the hash of a longer list can be computed from the hash of a shorter list with which it begins. A stored list
consists of a reference to that shorter list, which is its prefix, and the elements after the prefix.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import NamedTuple, TypeAlias, cast

from langgraph.checkpoint.base import ChannelVersions

from .values import Value, digest, hash_element

Thread: TypeAlias = tuple[str, str]
"""A thread's name and a namespace in it (empty for the graph itself, a different one for each subgraph)."""


Id: TypeAlias = "bytes | str"
"""A checkpoint's id as a column value: 16 bytes, or text if it is not a UUID in canonical form."""

Key: TypeAlias = tuple[Thread, Id]
"""A checkpoint's thread and id."""

Packed: TypeAlias = "Value | list[Value]"
"""A packed value. A long list is represented by the list of its packed elements."""

PackedFields: TypeAlias = dict[str, Packed]
"""A graph's input as packed fields. A field that is also a channel's value shares its rows."""


class Chain(NamedTuple):
    """A list to be stored as a reference to a stored prefix and the elements after it.

    Attributes:
        hash: The list's hash.
        elements: All elements.
        prefix: The hash of a stored list with which this list begins; `None` if there is none.
        start: The length of the prefix.
    """

    hash: bytes
    elements: list[Value]
    prefix: bytes | None
    start: int

    @property
    def added(self) -> list[Value]:
        """The elements after the prefix."""
        return self.elements[self.start :]


ChannelContent: TypeAlias = "Value | Chain | dict[str, Value | Chain]"
"""A channel's value in its form for storage."""


def iterate_parts(content: ChannelContent) -> Iterator[Value | Chain]:
    """Yield the parts of a channel's value: the fields of a dict, or the value itself."""
    if type(content) is dict:
        yield from content.values()
    else:
        yield content  # type: ignore[misc]


class _ChainedList:
    """A list in the last checkpoint: its elements, and the lengths and hashes of its stored prefixes."""

    __slots__ = ("_elements", "_stored")

    def __init__(self) -> None:
        self._elements: list[Value] = []
        self._stored: list[tuple[int, bytes]] = []

    def update(self, elements: list[Value]) -> Chain:
        """Update the list to the given elements, and return it in its form for storage."""
        common = _count_common(self._elements, elements)
        while self._stored and self._stored[-1][0] > common:
            self._stored.pop()
        start, prefix = self._stored[-1] if self._stored else (0, None)
        hash_ = prefix or b""
        for element in elements[start:]:
            own = hash_element(element)
            hash_ = digest(hash_ + own) if hash_ else own
        if start < len(elements):
            self._stored.append((len(elements), hash_))
        self._elements = elements
        return Chain(hash_, elements, prefix, start)


class ThreadState(NamedTuple):
    """The state of a thread in its last stored checkpoint.

    Attributes:
        id: The checkpoint's id.
        versions: The versions of its channels.
        values: The values of its channels.
    """

    id: Id
    versions: ChannelVersions
    values: Mapping[str, ChannelContent]

    def find_unchanged(self, channel: str, versions: ChannelVersions) -> ChannelContent | None:
        """Return a channel's value if the channel's version is the same in the next checkpoint; else `None`."""
        version = versions.get(channel)
        return self.values.get(channel) if version is not None and self.versions.get(channel) == version else None


class _ThreadEntry:
    __slots__ = ("lists", "state")

    def __init__(self) -> None:
        self.state: ThreadState | None = None
        self.lists: dict[str, _ChainedList] = {}

    def update(self, channel: str, packed: Packed | PackedFields | ChannelContent) -> ChannelContent:
        """Return a channel's value in its form for storage."""
        if type(packed) is list:
            entry = self.lists.get(channel)
            if entry is None:
                entry = self.lists[channel] = _ChainedList()
            return entry.update(packed)
        if type(packed) is dict:
            fields = {name: self.update(f"{channel}\0{name}", part) for name, part in packed.items()}
            return cast("dict[str, Value | Chain]", fields)
        return cast(ChannelContent, packed)


class ThreadCache:
    """The last known states of the most recently used checkpoint threads. Threads of the process may share it.

    Args:
        threads: The maximum number of checkpoint threads to keep.
    """

    def __init__(self, threads: int) -> None:
        self._limit = threads
        self._threads: OrderedDict[Thread, _ThreadEntry] = OrderedDict()
        self._lock = Lock()

    def state_at(self, thread: Thread, id_: Id | None) -> ThreadState | None:
        """Return the state of a thread if the given checkpoint was the last one stored; else `None`."""
        entry = self._threads.get(thread)
        state = None if entry is None else entry.state
        return state if state is not None and state.id == id_ else None

    def update(
        self, key: Key, versions: ChannelVersions, packed: Mapping[str, Packed | PackedFields | ChannelContent]
    ) -> Mapping[str, ChannelContent]:
        """Return the values of a checkpoint's channels in their form for storage, and make them the thread's state."""
        thread, id_ = key
        with self._lock:
            entry = self._threads.get(thread)
            if entry is None:
                entry = self._threads[thread] = _ThreadEntry()
                if len(self._threads) > self._limit:
                    self._threads.popitem(last=False)
            else:
                self._threads.move_to_end(thread)
            values = {channel: entry.update(channel, value) for channel, value in packed.items()}
            entry.state = ThreadState(id_, versions, values)
            return values

    def discard(self, thread: Thread) -> None:
        """Discard the cached state of a thread, so that its next checkpoint is stored completely."""
        with self._lock:
            self._threads.pop(thread, None)


def _count_common(first: list[Value], second: list[Value]) -> int:
    """Return the number of leading elements that two lists share."""
    if second[: len(first)] == first:
        return len(first)
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
