"""Stateful players: they get only what is new, and their state after each reply is kept and restored.

A state belongs to the conversation up to the reply after which it was taken: `mark` is the hash of these messages. The
next request to the player begins with the same messages, so its mark finds the state, whether the conversation
continues, resumes after a crash, was rewound, or has branched off.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import inspect
import json
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from dialoom.prompts import ChatMessage
from dialoom.roles.errors import (
    Absence,
    PermanentProviderError,
    StateLostError,
    TransientProviderError,
    UnansweredError,
)
from dialoom.roles.players import PlayerError
from dialoom.roles.session import Session

from .calls import Completion, PlayerState, Request
from .retries import Backend

_MOST_OPEN = 1_000
"""The most parts in conversations for which a player's object is held; an earlier one is made again."""

_MOST_BYTES = 64 * 2**20
"""The largest state of a player, as JSON."""


def player_key(request: Request) -> bytes:
    """Return the identity of a player within a scenario: a hash of its role and model."""
    return hashlib.sha256(f"{request.role}\0{request.model}".encode()).digest()[:8]


def marks(request: Request) -> list[bytes]:
    """Return the marks of a request's conversation after each of the player's own messages, the latest first."""
    mark, found = b"", list[bytes]()
    for index in request.conversation:
        message = request.messages[index]
        mark = _next(mark, message)
        if message["role"] == "assistant":
            found.append(mark)
    return found[::-1]


def state_after(request: Request, completion: Completion, content: bytes) -> PlayerState:
    """Return the state of a player after its reply to a request."""
    mark = b""
    for index in request.conversation:
        mark = _next(mark, request.messages[index])
    own: ChatMessage = {"role": "assistant", "content": completion.text}
    if completion.tool_calls:
        calling: ChatMessage = {"role": "assistant", "content": "", "tool_calls": completion.tool_calls}
        if completion.outputs:  # the player has run the tools itself, and then replied
            mark = _next(mark, calling)
            for output in completion.outputs:
                mark = _next(mark, {"role": "tool", "content": output})
        else:
            own = {**calling, "content": completion.text}
    return PlayerState(player_key(request), _next(mark, own), content)


def _next(mark: bytes, message: ChatMessage) -> bytes:
    """Return the mark of a conversation with one more message; ids of tool calls do not count."""
    words = message["content"].replace("&lt;", "<").strip()  # a prompt escapes its own tags in the conversation
    calls = [[call["name"], call["arguments"]] for call in message.get("tool_calls", ())]
    content = json.dumps([message["role"], words, calls], ensure_ascii=False)
    return hashlib.sha256(mark + content.encode()).digest()[:16]


def split(request: Request, lead: str) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """Return the messages of a request that a player has had, up to its last reply, and those that are new to it.

    What the prompt adds after the conversation is always new; what it has before it only if it has changed.

    Args:
        request: The request, with the state that the player is in.
        lead: The hash, at that state, of the prompt's messages before the conversation.
    """
    messages, earlier = request.messages, request.earlier
    if earlier is None or earlier.mark is None:
        return [], list(messages)
    own = [index for index in request.conversation if messages[index]["role"] == "assistant"]
    last = own[-1 - marks(request).index(earlier.mark)]
    had = {index for index in request.conversation if index <= last}
    had |= set(range(request.conversation[0])) if lead == lead_of(request) else set()
    return [messages[index] for index in sorted(had)], [each for index, each in enumerate(messages) if index not in had]


def lead_of(request: Request) -> str:
    """Return a hash of the prompt's messages before the conversation."""
    before = request.messages[: request.conversation[0]] if request.conversation else ()
    return hashlib.sha256(json.dumps([each["content"] for each in before]).encode()).hexdigest()[:16]


def session_of(request: Request) -> Session:
    """Return the session of a request.

    Raises:
        PlayerError: If it belongs to no conversation.
    """
    if request.session is None:
        raise PlayerError("keeps state, and this call belongs to no conversation, such as one that scenarios share")
    return request.session


