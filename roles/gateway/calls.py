"""The data of a call: its place, request, completion and record, and the ledger's interface."""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition
from dialoom.prompts.messages import get_extra_fields, message_identity
from dialoom.roles.players import Session
from dialoom.settings import SessionForm, Structured
from dialoom.text import to_well_formed, to_well_formed_value

MAX_ASKS = 2
"""Maximum number of requests until a reply can be parsed; the second one shows the model its error."""

INCOMPLETE_REASONS: Mapping[str, str] = {
    "length": "cut off at the token limit",
    "refusal": "refused",
    "content_filter": "filtered",
}
"""Reasons why a reply is incomplete: the provider's term (as unified by LiteLLM), and its description in messages."""

RunTool: TypeAlias = Callable[[FunctionCall], Awaitable[str]]
"""A function that runs a tool call and returns its output, for players that run tools in a loop of their own."""


@runtime_checkable
class StatefulTools(Protocol):
    """Tools with state, for players that run tools in a loop of their own.

    The state is stored with the player's reply, so that a replayed reply runs no tool.
    """

    async def __call__(self, call: FunctionCall) -> str:
        """Run a call and return the tool's output."""

    def state(self) -> Any:
        """Return the state after the calls, as JSON values; `None` if there is none."""

    def restart(self) -> None:
        """Return to the state before the calls, because the attempt that made them is repeated."""


_ID_CHARACTERS = string.ascii_letters + string.digits
_TYPICAL_REPLY_TOKENS = 256
_MAX_TOKENS = 1_000_000_000
_MAX_COST_DOLLARS = 1_000_000.0
"""Upper bounds of a call's tokens and cost: larger figures are a provider's error and must not break a run's sums."""


WRITTEN_BY_PERSON = "said"
"""The model of a call whose reply was written by a person, and the finish reason of this reply."""

TOOL_ROLE = "tool"
"""Role under which executions of an MCP server's tools are recorded."""

TOOL_MODEL_PREFIX = f"{TOOL_ROLE}:"
"""Prefix of the model name under which a tool call is recorded."""


@dataclass(frozen=True, slots=True)
class ToolExecution:
    """A call of a tool that acts outside the run, on an MCP server.

    Attributes:
        name: The tool's name.
        text: The call as text, for messages.
        is_repeatable: Whether a repeated call has no additional effect.
        execute: Executes the call and returns its result.
    """

    name: str
    text: str
    is_repeatable: bool
    execute: Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class PlayerState:
    """The state of a stateful player after one of its replies.

    Attributes:
        player: The player within the scenario, as a hash of role and model.
        mark: A hash of the conversation up to and including that reply; `None` for the state after the person's
            earlier conversation.
        content: The state, serialized by the player's backend.
    """

    player: bytes
    mark: bytes | None
    content: bytes


