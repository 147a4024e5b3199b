"""Between the roles and the gateway: what a person changes on the way, and what a step has asked."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dialoom.prompts import ChatMessage, FunctionCall
from dialoom.roles import CallPlace, Completion, Ledger
from dialoom.roles.gateway import Caller, CallRecord, Request
from dialoom.roles.gateway.tool_wire import read_calls
from dialoom.roles.replies import parse_reply
from dialoom.runs.errors import RunError
from dialoom.runs.store.ledger import SAID

_LIKE_A_CALL = re.compile(r"""\s*\[?\s*\{\s*"(?:name|tool_calls)"\s*:""")
_TURNS_OF_THE_LOOP = 50
"""So often other tasks may run before a request that is only noted comes to nothing: parallel ones are noted, too."""


class SteppingError(RunError):
    """Something that cannot be done in a stepping session: says what, and what could."""


class NotSentError(Exception):
    """Ends a step that only shows what it would ask."""


@dataclass(frozen=True, slots=True)
class NextRequest:
    """A request that a step makes, or would make.

    Attributes:
        node: The node that makes it.
        number: Its number among the node's, from 0.
        request: Who is asked what.
        key: The call's identity.
    """

    node: str
    number: int
    request: Request
    key: str

    @property
    def role(self) -> str:
        """The role that is asked."""
        return self.request.role

    @property
    def name(self) -> str:
        """`NODE:NUMBER`, which tells it from the node's other requests."""
        return f"{self.node}:{self.number}"


@dataclass(frozen=True, slots=True)
class CallOverrides:
    """What a person changes in the calls of one step or more.

    Attributes:
        models: Other models, by role.
        said: Replies written by a person, by the keys of the calls, with the sample that sets each apart.
        messages: Requests written by a person, by the keys of the calls that would have been made.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    messages: Mapping[str, Sequence[ChatMessage]] = field(default_factory=dict)


def said_reply(request: Request, text: str) -> Completion:
    """What a person has a role reply: words; where tools are offered, also a call of one as JSON.

    Args:
        request: What the role is asked.
        text: Words of the form that the reply must have; or `{"name": ..., "arguments": {...}}`, a list of such calls,
            or `{"content": ..., "tool_calls": [...]}`.

    Raises:
        SteppingError: If it is not of the form that the reply must have, or nothing.
    """
    words, calls = _words_and_calls(text) if request.tools else (text, ())
    if not words.strip() and not calls:
        raise SteppingError(f"{request.role} cannot say nothing; give its words")
    if request.reply_type is not None:
        try:
            parse_reply(text, request.reply_type)
        except ValueError as error:
            raise SteppingError(f"{request.role} cannot say {text!r} here: {error}") from error
    return Completion(words, input_tokens=0, output_tokens=0, cost=0.0, finish_reason=SAID, tool_calls=calls)


def as_said(answer: Completion) -> str:
    """A reply as a person would have to write it to have the same said; see `said_reply`."""
    if not answer.tool_calls:
        return answer.text
    calls = [{"name": call["name"], "arguments": _arguments(call["arguments"])} for call in answer.tool_calls]
    said = {"content": answer.text, "tool_calls": calls} if answer.text else calls[0] if len(calls) == 1 else calls
    return json.dumps(said, ensure_ascii=False, indent=1)


def _arguments(text: str) -> Any:
    """A call's arguments as values; as they came if they are no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _words_and_calls(text: str) -> tuple[str, tuple[FunctionCall, ...]]:
    """Words and calls of what a person has written for an agent."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _LIKE_A_CALL.match(text):
            raise SteppingError(f"{text!r:.60} is a call, and no JSON: {error}") from error
        return text, ()
    message = given if isinstance(given, dict) and "tool_calls" in given else {"tool_calls": given}
    calls = message["tool_calls"]
    calls = calls if isinstance(calls, list) else [calls]
    if not calls or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        return text, ()
    return str(message.get("content") or ""), read_calls(calls)


class SteppingGateway:
    """Passes calls on as a person has changed them, and notes which were made.

    Args:
        gateway: The way to the models.
        ledger: Where said words are written down.
        changes: What is changed.
    """

    def __init__(self, gateway: Caller, ledger: Ledger, changes: CallOverrides) -> None:
        self._gateway = gateway
        self._ledger = ledger
        self._changes = changes
        self._made: dict[str, tuple[str, int, int, bool]] = {}
        self._written: list[tuple[CallPlace, Request, tuple[ChatMessage, ...]]] = []

    def made(self) -> list[tuple[str, str, bool]]:
        """The calls in the order of their places: node, key, and whether a person wrote the request."""
        return [(made[0], key, made[3]) for key, made in sorted(self._made.items(), key=lambda item: item[1])]

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """What the model replies, or the person in its place."""
        if (model := self._changes.models.get(request.role)) is not None:
            request = replace(request, model=model, api_base=None)
        key, written = request.key(place), self._instead(request, place)
        if written is not None:
            request, place = replace(request, messages=written), replace(place, is_common=False)
        if key in self._changes.said:
            text, sample = self._changes.said[key]
            request, place = replace(request, model=SAID), replace(place, sample=sample, is_common=False)
            completion = await self._say(request, place, text)
        else:
            completion = await self._gateway.complete(request, place)
        # By its identity: tasks that a graph sends out to one node have the same place.
        self._made[request.key(place)] = (place.node, place.ordinal, place.ask, written is not None)
        return completion

    def _instead(self, request: Request, place: CallPlace) -> tuple[ChatMessage, ...] | None:
        """What a person wrote in place of a request; at the second ask, what is said about the first answer follows."""
        if place.ask == 1:
            if (messages := self._changes.messages.get(request.key(place))) is None:
                return None
            self._written.append((place, request, tuple(messages)))
            return tuple(messages)
        for first, rendered, written in self._written:
            length = len(rendered.messages)
            if first.again() == place and request.messages[:length] == rendered.messages:
                return (*written, *request.messages[length:])
        return None

    async def _say(self, request: Request, place: CallPlace, text: str) -> Completion:
        """Write the words down as a call that took nothing."""
        key = request.key(place)
        completion = said_reply(request, text).with_ids(key)
        begun = await self._ledger.begin(key, place, request)
        if isinstance(begun, int):
            await self._ledger.record(begun, CallRecord(completion, None, 0, 0.0))
        return completion


class RecordingGateway:
    """Notes what is asked, and answers nothing."""

    def __init__(self, models: Mapping[str, str]) -> None:
        self._models = models
        self._asked: dict[str, tuple[CallPlace, Request]] = {}

    def asked(self) -> list[NextRequest]:
        """The first requests of each node, in the order of their places."""
        found: list[NextRequest] = []
        for key, (place, request) in sorted(
            self._asked.items(), key=lambda item: (item[1][0].node, item[1][0].ordinal)
        ):
            number = sum(each.node == place.node for each in found)
            found.append(NextRequest(place.node, number, request, key))
        return found

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """Note the request.

        Raises:
            NotSentError: Always.
        """
        if (model := self._models.get(request.role)) is not None:
            request = replace(request, model=model, api_base=None)
        self._asked[request.key(place)] = place, request
        for _ in range(_TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)
        raise NotSentError