@dataclass(frozen=True, slots=True)
class Kept:
    """A player's reply, with its state after it.

    Attributes:
        said: The reply as the player has returned it.
        state: Its state, packed.
        note: Called with the state once its mark is known.
    """

    said: object
    state: bytes
    note: Callable[[PlayerState], None] = lambda _state: None

    def after(self, request: Request, completion: Completion) -> Completion:
        """Return the completion that was read from the reply, with the player's state after it."""
        state = state_after(request, completion, self.state)
        self.note(state)
        return replace(completion, state=state)


def pack(request: Request, state: Any) -> bytes:
    """Pack a player's state.

    Raises:
        PlayerError: If it is not a JSON value or bytes, or too large.
    """
    plain = {"$bytes": base64.b64encode(state).decode()} if isinstance(state, bytes) else state
    try:
        text = json.dumps({"lead": lead_of(request), "state": plain}, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PlayerError(f"snapshot() must return a JSON value or bytes: {error}") from error
    if len(packed := text.encode()) > _MOST_BYTES:
        raise PlayerError(f"has a state of {len(packed):,} bytes as JSON; it must have at most {_MOST_BYTES:,}")
    return zlib.compress(packed)


def unpack(content: bytes) -> tuple[str, Any]:
    """Return the hash of the prompt's messages before the conversation, and the state.

    Raises:
        ValueError: If the content is damaged.
    """
    try:
        inflating = zlib.decompressobj()
        text = inflating.decompress(content, _MOST_BYTES)
        if not inflating.eof:
            raise ValueError(f"not a player's state: cut off, or more than {_MOST_BYTES:,} bytes")
        kept = json.loads(text)
        state = kept["state"]
        if isinstance(state, dict) and state.keys() == {"$bytes"}:
            state = base64.b64decode(state["$bytes"])
        return str(kept["lead"]), state
    except (zlib.error, KeyError, TypeError) as error:
        raise ValueError(f"not a player's state: {error}") from error


def readable(content: bytes) -> Any:
    """Return a packed state for people to read: without a graph's serialised checkpoint."""
    _, state = unpack(content)
    if isinstance(state, dict) and {"thread", "checkpoint"} <= state.keys():
        return {name: value for name, value in state.items() if name != "content"}
    return f"{len(state):,} bytes" if isinstance(state, bytes) else state


Call = Callable[[Any, Sequence[ChatMessage], Request], Awaitable[object]]
"""A function that calls a player with messages."""


def _part_of(request: Request) -> str:
    """Return the name of a role's part in a conversation: another role with the same player has a state of its own."""
    return f"{session_of(request).conversation} {request.role}"


class Objects:
    """The objects that a player consists of: one for each role's part in a conversation if it is a class, else one.

    Args:
        player: The class or object.
    """

    def __init__(self, player: Any) -> None:
        self.is_shared = not inspect.isclass(player)
        self._player = player
        self._open: OrderedDict[str, Any] = OrderedDict()

    def has(self, part: str) -> bool:
        """Return whether the object of a role's part in a conversation is held."""
        return self.is_shared or part in self._open

    def of(self, part: str, *, is_new: bool) -> Any:
        """Return the object of a role's part in a conversation; a new one where the conversation begins."""
        if self.is_shared:
            return self._player
        if is_new or part not in self._open:
            self._open[part] = self._player()
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(part)
        return self._open[part]


class SnapshotPlayer:
    """A player with `snapshot()` and `restore(snapshot)`: it is restored before every call.

    So neither the order of calls nor an attempt that failed half-way can affect it.

    Args:
        player: The object, or a class of which each conversation gets an object.
    """

    def __init__(self, player: Any) -> None:
        self._objects = Objects(player)
        self._locks = Locks()
        self._initial: list[Any] = []

    async def reply(self, request: Request, call: Call) -> Kept:
        """Restore the player, and return its reply and its snapshot."""
        part, earlier = _part_of(request), request.earlier
        async with self._locks.of("" if self._objects.is_shared else part):
            player = self._objects.of(part, is_new=earlier is None)
            if self._objects.is_shared and not self._initial:
                self._initial.append(await _awaited(player.snapshot()))
            lead = ""
            if earlier is not None:
                lead, state = unpack(earlier.content)
                await _awaited(player.restore(state))
            elif self._objects.is_shared:
                await _awaited(player.restore(self._initial[0]))
            said = await call(player, split(request, lead)[1], request)
            return Kept(said, pack(request, await _awaited(player.snapshot())))


class LivePlayer:
    """A player whose state only it has: its conversations continue as long as this process does.

    One with `begin(session, messages)` is told the earlier messages when a conversation starts or was interrupted; with
    any other, the conversation must start again from the beginning.

    Args:
        player: The object, class, function or backend.
    """

    def __init__(self, player: Any) -> None:
        self._objects = Objects(player)
        self._locks = Locks()
        self._begins = callable(getattr(player, "begin", None))
        self._live: dict[str, bytes | None] = {}

    async def reply(self, request: Request, call: Call) -> Kept:
        """Return the player's reply; its state is known by its mark alone.

        Raises:
            StateLostError: If the player is not in the state that the request begins from, and cannot be told.
        """
        part, earlier = _part_of(request), request.earlier
        mark = None if earlier is None else earlier.mark
        async with self._locks.of(part):
            before = self._live.get(part, b"")
            is_live = mark is not None and before == mark and self._objects.has(part)
            if not is_live and not self._begins and (mark is not None or part in self._live):
                raise StateLostError(
                    "cannot go on: it has no snapshot(), restore() or begin(), and the state after the last message "
                    "is gone"
                )
            lead = unpack(earlier.content)[0] if earlier is not None and mark is not None else ""
            had, new = split(request, lead)
            player = self._objects.of(part, is_new=not is_live)
            if not is_live and self._begins:
                await _awaited(player.begin(session_of(request), had))
            self._live[part] = None  # until it has replied, nobody knows its state
            try:
                said = await call(player, new, request)
            except TransientProviderError as error:
                if error.is_overload or (isinstance(error, UnansweredError) and error.absence is Absence.CERTAIN):
                    self._keep(part, before)  # the request did not reach it
                raise
        return Kept(said, pack(request, None), lambda state: self._keep(part, state.mark))

    def _keep(self, part: str, mark: bytes | None) -> None:
        """Note the player's state: that after a mark, an unknown one (`None`), or that of the beginning (empty)."""
        if mark == b"":
            del self._live[part]
        else:
            self._live[part] = mark


class StatefulModel:
    """A model whose server keeps the conversation by its session, and so gets only what is new.

    Args:
        model: The backend of the model.
    """

    def __init__(self, model: Backend) -> None:
        self._live = LivePlayer(model)

    async def complete(self, request: Request, key: str) -> Completion:
        """Make one attempt.

        Raises:
            ProviderError: If it fails.
            StateLostError: If the server's conversation is not where the request begins.
        """

        async def ask(model: Backend, messages: Sequence[ChatMessage], _: Request) -> Completion:
            return await model.complete(replace(request, messages=tuple(messages), conversation=()), key)

        try:
            kept = await self._live.reply(request, ask)
        except PlayerError as error:
            raise PermanentProviderError(f"{request.model} {error}") from error
        except StateLostError as error:
            raise StateLostError(f"{request.model} {error}") from error
        assert isinstance(kept.said, Completion)
        return kept.after(request, kept.said)


class Locks:
    """A lock for each name, for as long as it is used."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, name: str) -> asyncio.Lock:
        """Return the lock of a name."""
        return self._locks.setdefault(name, asyncio.Lock())


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
