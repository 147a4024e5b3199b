"""Stateful players: they receive only new messages, and their state after each reply is stored and restored.

A state belongs to the conversation up to and including a reply; its `mark` is the hash of these messages. The next
request to the player begins with the same messages, so the state is found by the same hash, whether the conversation
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
from functools import reduce
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from dialoom.prompts import ChatMessage
from dialoom.roles.errors import (
    BindingError,
    OutageEvidence,
    StateLostError,
    TransientProviderError,
    UnansweredError,
)
from dialoom.roles.players import PlayerError, RefusedPlayerError, Session, has_begin
from dialoom.roles.restoring import (
    CALL_WITHOUT_CONVERSATION,
    NON_JSON_SNAPSHOT,
    UNRESTORABLE_IN_DEBUGGER,
    Refusal,
    dump_state,
)

from .calls import Completion, PlayerState, Request
from .retries import Backend
from .secrets import redact

_MAX_OBJECTS = 1_000
"""Maximum number of player objects kept in memory, one for each role in a conversation; others are recreated when
needed.
"""

MAX_ENTRIES = 10_000
"""Maximum number of small entries kept in memory, one for each role in a conversation."""

_MAX_STATE_BYTES = 64 * 2**20
"""Maximum size of a player's state in bytes, as JSON."""


def player_key(request: Request) -> bytes:
    """Return the identity of a player within a scenario: a hash of its role and model."""
    return hashlib.sha256(f"{request.role}\0{request.model}".encode()).digest()[:8]


def compute_marks(request: Request) -> dict[bytes, int]:
    """Return the marks of a request's conversation after each message that may have ended a reply, latest first.

    Each has the index of that message: one of the player's, or a tool's output, because a player that runs its tools
    itself may add no text after it.
    """
    mark, marks = b"", dict[bytes, int]()
    for index in request.conversation:
        message = request.messages[index]
        mark = _extend_mark(mark, message)
        if message["role"] in ("assistant", "tool"):
            marks[mark] = index
    return dict(reversed(marks.items()))


def build_player_state(request: Request, completion: Completion, content: bytes) -> PlayerState:
    """Return the state of a player after its reply to a request, with the mark."""
    conversation = [request.messages[index] for index in request.conversation]
    messages: list[ChatMessage] = [*(conversation if request.rendered is None else request.rendered)]
    if completion.outputs:  # the player has run the tools itself, and then replied
        messages.append({"role": "assistant", "content": "", "tool_calls": completion.tool_calls})
        messages += ({"role": "tool", "content": output} for output in completion.outputs)
    if completion.text.strip() or not completion.outputs:
        calls = () if completion.outputs else completion.tool_calls
        messages.append({"role": "assistant", "content": completion.text, "tool_calls": calls})
    return PlayerState(player_key(request), reduce(_extend_mark, messages, b""), content)


def _extend_mark(mark: bytes, message: ChatMessage) -> bytes:
    """Return the mark of a conversation with one more message. The ids of tool calls do not affect the mark."""
    words = (
        message["content"].replace("&lt;", "<").strip()
    )  # prompts escape their own tags within the conversation's messages
    calls = [[call["name"], call["arguments"]] for call in message.get("tool_calls", ())]
    content = json.dumps([message["role"], words, calls], ensure_ascii=False)
    return hashlib.sha256(mark + content.encode()).digest()[:16]


def split_messages(request: Request, lead: str) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """Return the messages of a request that a player already has, up to its last reply, and the messages new to it.

    The prompt's messages after the conversation are always new; those before it are new only if they have changed.

    Args:
        request: The request, with the state that the player is in.
        lead: The hash of the prompt's messages before the conversation, as stored with that state.
    """
    messages, player_state = request.messages, request.player_state
    if player_state is None or player_state.mark is None:
        return [], list(messages)
    last = compute_marks(request)[player_state.mark]
    known = {index for index in request.conversation if index <= last}
    known |= set(range(request.conversation[0])) if lead == hash_lead(request) else set()
    return [messages[index] for index in sorted(known)], [
        each for index, each in enumerate(messages) if index not in known
    ]


def hash_lead(request: Request) -> str:
    """Return a hash of the prompt's messages before the conversation."""
    before = request.messages[: request.conversation[0]] if request.conversation else ()
    return hashlib.sha256(json.dumps([each["content"] for each in before]).encode()).hexdigest()[:16]


def require_session(request: Request) -> Session:
    """Return the session of a request.

    Raises:
        RefusedPlayerError: If the request belongs to no conversation.
    """
    if request.session is None:
        raise RefusedPlayerError(CALL_WITHOUT_CONVERSATION.format())
    return request.session