@dataclass(frozen=True, slots=True)
class CallPlace:
    """The place of a call in a run.

    Attributes:
        scenario: The id of the scenario, or of another LangGraph thread.
        node: The node of the graph that makes the call.
        step: The number of the superstep in LangGraph.
        ordinal: The call's number within that execution of the node, from 0.
        seed: The sampling seed, derived from the run's seed and this place, so that equal places get equal seeds.
        ask: The number of the request for this reply: 1, or 2 after a reply that does not parse. After the recipe has
            rejected a reply that parses, 3 and 4, and so on.
        sample: A number that distinguishes branches and repeated samples of the same call.
        is_common: Whether the call belongs to no scenario (a common call): equal requests share one reply, and the seed
            is derived from the request.
        session: The player's session, without its turn.
    """

    scenario: str
    node: str
    step: int
    ordinal: int
    seed: int
    ask: int = 1
    sample: int = 0
    is_common: bool = False
    session: Session | None = field(default=None, compare=False)

    def next_ask(self) -> CallPlace:
        """Return the place of the second request, after a reply that does not parse."""
        return replace(self, ask=self.ask + 1)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model.

    Attributes:
        reply_type: The type that the reply is parsed into, for models that support structured output.
        api_base: The address at which the model is served, if not the provider's own.
        temperature: Sampling temperature; `None` if none is sent.
        max_reply: Maximum number of tokens in the reply; `None` for no limit.
        params: Further sampling parameters by name.
        timeout: Seconds after which an attempt is given up, if set.
        structured: How the reply is constrained to its type.
        tools: The tools that the model may call.
        run_tool: Runs tool calls for a player with a loop of its own.
        inputs: The prompt's inputs, for the offline models; never sent.
        is_stateful: Whether the player keeps state between calls.
        conversation: The indices in `messages` of the conversation's messages; all others belong to the prompt.
        rendered: The conversation's messages as rendered from the prompt, if a person has rewritten the request, or if
            the request asks again for a reply that could not be parsed. Messages that were changed or added for this
            are not part of the conversation in later requests.
        session: The session that is passed to the player.
        session_form: The part of a request to a model that carries the session; `None` for no part.
        player_state: The latest known state of a stateful player.
        tool_execution: The tool call to execute, if this is not a request to a model.
    """

    role: str
    prompt_id: str
    model: str
    temperature: float | None
    seed: int
    messages: tuple[ChatMessage, ...]
    reply_type: type[BaseModel] | None = None
    api_base: str | None = None
    max_reply: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    structured: Structured = "auto"
    tools: tuple[ToolDefinition, ...] = ()
    run_tool: RunTool | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    is_stateful: bool = False
    conversation: tuple[int, ...] = ()
    rendered: tuple[ChatMessage, ...] | None = None
    session: Session | None = None
    session_form: SessionForm | None = None
    player_state: PlayerState | None = None
    tool_execution: ToolExecution | None = None

    def with_messages(self, messages: tuple[ChatMessage, ...]) -> Request:
        """Return the request with other messages.

        Messages count as part of the conversation only up to the first changed one.
        """
        return replace(
            self,
            messages=messages,
            conversation=tuple(takewhile(lambda at: messages[at:][:1] == self.messages[at:][:1], self.conversation)),
            rendered=tuple(self.messages[index] for index in self.conversation)
            if self.rendered is None
            else self.rendered,
        )

    @property
    def reply_settings(self) -> list[Any]:
        """All settings besides model, temperature and seed that affect the reply; empty if all have defaults."""
        sampled = [self.max_reply, dict(sorted(self.params.items()))] if self.max_reply or self.params else []
        shaped = sampled if self.structured == "auto" else [*sampled, self.structured]
        return [*shaped, {"tools": list(self.tools)}] if self.tools else shaped

    @property
    def texts(self) -> list[str]:
        """All texts of the request, including tools and tool calls."""
        rest = [*self.tools, *filter(None, map(get_extra_fields, self.messages))]
        return [*(each["content"] for each in self.messages), *(json.dumps(each, ensure_ascii=False) for each in rest)]

    @property
    def character_count(self) -> int:
        """Length of the request in characters, including tools and tool calls."""
        return sum(map(len, self.texts))

    @property
    def expected_tokens(self) -> int:
        """Estimated number of tokens: one per four characters, plus a reply of typical length."""
        return estimate_tokens(self.character_count)

    def call_key(self, place: CallPlace) -> str:
        """Return the call's key, under which the ledger stores it: a SHA-256 of its place and its request.

        The key contains, in this order:

        * of the place: `scenario`, `node`, `step` and `ordinal` (for a common call, the request's `prompt_id` instead),
          `ask` and `sample`;
        * of the request: `model`, `temperature`, `seed`; `max_reply` and `params`, if one of them is set; `structured`,
          if it is not `auto`; `tools`, if there are any; and `messages`, with tool calls and what providers attach.

        It does not contain:

        * of the place: `seed` and `session`;
        * of the request: `role`, `prompt_id` (except in a common call), `reply_type`, `api_base`,
          `timeout`, `run_tool`, `inputs`, `is_stateful`, `conversation`, `rendered`, `session`, `session_form`,
          `player_state` and `tool_execution`;
        * anything else, such as limits, budget, prices and cache.
        """
        at = [place.scenario, place.node, place.step, place.ordinal]
        content = [
            [*(["common", self.prompt_id] if place.is_common else at), place.ask, place.sample],
            [self.model, self.temperature, self.seed, *self.reply_settings],
            [message_identity(message) for message in self.messages],
        ]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def estimate_tokens(characters: int, requests: int = 1) -> int:
    """Return the estimated number of tokens of requests with this total length, including typical replies."""
    return characters // 4 + requests * _TYPICAL_REPLY_TOKENS


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt at a call.

    Attributes:
        number: The attempt's number, from 1.
        latency: Seconds until it failed.
        error: The error message.
        retry_after: Seconds that the provider asked to wait.
    """

    number: int
    latency: float
    error: str
    retry_after: float | None = None


USAGE_FIELDS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost")
"""The attributes of a completion that hold its tokens and cost."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply. Its texts are valid Unicode, and implausible figures are replaced by `None`.

    Attributes:
        text: The reply.
        input_tokens: Tokens of the request, including cached ones; `None` if the provider does not report them.
        output_tokens: Tokens of the reply.
        cached_tokens: Tokens of the request that were read from a prompt cache.
        cost: US dollars; `None` if the price is unknown.
        finish_reason: The provider's reason for the end of the reply.
        reasoning: The model's visible reasoning before the reply; stored in the ledger, not shown to other roles.
        tool_calls: The tool calls besides the text.
        outputs: The tools' outputs, one per call, if the player has run the tools in a loop of its own.
        carried: Provider data that must be sent back with the calls; or, with `outputs`, the state of the tools'
            environment after the calls.
        state: The state of a stateful player after this reply.
        changes: The differences between the configured and the sent parameters, with reasons; `None` for none.
        reasoning_tokens: Tokens of the reply that the model used for reasoning.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[FunctionCall, ...] = ()
    outputs: tuple[str, ...] = ()
    carried: Mapping[str, Any] | None = None
    state: PlayerState | None = None
    changes: str | None = None
    reasoning_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("text", "finish_reason", "reasoning"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, to_well_formed(text))
        if self.tool_calls:
            object.__setattr__(self, "tool_calls", tuple(to_well_formed_value(list(self.tool_calls))))
            object.__setattr__(self, "outputs", tuple(map(to_well_formed, self.outputs)))
            object.__setattr__(self, "carried", to_well_formed_value(self.carried))
        for name in USAGE_FIELDS[:-1]:
            if not is_token_count(getattr(self, name)):
                object.__setattr__(self, name, None)
        cost: Any = self.cost
        if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 <= cost <= _MAX_COST_DOLLARS:
            object.__setattr__(self, "cost", None)

    def with_ids(self, key: str) -> Completion:
        """Return the completion with deterministic tool call ids, because some providers reject ids made by others.

        Args:
            key: The identity of the model call, from which the ids are derived.
        """
        if not self.tool_calls:
            return self
        calls = tuple(
            FunctionCall(id=_make_call_id(key, number), name=call["name"], arguments=call["arguments"])
            for number, call in enumerate(self.tool_calls)
        )
        return replace(self, tool_calls=calls)

    def add_usage(self, billed: Completion | None) -> Completion:
        """Return the completion with the tokens and cost of unusable replies added; an unknown figure stays unknown."""
        if billed is None:
            return self
        pairs = {name: (getattr(self, name), getattr(billed, name)) for name in USAGE_FIELDS}
        sums: dict[str, Any] = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
        return replace(self, **sums)

    @property
    def incomplete_reason(self) -> str | None:
        """The reason why the reply is incomplete; `None` if it is complete."""
        return self.finish_reason if self.finish_reason in INCOMPLETE_REASONS else None


def _make_call_id(key: str, number: int) -> str:
    """Return an id of nine letters and digits, which is the only form that Mistral accepts."""
    number = int.from_bytes(hashlib.sha256(f"{key} {number}".encode()).digest()[:8], "big")
    return "".join(_ID_CHARACTERS[number // len(_ID_CHARACTERS) ** place % len(_ID_CHARACTERS)] for place in range(9))


def is_token_count(value: object) -> bool:
    """Return whether a value is a plausible token count."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The result of a call: a reply or an error, never both.

    Attributes:
        attempts: Number of attempts.
        latency: Seconds, including pauses between attempts.
        changes: The same as in `Completion`, for a call that has no completion.
        billed: The tokens and cost of a call that has no completion, as far as the provider reported them.
    """

    completion: Completion | None
    error: str | None
    attempts: int
    latency: float
    changes: str | None = None
    billed: Completion | None = None


class Caller(Protocol):
    """An object that calls models."""

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """Return the model's reply.

        Raises:
            ProviderError: If the model cannot be reached or refuses the request.
        """


class Ledger(Protocol):
    """The store of calls: each is logged before it is sent, and its reply is durable before the gateway returns it."""

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:
        """Record that a call is about to be sent; return the call's id once the record is durable.

        If an earlier call with this identity got a reply, return that reply instead, so that nothing is sent.
        """

    async def find(self, key: str, place: CallPlace) -> Completion | None:
        """Return the reply to an earlier call with this identity, and count a replay; `None` if there is none."""

    async def player_state(self, place: CallPlace, player: bytes, marks: Sequence[bytes]) -> PlayerState | None:
        """Return a player's state at the latest of these marks for which a state is stored.

        If none is stored, return the last state of the person's earlier conversation, or `None` if there is no such
        conversation.
        """

    async def is_open(self, key: str, place: CallPlace) -> bool:
        """Return whether a call with this identity was begun and has no reply, so that its outcome is unknown."""

    async def record_failed_attempt(self, id_: int, attempt: Attempt) -> None:
        """Record a failed attempt at a call in flight."""

    async def record(self, id_: int, record: CallRecord) -> None:
        """Record a call's result; return once the record is durable."""


class MemoryLedger:
    """A ledger in memory, for calls that are not stored in a run."""

    def __init__(self) -> None:
        self._replies: dict[str, Completion] = {}
        self._open: dict[int, str] = {}
        self._numbers = count()

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        """Return the recorded reply of a call with this key or, if there is none, the number of a new call."""
        if (known := await self.find(key, place)) is not None:
            return known
        self._open[number := next(self._numbers)] = key
        return number

    async def find(self, key: str, place: CallPlace) -> Completion | None:  # noqa: ARG002
        """Return the recorded reply of a call with this key; `None` if there is none."""
        return self._replies.get(key)

    async def player_state(self, place: CallPlace, player: bytes, marks: Sequence[bytes]) -> PlayerState | None:  # noqa: ARG002
        """Return a player's state at the latest of these marks for which a state is stored."""
        states = [each.state for each in self._replies.values() if each.state and each.state.player == player]
        known = {state.mark: state for state in states}
        return next((known[mark] for mark in marks if mark in known), None)

    async def is_open(self, key: str, place: CallPlace) -> bool:  # noqa: ARG002
        """Return whether a call with this key was begun and has no reply."""
        return key in self._open.values()

    async def record_failed_attempt(self, id_: int, attempt: Attempt) -> None:
        """Ignore a failed attempt; the error of the call reports the last one."""

    async def record(self, id_: int, record: CallRecord) -> None:
        """Record the reply, if there is one."""
        key = self._open.pop(id_)
        if record.completion is not None:
            self._replies[key] = record.completion
