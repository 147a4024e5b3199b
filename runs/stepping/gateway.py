"""Gateways for single steps, which apply changes or only record requests, and a checkpointer that stores nothing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from dialoom.prompts import ChatMessage, FunctionCall
from dialoom.roles import CallPlace, Completion, Ledger, ModelBinding
from dialoom.roles.gateway import Caller, CallRecord, Request
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON
from dialoom.roles.gateway.wire import parse_calls
from dialoom.roles.replies import parse_reply
from dialoom.runs.errors import RunError

from .values import parse_value

_CALL_START = re.compile(r"""\s*\[?\s*\{\s*"(?:name|tool_calls)"\s*:""")
_EVENT_LOOP_TURNS = 50
"""The number of event loop turns to wait for parallel requests before a step that only records requests ends."""


class SteppingError(RunError):
    """An action that the stepper cannot carry out now; the message lists what is possible."""


class NotSentError(Exception):
    """The exception that ends a step in which requests are only recorded."""


@dataclass(frozen=True, slots=True)
class NextRequest:
    """A request that the next step would make.

    Attributes:
        node: The node that makes it.
        number: The number of the request among those of the node, from 0.
        request: The request.
        key: The key that identifies the call.
    """

    node: str
    number: int
    request: Request
    key: str

    @property
    def role(self) -> str:
        """The role that is called."""
        return self.request.role

    @property
    def name(self) -> str:
        """The request's name, `NODE:NUMBER`, such as `answer:2` for the node's second request."""
        return f"{self.node}:{self.number}"


@dataclass(frozen=True, slots=True)
class CallOverrides:
    """A person's changes to the calls of one or more steps.

    Attributes:
        models: Other bindings, by role.
        replies: Replies written by a person, by the calls' keys, each with its sample number.
        messages: Requests written by a person, by the keys of the calls whose requests they replace.
    """

    models: Mapping[str, ModelBinding] = field(default_factory=dict)
    replies: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    messages: Mapping[str, Sequence[ChatMessage]] = field(default_factory=dict)


def reply_from_text(request: Request, text: str) -> Completion:
    """Convert a person's text to a reply. If tools are offered, the text can also be tool calls in JSON.

    Args:
        request: The request to answer.
        text: Text that parses as the reply type; or `{"name": ..., "arguments": {...}}`, a list of such calls, or
            `{"content": ..., "tool_calls": [...]}`.

    Raises:
        SteppingError: If the text is empty or does not parse as the reply type.
    """
    words, calls = _split_text_and_calls(text) if request.tools else (text, ())
    if not words.strip() and not calls:
        raise SteppingError(f"{request.role} needs a text as its reply, got an empty one")
    if request.reply_type is not None:
        try:
            parse_reply(text, request.reply_type)
        except ValueError as error:
            raise SteppingError(f"{request.role} cannot reply {text!r} here: {error}") from error
    return Completion(
        words, input_tokens=0, output_tokens=0, cost=0.0, finish_reason=WRITTEN_BY_PERSON, tool_calls=calls
    )


def text_from_reply(answer: Completion) -> str:
    """Return the text that a person would write to give this reply; see `reply_from_text`."""
    if not answer.tool_calls:
        return answer.text
    calls = [{"name": call["name"], "arguments": parse_value(call["arguments"])} for call in answer.tool_calls]
    reply = {"content": answer.text, "tool_calls": calls} if answer.text else calls[0] if len(calls) == 1 else calls
    return json.dumps(reply, ensure_ascii=False, indent=1)


def _split_text_and_calls(text: str) -> tuple[str, tuple[FunctionCall, ...]]:
    """Split a text that a person wrote as an agent's reply into text and tool calls."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _CALL_START.match(text):
            raise SteppingError(f"{text!r:.60} begins a tool call, but is not valid JSON: {error}") from error
        return text, ()
    message = given if isinstance(given, dict) and "tool_calls" in given else {"tool_calls": given}
    calls = message["tool_calls"]
    calls = calls if isinstance(calls, list) else [calls]
    if not calls or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        return text, ()
    return str(message.get("content") or ""), parse_calls(calls)


def _apply_binding(request: Request, models: Mapping[str, ModelBinding]) -> Request:
    """Return a request with the role's model replaced by another one, if there is one."""
    if (binding := models.get(request.role)) is None:
        return request
    return replace(request, model=binding.model, api_base=binding.api_base, is_stateful=binding.stateful)


class SteppingGateway:
    """A gateway that applies a person's changes to calls and records the calls made.

    Args:
        gateway: The gateway to the models.
        ledger: The ledger in which a person's replies are recorded.
        changes: The changes.
    """

    def __init__(self, gateway: Caller, ledger: Ledger, changes: CallOverrides) -> None:
        self._gateway = gateway
        self._ledger = ledger
        self._changes = changes
        self._made: dict[str, tuple[str, int, int, bool]] = {}
        self._written: list[tuple[CallPlace, Request, tuple[ChatMessage, ...]]] = []

    def list_calls(self) -> list[tuple[str, str, bool]]:
        """Return the calls in graph order, each as node, key, and whether a person wrote the request."""
        return [(made[0], key, made[3]) for key, made in sorted(self._made.items(), key=lambda item: item[1])]

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """Return the person's reply if there is one, and the model's reply otherwise."""
        request = _apply_binding(request, self._changes.models)
        key, written = request.call_key(place), self._replace_messages(request, place)
        if written is not None:
            request, place = request.with_messages(written), replace(place, is_common=False)
        if key in self._changes.replies:
            text, sample = self._changes.replies[key]
            request, place = replace(request, model=WRITTEN_BY_PERSON), replace(place, sample=sample, is_common=False)
            key = request.call_key(place)
            completion = reply_from_text(request, text).with_ids(key)
            begun = await self._ledger.begin(key, place, request)
            if isinstance(begun, int):  # a person's reply is recorded as a call without cost
                await self._ledger.record(begun, CallRecord(completion, None, 0, 0.0))
        else:
            completion = await self._gateway.complete(request, place)
        # Calls are identified by their key and not by their place, because tasks that a graph sends to the same node
        # have the same place.
        self._made[request.call_key(place)] = (place.node, place.ordinal, place.ask, written is not None)
        return completion

    def _replace_messages(self, request: Request, place: CallPlace) -> tuple[ChatMessage, ...] | None:
        """Return the person's request that replaces the rendered one; on a second attempt, with the error appended.

        A faulty line is requested again with the same request.
        """
        if place.ask == 1:
            if (messages := self._changes.messages.get(request.call_key(place))) is None:
                return None
            self._written.append((place, request, tuple(messages)))
            return tuple(messages)
        for first, rendered, written in self._written:
            length = len(rendered.messages)
            is_again = (place.node, place.step, place.ordinal) == (first.node, first.step, first.ordinal)
            if is_again and request.messages[:length] == rendered.messages:
                return (*written, *request.messages[length:])
        return None


class RecordingGateway:
    """A gateway that records requests without answering them."""

    def __init__(self, models: Mapping[str, ModelBinding]) -> None:
        self._models = models
        self._requests: dict[str, tuple[CallPlace, Request]] = {}

    def requests(self) -> list[NextRequest]:
        """Return the first requests of each node, in graph order."""
        found: list[NextRequest] = []
        for key, (place, request) in sorted(
            self._requests.items(), key=lambda item: (item[1][0].node, item[1][0].ordinal)
        ):
            number = sum(each.node == place.node for each in found)
            found.append(NextRequest(place.node, number, request, key))
        return found

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """Record the request.

        Raises:
            NotSentError: Always.
        """
        request = _apply_binding(request, self._models)
        self._requests[request.call_key(place)] = place, request
        for _ in range(_EVENT_LOOP_TURNS):
            await asyncio.sleep(0)
        raise NotSentError


class ScratchSaver(BaseCheckpointSaver[int]):
    """A checkpointer for steps that only record requests: it reads from an underlying one and stores nothing."""

    def __init__(self, saver: BaseCheckpointSaver[int]) -> None:
        super().__init__()
        self._saver = saver

    def get_next_version(self, current: int | None, channel: None) -> int:
        """Return the version that the underlying checkpointer gives."""
        return self._saver.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the tuple that the underlying checkpointer gives."""
        return await self._saver.aget_tuple(config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,  # noqa: ARG002
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Store nothing; return the configuration that the stored checkpoint would have."""
        place = {"checkpoint_ns": "", **config["configurable"], "checkpoint_id": checkpoint["id"]}
        return {"configurable": {key: place[key] for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store nothing."""