def build_refusal_error(name: str, error: RefusedPlayerError) -> BindingError:
    """Return the error that stops the run because a player cannot be used for a call."""
    return BindingError(redact(f"models: {name} {error}"), setting="models")


@dataclass(frozen=True, slots=True)
class ReplyWithState:
    """A player's reply, with its state after it.

    Attributes:
        reply: The reply as returned by the player.
        state: The player's state, serialized.
        on_state: Called with the state once its mark is known.
    """

    reply: object
    state: bytes
    on_state: Callable[[PlayerState], None] = lambda _state: None

    def attach_state(self, request: Request, completion: Completion) -> Completion:
        """Return the completion that was parsed from the reply, with the player's state added."""
        state = build_player_state(request, completion, self.state)
        self.on_state(state)
        return replace(completion, state=state)


def pack_state(request: Request, state: Any, refusal: Refusal = NON_JSON_SNAPSHOT) -> bytes:
    """Serialize a player's state, with a hash of the messages before the conversation.

    Args:
        request: The request to which the player has replied.
        state: Its state after the reply.
        refusal: The refusal of a state that is neither a JSON value nor bytes.

    Raises:
        RefusedPlayerError: If the state is neither a JSON value nor bytes.
        PlayerError: If the state is too large.
    """
    plain = {"$bytes": base64.b64encode(state).decode()} if isinstance(state, bytes) else state
    try:
        text = dump_state({"lead": hash_lead(request), "state": plain})
    except (TypeError, ValueError, RecursionError) as error:
        raise RefusedPlayerError(refusal.format(error=error)) from error
    if len(packed := text.encode()) > _MAX_STATE_BYTES:
        raise PlayerError(f"has a state of {len(packed):,} bytes as JSON; it must have at most {_MAX_STATE_BYTES:,}")
    return zlib.compress(packed)


def unpack_state(content: bytes) -> tuple[str, Any]:
    """Return the contents of a serialized state: the hash of the messages before the conversation, and the state.

    Raises:
        ValueError: If the content is damaged.
    """
    try:
        inflating = zlib.decompressobj()
        text = inflating.decompress(content, _MAX_STATE_BYTES)
        if not inflating.eof:
            raise ValueError(f"not a player's state: cut off, or more than {_MAX_STATE_BYTES:,} bytes")
        stored = json.loads(text)
        state = stored["state"]
        if isinstance(state, dict) and state.keys() == {"$bytes"}:
            state = base64.b64decode(state["$bytes"])
        return str(stored["lead"]), state
    except (zlib.error, KeyError, TypeError) as error:
        raise ValueError(f"not a player's state: {error}") from error


Locks = WeakValueDictionary[str, asyncio.Lock]
"""Locks by name. Each exists as long as it is used."""

Value = TypeVar("Value")


class BoundedDict(OrderedDict[str, Value]):
    """A dictionary of limited size that drops its oldest entries, whose conversations have usually ended.

    Args:
        max_entries: Maximum number of entries; beyond it, the entry that was set first is dropped.
    """

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def __setitem__(self, name: str, value: Value) -> None:
        """Set an entry, and make it the newest one."""
        super().__setitem__(name, value)
        self.move_to_end(name)
        if len(self) > self._max_entries:
            self.popitem(last=False)


CallPlayer = Callable[[Any, Sequence[ChatMessage], Request], Awaitable[object]]
"""A function that calls a player with messages."""


def _get_player_key(request: Request) -> str:
    """Return the key of a role in a conversation; the player has a separate state for each key."""
    return f"{require_session(request).conversation} {request.role}"


class PlayerObjects:
    """The objects of a player: one for each role in a conversation if the player is a class, else a shared object.

    Args:
        player: The class or object.
    """

    def __init__(self, player: Any) -> None:
        self.is_shared = not inspect.isclass(player)
        self._player = player
        self._open = BoundedDict[Any](_MAX_OBJECTS)

    def has(self, key: str) -> bool:
        """Return whether the object for a role in a conversation is in memory."""
        return self.is_shared or key in self._open

    def get(self, key: str, *, is_new: bool) -> Any:
        """Return the object for a role in a conversation; create it if the conversation begins or it is missing."""
        if self.is_shared:
            return self._player
        self._open[key] = player = self._player() if is_new or key not in self._open else self._open[key]
        return player


class SnapshotPlayer:
    """A player with `snapshot()` and `restore(snapshot)`, which is restored before every call.

    Thus neither the order of calls nor an attempt that failed half-way affects the player. An object that serves all
    conversations is also restored after every call, so that another run begins with the same state as this one.

    Args:
        player: The object, or a class that is instantiated for each conversation.
    """

    def __init__(self, player: Any) -> None:
        self._objects = PlayerObjects(player)
        self._locks = Locks()

    async def reply(self, request: Request, call: CallPlayer) -> ReplyWithState:
        """Restore the player, and return its reply and its snapshot."""
        key, earlier, is_shared = _get_player_key(request), request.player_state, self._objects.is_shared
        async with self._locks.setdefault("" if is_shared else key, asyncio.Lock()):
            player = self._objects.get(key, is_new=earlier is None)
            initial = unpack_state(pack_state(request, await _resolve(player.snapshot())))[1] if is_shared else None
            lead = ""
            if earlier is not None:
                lead, state = unpack_state(earlier.content)
                await _resolve(player.restore(state))
            try:
                reply = await call(player, split_messages(request, lead)[1], request)
                return ReplyWithState(reply, pack_state(request, await _resolve(player.snapshot())))
            finally:
                if is_shared:
                    await _resolve(player.restore(initial))


class LivePlayer:
    """A player whose state cannot be stored, so that its conversations continue only within this process.

    A player with `begin(session, messages)` receives the earlier messages when a conversation starts or was
    interrupted. With any other player, an interrupted conversation must start again from the beginning.

    Args:
        player: The object, class, function or backend.
    """

    def __init__(self, player: Any) -> None:
        self._objects = PlayerObjects(player)
        self._locks = Locks()
        self._has_begin = has_begin(player)
        self._marks = BoundedDict[bytes | None](MAX_ENTRIES)
        self._is_switchable = self._has_begin and self._objects.is_shared
        self._last_key = ""

    async def reply(self, request: Request, call: CallPlayer) -> ReplyWithState:
        """Return the player's reply. Only the mark of the state after the reply is stored.

        Raises:
            StateLostError: If the player is not in the state that the request requires, and has no method `begin`.
        """
        key, earlier = _get_player_key(request), request.player_state
        mark = None if earlier is None else earlier.mark
        async with self._locks.setdefault("" if self._is_switchable else key, asyncio.Lock()):
            before = self._marks.get(key, b"")
            is_live = mark is not None and before == mark and self._objects.has(key)
            is_live = is_live and (not self._is_switchable or self._last_key == key)
            self._last_key = key
            if not is_live and not self._has_begin and (mark is not None or key in self._marks):
                raise StateLostError(UNRESTORABLE_IN_DEBUGGER.format())
            lead = unpack_state(earlier.content)[0] if earlier is not None and mark is not None else ""
            had, new = split_messages(request, lead)
            player = self._objects.get(key, is_new=not is_live)
            if not is_live and self._has_begin:
                await _resolve(player.begin(require_session(request), had))
            self._marks[key] = None  # its state is unknown until it has replied
            try:
                reply = await call(player, new, request)
            except TransientProviderError as error:
                if error.is_overload or (
                    isinstance(error, UnansweredError) and error.evidence is OutageEvidence.STRONG
                ):
                    self._store_mark(key, before)  # the request did not reach the player
                raise
        return ReplyWithState(reply, pack_state(request, None), lambda state: self._store_mark(key, state.mark))

    def _store_mark(self, key: str, mark: bytes | None) -> None:
        """Store the mark of a player's current state: `None` if it is unknown, empty bytes before the first reply."""
        if mark == b"":
            self._marks.pop(key, None)
        else:
            self._marks[key] = mark


class StatefulModel:
    """A model whose server stores conversations by session, so that only new messages are sent.

    Args:
        model: The backend of the model.
    """

    def __init__(self, model: Backend) -> None:
        self._marks = LivePlayer(model)

    async def complete(self, request: Request, key: str) -> Completion:
        """Make one attempt.

        Raises:
            ProviderError: If the attempt fails.
            BindingError: If the request belongs to no conversation.
            StateLostError: If the server's conversation is not in the state that the request requires.
        """

        async def ask(model: Backend, messages: Sequence[ChatMessage], _: Request) -> Completion:
            return await model.complete(replace(request, messages=tuple(messages), conversation=()), key)

        try:
            result = await self._marks.reply(request, ask)
        except RefusedPlayerError as error:
            raise build_refusal_error(request.model, error) from error
        except StateLostError as error:
            raise StateLostError(f"{request.model} {error}") from error
        assert isinstance(result.reply, Completion)
        return result.attach_state(request, result.reply)


async def _resolve(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
